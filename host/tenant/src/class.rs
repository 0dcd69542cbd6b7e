//! Classes of tenants: who shares a process.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a class of tenants: 1 to 63 letters, digits, `-` and `_`, beginning
/// with a letter or a digit. It stands in metrics and logs, and is a folder's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassName(Arc<str>);

/// A text is no class's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a class's name has 1 to 63 letters, digits, `-` and `_`, and begins with a letter or a digit")]
pub struct InvalidClass;

impl ClassName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClassName {
    type Err = InvalidClass;

    fn from_str(text: &str) -> Result<Self, InvalidClass> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let good =
            text.len() <= 63 && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.bytes().all(allowed);
        if good { Ok(Self(Arc::from(text))) } else { Err(InvalidClass) }
    }
}

impl std::borrow::Borrow<str> for ClassName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_as_a_folder_and_as_a_label() {
        for good in ["a", "untrusted", "9-lives", "A_b", &"x".repeat(63)] {
            assert_eq!(good.parse::<ClassName>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", "_", "..", "a.b", "a/b", "a b", "a\"", "ä", &"x".repeat(64)] {
            assert_eq!(bad.parse::<ClassName>(), Err(InvalidClass), "{bad}");
        }
    }
}
