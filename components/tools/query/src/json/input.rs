//! JSON that is to be queried.

use jaq_json::Val;
use serde::de::IgnoredAny;

use crate::limits::check_input;

/// How deep arrays and objects may nest, in what comes and in what goes. Reading and writing
/// recurses, and whoever reads the answer seldom follows more than 128.
pub(crate) const DEPTH: usize = 100;

/// Reads one value.
pub(crate) fn read(name: &str, text: &str) -> Result<Val, String> {
    check_input(name, text)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // jq's own reader takes more than JSON (comments, NaN), and knows no line numbers.
    // This one does not recurse, so it can come before the depth is known.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| format!("`{name}` is no JSON: {error}"))?;
    if depth(text) > DEPTH {
        return Err(format!("`{name}` nests deeper than {DEPTH}: give an inner part of it"));
    }
    jaq_json::read::parse_single(text.as_bytes()).map_err(|error| format!("`{name}` is no JSON: {error}"))
}

/// How deep JSON nests.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_nest() {
        assert_eq!(depth("1"), 0);
        assert_eq!(depth(r#"[{"a": [1]}, [2]]"#), 3);
        assert_eq!(depth(r#"["[[[", "\"[[", {"{": "\\"}]"#), 2);
    }
}
