//! What a registry wants to be shown, and the token that it is.
//!
//! Source: <https://distribution.github.io/distribution/spec/auth/token/>.

use http_auth::parser::ChallengeParser;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use serde::Deserialize;

/// What a registry wants to be shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A name and a password.
    Basic,
    /// A token of somebody who knows names and passwords.
    Bearer {
        /// Where it is had.
        realm: String,
        /// Whom it is for.
        service: Option<String>,
        /// What it lets do.
        scope: Option<String>,
    },
}

impl Challenge {
    /// Reads what a registry says to who may not; a token comes before a password.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut basic = None;
        for challenge in texts.flat_map(|text| ChallengeParser::new(text).map_while(Result::ok)) {
            let param = |name: &str| {
                let found = challenge.params.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.to_unescaped())
            };
            if challenge.scheme.eq_ignore_ascii_case("Basic") {
                basic = Some(Self::Basic);
            } else if challenge.scheme.eq_ignore_ascii_case("Bearer")
                && let Some(realm) = param("realm")
            {
                return Some(Self::Bearer { realm, service: param("service"), scope: param("scope") });
            }
        }
        basic
    }
}

/// What whoever gives tokens answers; either name will do.
#[derive(Deserialize)]
struct Given {
    token: Option<String>,
    access_token: Option<String>,
}

/// The header that shows the token of an answer.
pub(crate) fn bearer(answer: &[u8]) -> Result<HeaderValue, &'static str> {
    let given: Given = serde_json::from_slice(answer).map_err(|_| "what should be a token is none")?;
    let token = given.token.or(given.access_token).ok_or("what should be a token is none")?;
    header(&token).ok_or("its token has characters that none may have")
}

/// The header that shows a token.
pub(crate) fn header(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&'static str]) -> Option<Challenge> {
        let values = values.iter().map(|value| (WWW_AUTHENTICATE, HeaderValue::from_static(value)));
        Challenge::of(&values.collect())
    }

    #[test]
    fn challenges_are_read_and_a_token_comes_first() {
        let text = r#"Bearer realm="https://auth.example/token",service="r.example",scope="repository:a/b:pull""#;
        let bearer = Challenge::Bearer {
            realm: "https://auth.example/token".to_owned(),
            service: Some("r.example".to_owned()),
            scope: Some("repository:a/b:pull".to_owned()),
        };
        assert_eq!(of(&[text]).as_ref(), Some(&bearer));
        assert_eq!(of(&[r#"basic realm="x""#]), Some(Challenge::Basic));
        let nothing: [&[&str]; 4] = [&[], &[""], &["Bearer"], &["Negotiate"]];
        for values in nothing {
            assert_eq!(of(values), None, "{values:?}");
        }
    }

    #[test]
    fn only_what_can_be_a_header_is_a_token() {
        assert_eq!(bearer(br#"{"access_token":"abc","expires_in":60}"#).unwrap(), "Bearer abc");
        for wrong in [&b"{}"[..], b"abc", b"[]", br#"{"token":"a\nb"}"#, br#"{"token":5}"#] {
            assert!(bearer(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
        assert!(!format!("{:?}", header("secret")).contains("secret"));
    }
}
