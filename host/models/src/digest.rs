//! SHA-256 digests as values, written and read in lower-case hexadecimal.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256Digest([u8; 32]);

/// Text that is no SHA-256 digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a SHA-256 digest: write 64 hexadecimal digits")]
pub struct InvalidDigest(String);

impl Sha256Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest(text.to_owned());
        let nibble = |c: u8| char::from(c).to_digit(16).and_then(|n| u8::try_from(n).ok());
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(invalid());
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let [high, low] = pair else {
                return Err(invalid());
            };
            let high = nibble(*high).ok_or_else(invalid)?;
            let low = nibble(*low).ok_or_else(invalid)?;
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl<'de> Deserialize<'de> for Sha256Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Sha256Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_known_one_and_reads_back() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse::<Sha256Digest>().unwrap(), Sha256Digest::of(b""));
        assert_eq!(empty.to_uppercase().parse::<Sha256Digest>().unwrap(), Sha256Digest::of(b""));
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "abc", &"g".repeat(64), &"é".repeat(32), &"a".repeat(66)] {
            assert!(text.parse::<Sha256Digest>().is_err(), "{text}");
        }
    }
}
