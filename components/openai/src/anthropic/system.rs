//! What the operator tells the model: `system`.

use std::borrow::Cow;

use super::blocks;
use crate::error::ApiError;
use crate::part::Part;

/// The texts of `system`: a string, or a list of text blocks.
pub(super) fn read(root: &Part<'_>) -> Result<Vec<String>, ApiError> {
    let Some(value) = root.get("system") else { return Ok(Vec::new()) };
    let texts = blocks::texts(value, "system")?;
    Ok(texts.into_iter().map(|text| stable(&text).into_owned()).collect())
}

/// Claude Code begins its prompt with a header whose value `cch` is another one in
/// each request, and says nothing to a model. The beginning of a prompt can only be
/// taken from the cache if it stays the same, so that value does.
fn stable(text: &str) -> Cow<'_, str> {
    const HEADER: &str = "x-anthropic-billing-header:";
    const KEY: &str = "cch=";
    let value = || {
        let line = text.strip_prefix(HEADER)?.lines().next()?;
        let (before, after) = line.split_once(KEY)?;
        let (value, _) = after.split_once(';')?;
        let from = HEADER.len() + before.len() + KEY.len();
        Some((text.get(..from)?, text.get(from + value.len()..)?))
    };
    match value() {
        Some((before, after)) => Cow::Owned(format!("{before}0{after}")),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_differs_in_a_stamp_alone_is_the_same() {
        let header =
            |stamp: &str| format!("x-anthropic-billing-header: cc_version=2.1.1; cch={stamp};You are helpful. cch=1;");
        assert_eq!(stable(&header("a5145")), stable(&header("ffe01")));
        assert!(stable(&header("a5145")).ends_with("cch=0;You are helpful. cch=1;"));
    }

    #[test]
    fn other_prompts_stay_as_they_are() {
        for text in [
            "cch=12;",
            "You are x-anthropic-billing-header: cch=12;",
            "x-anthropic-billing-header: cch=12",
            "x-anthropic-billing-header: \ncch=12;",
        ] {
            assert_eq!(stable(text), text);
        }
    }
}
