//! One identifier a request, from the client or made here, for logs and answers.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// The header that carries the identifier in both directions.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Longest identifier taken from a client, in bytes.
const MAX_LEN: usize = 128;

/// The identifier of a request. It is also found in the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The client's identifier if it sent a plausible one (1 to 128 characters
    /// of `A-Z a-z 0-9 - _ . :`), so that nothing surprising reaches the logs;
    /// a new one otherwise.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match headers.get(HEADER) {
            Some(value) if plausible(value.as_bytes()) => Self(value.clone()),
            _ => Self::new(),
        }
    }

    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // The standard library keys its hasher from the system's entropy: the
        // identifiers are unique, and not guessable enough for logs.
        let (high, low) = (RandomState::new().hash_one(count), RandomState::new().hash_one(!count));
        let text = format!("{high:016x}{low:016x}");
        Self(HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("none")))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or("none")
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

fn plausible(value: &[u8]) -> bool {
    (1..=MAX_LEN).contains(&value.len()) && value.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plausible_identifier_is_kept_and_others_are_replaced() {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_static("abc-1.2:3_Z"));
        assert_eq!(RequestId::of(&headers).as_str(), "abc-1.2:3_Z");
        for bad in ["", "two words", "quote\"", &"x".repeat(129)] {
            headers.insert(HEADER, HeaderValue::from_str(bad).unwrap());
            let made = RequestId::of(&headers);
            assert_eq!(made.as_str().len(), 32, "{bad:?} was kept");
        }
    }

    #[test]
    fn made_identifiers_differ() {
        assert_ne!(RequestId::new(), RequestId::new());
    }
}
