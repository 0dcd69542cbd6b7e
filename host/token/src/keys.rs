//! The keys of an issuer.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// How many keys of an issuer are looked at: it has a few.
const MOST: usize = 64;

/// A key that tokens can be signed by.
#[derive(Debug)]
pub(crate) struct SigningKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(crate) key: DecodingKey,
}

impl SigningKey {
    /// Whether a token of this algorithm, which names this key or none, can be signed by
    /// it.
    pub(crate) fn fits(&self, id: Option<&str>, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm) && id.is_none_or(|id| self.id.as_deref() == Some(id))
    }
}

/// Reads a key set. Keys that are for something else are left out, as they are to be
/// (RFC 7517, section 5).
///
/// # Errors
/// It is no key set, or has no key for signatures.
pub(crate) fn read(json: &[u8]) -> Result<Vec<SigningKey>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set = serde_json::from_slice(json).map_err(|error| format!("it is no JSON Web Key Set: {error}"))?;
    let keys: Vec<SigningKey> = set.keys.into_iter().take(MOST).filter_map(key).collect();
    match keys.is_empty() {
        true => Err("none of its keys is for signatures of RSA, ECDSA (P-256, P-384) or Ed25519".to_owned()),
        false => Ok(keys),
    }
}

fn key(json: Value) -> Option<SigningKey> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let key: Jwk = serde_json::from_value(json).ok()?;
    if matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption)) {
        return None;
    }
    let mut algorithms = match &key.algorithm {
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => vec![ES256],
            EllipticCurve::P384 => vec![ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(_) => vec![EdDSA],
        // Known to both sides, and so no proof of who has signed.
        _ => return None,
    };
    if let Some(only) = key.common.key_algorithm {
        let only = Algorithm::try_from(only).ok()?;
        algorithms.retain(|algorithm| *algorithm == only);
    }
    if algorithms.is_empty() {
        return None;
    }
    let decoding = DecodingKey::from_jwk(&key).ok()?;
    Some(SigningKey { id: key.common.key_id, algorithms, key: decoding })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_keys_for_signatures_count() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let ed = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "a"});
        let mut sealed = ed.clone();
        sealed["use"] = json!("enc");
        let secret = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "a", "alg": "HS256"});
        let mut odd = ed.clone();
        odd["alg"] = json!("RS256");
        let set = json!({"keys": [sealed, secret, odd, {"kty": "new"}, 7, ed]});
        let keys = read(set.to_string().as_bytes()).unwrap();
        assert_eq!(keys.len(), 1);
        assert!(keys[0].fits(Some("a"), Algorithm::EdDSA) && keys[0].fits(None, Algorithm::EdDSA));
        assert!(!keys[0].fits(Some("b"), Algorithm::EdDSA) && !keys[0].fits(Some("a"), Algorithm::HS256));
        let set = json!({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]});
        assert!(read(set.to_string().as_bytes()).unwrap_err().contains("none of its keys"));
        assert!(read(b"<html>").unwrap_err().contains("no JSON Web Key Set"));
    }
}
