//! Names, as Kubernetes has them. What is no name is refused here, so that no name is
//! part of a path which has more than one segment, or of a query.

use crate::trouble::quoted;

/// The longest label, and the longest name, in characters (RFC 1123, 2.1).
const LABEL: usize = 63;
const NAME: usize = 253;

/// A name without dots, such as a namespace's (RFC 1123, a label).
///
/// # Errors
/// It is none.
pub(crate) fn label<'a>(what: &str, text: &'a str) -> Result<&'a str, String> {
    if is_label(text) { Ok(text) } else { Err(wrong(what, text, "small letters, digits and `-`, up to 63")) }
}

/// A name of a resource (RFC 1123, a subdomain). Those of roles and the like have colons,
/// too, and are not served.
///
/// # Errors
/// It is none.
pub(crate) fn resource(text: &str) -> Result<&str, String> {
    if is_subdomain(text) {
        Ok(text)
    } else {
        Err(wrong("name", text, "small letters, digits, `-` and `.`, up to 253"))
    }
}

/// Whether a text is a label.
pub(crate) fn is_label(text: &str) -> bool {
    let is_ends = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.len() <= LABEL
        && bytes.iter().all(|byte| is_ends(*byte) || *byte == b'-')
        && bytes.first().copied().is_some_and(is_ends)
        && bytes.last().copied().is_some_and(is_ends)
}

/// Whether a text is labels with dots between.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= NAME && text.split('.').all(is_label)
}

fn wrong(what: &str, text: &str, of: &str) -> String {
    format!("{} can be no {what}: it has to be of {of}, and begin and end with a letter or a digit", quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_cannot_lead_anywhere() {
        for good in ["a", "web-7d4b9c-x2x1z", "0", "a.b-c.d"] {
            assert_eq!(resource(good), Ok(good));
        }
        for bad in [
            "", ".", "..", "a..b", "a/b", "../a", "a%2fb", "a?b", "a#b", "A", "-a", "a-", "a.", ".a", "a b", "ä",
            "a\n", "a:b", "a\\b",
        ] {
            assert!(resource(bad).is_err(), "{bad:?}");
            assert!(label("namespace", bad).is_err(), "{bad:?}");
        }
        assert!(label("namespace", "a.b").is_err());
        assert!(label("namespace", &"a".repeat(LABEL)).is_ok() && label("namespace", &"a".repeat(LABEL + 1)).is_err());
        assert!(resource(&"a.".repeat(NAME)).is_err());
    }
}
