//! What a request shows of whom it is from.

use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName};
use http::request::Parts;

/// Where Anthropic's clients put the key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The key in the headers. With several, they must be the same; else the request shows
/// none that is right.
pub(super) fn key(headers: &HeaderMap) -> Option<String> {
    let mut keys = Vec::new();
    for value in headers.get_all(AUTHORIZATION) {
        let text = value.to_str().unwrap_or_default();
        // Another scheme is a wrong key, and not none.
        keys.push(bearer(text).unwrap_or_default().to_owned());
    }
    for value in headers.get_all(API_KEY) {
        keys.push(value.to_str().unwrap_or_default().trim().to_owned());
    }
    let first = keys.first().cloned()?;
    match keys.iter().all(|key| *key == first) {
        true => Some(first),
        false => Some(String::new()),
    }
}

/// Takes the key out of the headers: a handler has no use for it, and could give it
/// away.
pub(super) fn remove_key(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    headers.remove(API_KEY);
}

/// The key in the value of an `authorization` header that has one: its scheme is Bearer,
/// in any case (RFC 9110, section 11.1).
pub(crate) fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// The host that a request names: its target's, or else that of its header.
pub(super) fn host(parts: &Parts) -> Option<&str> {
    match parts.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => parts.headers.get(HOST).map(|host| host.to_str().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(headers: &[(&str, &str)]) -> (Option<String>, usize) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let key = super::key(&map);
        remove_key(&mut map);
        (key, map.len())
    }

    #[test]
    fn the_key_is_taken_out() {
        let one = |key: &str| Some(key.to_owned());
        assert_eq!(key(&[("authorization", "Bearer a"), ("accept", "x")]), (one("a"), 1));
        assert_eq!(key(&[("authorization", "bEARER  a ")]), (one("a"), 0));
        assert_eq!(key(&[("x-api-key", "a")]), (one("a"), 0));
        assert_eq!(key(&[("x-api-key", "a"), ("authorization", "Bearer a")]), (one("a"), 0));
        assert_eq!(key(&[("accept", "x")]), (None, 1));
    }

    #[test]
    fn what_is_no_single_key_is_a_wrong_one() {
        for headers in [
            &[("authorization", "Bearer a"), ("authorization", "Bearer b")][..],
            &[("authorization", "Bearer a"), ("x-api-key", "b")],
            &[("authorization", "Basic a")],
            &[("authorization", "Bearer")],
            &[("authorization", "")],
            &[("x-api-key", "")],
        ] {
            assert_eq!(key(headers), (Some(String::new()), 0), "{headers:?}");
        }
    }
}
