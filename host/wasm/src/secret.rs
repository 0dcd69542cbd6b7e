//! A value that must not be shown.

use std::fmt;

/// A text that may be a password or a key: it is in no log and no `Debug`.
///
/// There is no `Display`; who hands it on calls [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the guest that it is granted to.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_neither_its_text_nor_its_length() {
        let (short, long) = (Secret::from("x"), Secret::from("a long password"));
        assert_eq!(format!("{short:?}"), format!("{long:?}"));
        assert!(!format!("{:#?}", [long]).contains("password"));
    }
}
