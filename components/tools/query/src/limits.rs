//! How much the tools take and give, and how what they were given is told in an error.

use std::fmt;

/// Bytes of the data that is queried.
pub(crate) const INPUT_BYTES: usize = 8 << 20;
/// Bytes of what an answer is made of.
pub(crate) const OUTPUT_BYTES: usize = 256 << 10;

/// Whether there is too much data.
pub(crate) fn check_input(name: &str, data: &str) -> Result<(), String> {
    let bytes = data.len();
    if bytes > INPUT_BYTES {
        return Err(format!("`{name}` has {bytes} bytes and may have {INPUT_BYTES} (8 MiB): give a part of it"));
    }
    Ok(())
}

/// Text of somebody else's in an error: its beginning, on one line.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARS: usize = 60;
        let mut chars = self.0.chars();
        out.write_str("`")?;
        for char in chars.by_ref().take(CHARS) {
            if char.is_control() { write!(out, "{}", char.escape_default())? } else { write!(out, "{char}")? }
        }
        out.write_str(if chars.next().is_some() { "…`" } else { "`" })
    }
}

/// Names that can be chosen from, the first of them if there are many.
pub(crate) fn names<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> String {
    const NAMES: usize = 40;
    let more = all.len().saturating_sub(NAMES);
    let shown: Vec<_> = all.take(NAMES).map(|name| Shown(name).to_string()).collect();
    let list = shown.join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_short_and_on_one_line() {
        assert_eq!(Shown("a\nb\0").to_string(), "`a\\nb\\u{0}`");
        assert_eq!(Shown(&"é".repeat(100)).to_string(), format!("`{}…`", "é".repeat(60)));
        assert_eq!(names(["a", "b"].into_iter()), "`a`, `b`");
        assert!(names(vec!["x"; 100_000].into_iter()).ends_with("`x` and 99960 more"));
    }

    #[test]
    fn too_much_is_refused() {
        assert!(check_input("csv", &"x".repeat(INPUT_BYTES)).is_ok());
        let error = check_input("csv", &"x".repeat(INPUT_BYTES + 1)).unwrap_err();
        assert!(error.contains("`csv` has 8388609 bytes"), "{error}");
    }
}
