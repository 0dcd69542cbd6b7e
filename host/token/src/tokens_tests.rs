use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::*;
use crate::issuer::Keys;

const ISSUER: &str = "https://auth.example/realms/x";
const AUDIENCE: &str = "https://nala.example/mcp";

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Who signs tokens.
enum Signer {
    Ed(Ed25519KeyPair),
    Ec(EcdsaKeyPair),
}

impl Signer {
    fn ed() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    fn ec() -> Self {
        let (random, scheme) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(scheme, &random).unwrap();
        Self::Ec(EcdsaKeyPair::from_pkcs8(scheme, pkcs8.as_ref(), &random).unwrap())
    }

    fn public(&self, id: &str) -> Value {
        match self {
            Self::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key()), "kid": id, "use": "sig"})
            }
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": encoded(&point[1..33]), "y": encoded(&point[33..]), "kid": id})
            }
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let text = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let signature = match self {
            Self::Ed(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
            Self::Ec(pair) => pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap().as_ref().to_vec(),
        };
        format!("{text}.{}", encoded(signature))
    }
}

fn now() -> u64 {
    jsonwebtoken::get_current_timestamp()
}

fn claims(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "exp": now() + 300, "scope": "tools", "org": "acme"});
    change(&mut claims);
    claims
}

fn issuer(file: PathBuf) -> Issuer {
    Issuer {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.parse().unwrap(),
        keys: Keys::File(file),
        whose: Whose::Claim("org".to_owned()),
        scopes: vec!["tools".to_owned()],
    }
}

/// An issuer whose keys are in a file, and what keeps the file.
async fn known(signers: &[(&str, &Signer)]) -> (Tokens, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    let keys: Vec<Value> = signers.iter().map(|(id, signer)| signer.public(id)).collect();
    std::fs::write(&file, json!({"keys": keys}).to_string()).unwrap();
    let tokens = Tokens::new(vec![issuer(file)]);
    tokio::spawn(tokens.clone().follow(|_| None));
    while tokens.all[0].keys.read().unwrap().is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    (tokens, folder)
}

#[tokio::test]
async fn tokens_that_are_right_name_their_tenant() {
    let (ed, ec) = (Signer::ed(), Signer::ec());
    let (tokens, _folder) = known(&[("ed", &ed), ("ec", &ec)]).await;
    for (signer, header) in [
        (&ed, json!({"alg": "EdDSA", "kid": "ed", "typ": "at+jwt"})),
        (&ec, json!({"alg": "ES256", "kid": "ec"})),
        (&ec, json!({"alg": "ES256"})),
    ] {
        assert_eq!(tokens.owner(&signer.token(&header, &claims(|_| {}))), Ok("acme".to_owned()), "{header}");
    }
    let several = claims(|claims| claims["aud"] = json!(["other", AUDIENCE]));
    assert_eq!(tokens.owner(&ed.token(&json!({"alg": "EdDSA", "kid": "ed"}), &several)), Ok("acme".to_owned()));
}

#[tokio::test]
async fn whatever_is_wrong_with_a_token_is_told() {
    let (ed, stranger) = (Signer::ed(), Signer::ed());
    let (tokens, _folder) = known(&[("ed", &ed)]).await;
    let header = json!({"alg": "EdDSA", "kid": "ed"});
    let ask = |change: fn(&mut Value)| tokens.owner(&ed.token(&header, &claims(change))).unwrap_err();
    assert_eq!(ask(|claims| claims["exp"] = json!(now() - 120)), Refused::Expired);
    assert!(matches!(ask(|claims| claims["nbf"] = json!(now() + 120)), Refused::Wrong(_)));
    assert!(matches!(ask(|claims| claims["exp"] = Value::Null), Refused::Wrong(_)));
    assert!(matches!(ask(|claims| claims["exp"] = json!("soon")), Refused::Wrong(_)));
    assert!(matches!(ask(|claims| claims["aud"] = json!("https://nala.example")), Refused::Wrong(_)));
    assert_eq!(ask(|claims| claims["iss"] = json!("https://auth.example")), Refused::Unknown);
    assert_eq!(ask(|claims| claims["org"] = json!(1)), Refused::NoClaim("org".to_owned()));
    assert_eq!(ask(|claims| claims["scope"] = json!("other")), Refused::Scope(vec!["tools".to_owned()]));

    // Somebody else's signature, under the name of a key that is known and under none.
    let forged = stranger.token(&header, &claims(|_| {}));
    assert!(matches!(tokens.owner(&forged), Err(Refused::Wrong(_))), "{:?}", tokens.owner(&forged));
    let other = stranger.token(&json!({"alg": "EdDSA", "kid": "new"}), &claims(|_| {}));
    assert_eq!(tokens.owner(&other), Err(Refused::UnknownKey));
    // What is signed was changed.
    let good = ed.token(&header, &claims(|_| {}));
    let (head, rest) = good.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let changed =
        format!("{head}.{}.{signature}", encoded(claims(|claims| claims["org"] = json!("other")).to_string()));
    assert!(matches!(tokens.owner(&changed), Err(Refused::Wrong(_))));
    // No signature, and one by a secret that is the public key.
    for algorithm in ["none", "HS256"] {
        let header = json!({"alg": algorithm, "kid": "ed"});
        let text = format!("{}.{}.", encoded(header.to_string()), encoded(claims(|_| {}).to_string()));
        assert!(tokens.owner(&text).is_err(), "{algorithm}");
    }
    for text in ["", "a.b.c", "nala_0_0", &"a".repeat(20_000)] {
        assert_eq!(tokens.owner(text), Err(Refused::Unknown));
    }
    assert_eq!(tokens.owner(&good), Ok("acme".to_owned()));
}

#[tokio::test]
async fn before_the_keys_are_there_a_client_is_told_to_wait() {
    let ed = Signer::ed();
    let tokens = Tokens::new(vec![issuer(PathBuf::from("/nowhere/jwks.json"))]);
    tokio::spawn(tokens.clone().follow(|_| None));
    let token = ed.token(&json!({"alg": "EdDSA", "kid": "ed"}), &claims(|_| {}));
    assert_eq!(tokens.owner(&token), Err(Refused::NoKeys));
}

#[tokio::test(start_paused = true)]
async fn keys_are_read_again() {
    let (old, new) = (Signer::ed(), Signer::ed());
    let (tokens, folder) = known(&[("old", &old)]).await;
    let token = new.token(&json!({"alg": "EdDSA", "kid": "new"}), &claims(|_| {}));
    assert_eq!(tokens.owner(&token), Err(Refused::UnknownKey));
    std::fs::write(folder.path().join("jwks.json"), json!({"keys": [new.public("new")]}).to_string()).unwrap();
    sleep(SOONEST * 2).await;
    while tokens.owner(&token).is_err() {
        sleep(SOONEST).await;
        std::thread::sleep(Duration::from_millis(5));
    }
    let token = old.token(&json!({"alg": "EdDSA", "kid": "old"}), &claims(|_| {}));
    assert_eq!(tokens.owner(&token), Err(Refused::UnknownKey), "what was withdrawn counts no more");
}
