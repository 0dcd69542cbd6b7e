//! Digests as registries write them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, `sha256:` and 64 lower-case hexadecimal digits.
///
/// Source: <https://github.com/opencontainers/image-spec/blob/main/descriptor.md#digests>.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

/// Text that is no SHA-256 digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a digest: write `sha256:` and 64 lower-case hexadecimal digits", .0.escape_debug())]
pub struct InvalidDigest(String);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(bytes);
        Self::finish(hasher)
    }

    /// The digest of all that a hasher was given.
    pub(crate) fn finish(hasher: Sha256) -> Self {
        let digits: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("sha256:{digits}"))
    }

    /// The 64 digits alone.
    #[must_use]
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }

    /// The digest as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.strip_prefix("sha256:") {
            Some(digits) if digits.len() == 64 && digits.bytes().all(digit) => Ok(Self(text.to_owned())),
            _ => Err(InvalidDigest(text.chars().take(100).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_known_one_and_others_are_refused() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(empty.parse(), Ok(Digest::of(b"")));
        for text in ["", "sha256:", &empty[7..], &empty.to_uppercase(), &empty.replace("256", "512")] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
