//! Texts that clients keep and cannot change.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::SystemRandom;

use super::Scope;

/// Seals texts with a key that nobody else has (HMAC-SHA-256, RFC 2104).
#[derive(Debug)]
pub(super) struct Seal(Key);

impl Seal {
    /// With a new key. None: the system has no random numbers.
    pub(super) fn new() -> Option<Self> {
        Key::generate(HMAC_SHA256, &SystemRandom::new()).ok().map(Self)
    }

    pub(super) fn close(&self, text: &str, about: &str, scope: &Scope) -> String {
        let tag = hmac::sign(&self.0, &framed(text, about, scope));
        format!("{}.{}", URL_SAFE_NO_PAD.encode(text), URL_SAFE_NO_PAD.encode(tag))
    }

    pub(super) fn open(&self, sealed: &str, about: &str, scope: &Scope) -> Option<String> {
        let (text, tag) = sealed.split_once('.')?;
        let (text, tag) = (URL_SAFE_NO_PAD.decode(text).ok()?, URL_SAFE_NO_PAD.decode(tag).ok()?);
        let text = String::from_utf8(text).ok()?;
        hmac::verify(&self.0, &framed(&text, about, scope), &tag).ok()?;
        Some(text)
    }
}

/// All that is sealed, each part behind its length, so that none can pass for another.
fn framed(text: &str, about: &str, scope: &Scope) -> Vec<u8> {
    let mut all = Vec::new();
    for part in [&*scope.application, &*scope.app, scope.tenant.as_str(), about, text] {
        all.extend_from_slice(&(part.len() as u64).to_le_bytes());
        all.extend_from_slice(part.as_bytes());
    }
    all
}

#[cfg(test)]
mod tests {
    use nala_tenant::{Limits, Tenant};

    use super::*;

    #[test]
    fn what_was_sealed_opens_for_whom_and_what_it_was_sealed_for() {
        let of = |application: &str, app: &str| Scope {
            application: application.into(),
            app: app.into(),
            tenant: Tenant::within(Limits::default()).name().clone(),
        };
        let scope = |app| of("x", app);
        let seal = Seal::new().unwrap();
        let sealed = seal.close("{\"a\": \"ß\"}", "state", &scope("a"));
        assert!(sealed.bytes().all(|byte| byte.is_ascii_graphic()), "{sealed}");
        assert_eq!(seal.open(&sealed, "state", &scope("a")).unwrap(), "{\"a\": \"ß\"}");
        assert_eq!(seal.open(&sealed, "stat", &scope("a")), None);
        assert_eq!(seal.open(&sealed, "state", &scope("b")), None, "of another component");
        assert_eq!(seal.open(&sealed, "state", &of("y", "a")), None, "of one of that name in another application");
        assert_eq!(seal.open(&sealed, "state", &of("", "xa")), None);
        assert_eq!(Seal::new().unwrap().open(&sealed, "state", &scope("a")), None, "by somebody else");
        let other = seal.close("{\"a\": \"b\"}", "state", &scope("a"));
        let mixed = format!("{}.{}", other.split_once('.').unwrap().0, sealed.split_once('.').unwrap().1);
        for wrong in ["", ".", "a", &sealed[1..], &sealed[..sealed.len() - 1], &mixed, &format!("{sealed}A")] {
            assert_eq!(seal.open(wrong, "state", &scope("a")), None, "{wrong}");
        }
    }
}
