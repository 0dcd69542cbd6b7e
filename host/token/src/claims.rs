//! What a token says.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// All that is in a token.
pub(crate) type Claims = Map<String, Value>;

/// The issuer that a token says it is from, and whom for, before any of it is believed.
pub(crate) fn said(token: &str) -> Option<(String, Audience)> {
    #[derive(Deserialize)]
    struct Said {
        iss: String,
        aud: Audience,
    }
    let mut parts = token.split('.');
    let (_header, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let said: Said = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    Some((said.iss, said.aud))
}

/// Whom a token is for: one, or several (RFC 7519, section 4.1.3).
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    pub(crate) fn has(&self, audience: &str) -> bool {
        match self {
            Self::One(one) => one == audience,
            Self::Several(all) => all.iter().any(|one| one == audience),
        }
    }
}

/// Whether a token allows all that is needed: by `scope`, words in a text (RFC 9068,
/// section 2.2.3), or by `scp`, a list or words, as some issuers have it.
pub(crate) fn allows(claims: &Claims, needed: &[String]) -> bool {
    let has = |name: &str, wanted: &str| match claims.get(name) {
        Some(Value::String(words)) => words.split_ascii_whitespace().any(|word| word == wanted),
        Some(Value::Array(all)) => all.iter().any(|one| one == wanted),
        _ => false,
    };
    needed.iter().all(|wanted| has("scope", wanted) || has("scp", wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Claims {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn scopes_are_words_or_a_list() {
        let needed = ["tools".to_owned(), "read".to_owned()];
        for good in
            [json!({"scope": "read  tools more"}), json!({"scp": ["tools", "read"]}), json!({"scp": "tools read"})]
        {
            assert!(allows(&claims(good.clone()), &needed), "{good}");
        }
        for bad in [json!({}), json!({"scope": "read tool"}), json!({"scope": 1}), json!({"scp": ["read"]})] {
            assert!(!allows(&claims(bad.clone()), &needed), "{bad}");
        }
        assert!(allows(&claims(json!({})), &[]));
    }

    #[test]
    fn what_is_no_token_says_nothing() {
        let of = |claims: Value| format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let (issuer, audience) = said(&of(json!({"iss": "a", "aud": ["b", "c"]}))).unwrap();
        assert!(issuer == "a" && audience.has("c") && !audience.has("a"));
        for text in ["", "a.b", "a.b.c.d", "nala_0_0", &of(json!({"iss": 1, "aud": "b"})), &of(json!({"iss": "a"}))] {
            assert!(said(text).is_none(), "{text}");
        }
    }
}
