//! Access tokens of an authorization server, which say whose a request is as keys do.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nala_e2e::host::Host;
use nala_e2e::keys::key;
use nala_e2e::metrics::eventually;
use nala_e2e::{api, paths};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// The host, as its clients know it.
const AUDIENCE: &str = "https://nala.example/mcp";

/// A key of an issuer.
struct Signer {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let (random, scheme) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(scheme, &random).unwrap();
        Self { id, pair: EcdsaKeyPair::from_pkcs8(scheme, pkcs8.as_ref(), &random).unwrap() }
    }

    fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"kty": "EC", "crv": "P-256", "kid": self.id, "x": part(&point[1..33]), "y": part(&point[33..])})
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": self.id, "typ": "at+jwt"});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&header), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// An authorization server, as far as a resource server needs it. It runs until the tests
/// end.
struct Issuer {
    address: SocketAddr,
    keys: Arc<Mutex<Vec<Value>>>,
}

impl Issuer {
    fn start(signer: &Signer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let keys = Arc::new(Mutex::new(vec![signer.public()]));
        let of_thread = Arc::clone(&keys);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), address, &of_thread);
            }
        });
        Self { address, keys }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn token(&self, signer: &Signer, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = json!({
            "iss": self.url(), "aud": AUDIENCE, "sub": "somebody", "org": "acme", "scope": "tools other",
            "exp": now() + 600,
        });
        change(&mut claims);
        signer.sign(&claims)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

fn answer(mut stream: TcpStream, address: SocketAddr, keys: &Mutex<Vec<Value>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let issuer = format!("http://{address}");
    let body = match first.split(' ').nth(1).unwrap_or_default() {
        // Found by the second of the places where it may be.
        "/.well-known/openid-configuration" => json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}),
        "/keys" => json!({"keys": *keys.lock().unwrap()}),
        _ => Value::Null,
    };
    let status = if body.is_null() { "404 Not Found" } else { "200 OK" };
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
    let _gone = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
}

fn ask(host: &Host, path: &str, token: &str) -> (u16, String, Value) {
    let bearer = format!("Bearer {token}");
    let headers: &[(&str, &str)] = if token.is_empty() { &[] } else { &[("authorization", &bearer)] };
    let (status, headers, body) = api::ask_with("GET", &host.url(path), headers, "", b"");
    let challenge = headers.get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    (status, challenge.unwrap_or_default(), body)
}

#[test]
fn a_token_of_an_issuer_that_is_trusted_does_what_a_key_does() {
    let (signer, next) = (Signer::new("first"), Signer::new("next"));
    let issuer = Issuer::start(&signer);
    let (own_key, stored) = key();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("nala.toml");
    let text = format!(
        "[tenant.acme]\n[tenant.other]\nkeys = [{stored:?}]\nprefix = \"/t/other\"\n[[tokens]]\nissuer = {:?}\n\
         audience = {AUDIENCE:?}\ntenant_claim = \"org\"\nscopes = [\"tools\"]\n",
        issuer.url()
    );
    fs::write(&config, text).unwrap();
    let model = paths::model();
    let host =
        Host::start(["up".as_ref(), "--model".as_ref(), model.as_os_str(), "--config".as_ref(), config.as_os_str()]);
    assert!(!host.log().contains("nobody can be the tenant"), "{}", host.log());

    // Whoever has nothing is told where to get it, and may read that without anything.
    let place = "https://nala.example/.well-known/oauth-protected-resource/mcp";
    let (status, challenge, _) = ask(&host, "/mcp", "");
    assert_eq!((status, challenge), (401, format!("Bearer resource_metadata=\"{place}\", scope=\"tools\"")));
    let (status, _, metadata) = ask(&host, "/.well-known/oauth-protected-resource/mcp", "");
    assert_eq!((status, &metadata["resource"]), (200, &json!(AUDIENCE)), "{metadata}");
    assert_eq!(metadata["authorization_servers"], json!([issuer.url()]));
    // What is no part of the resource has keys alone.
    assert_eq!(ask(&host, "/v1/models", "").1, "Bearer");

    let good = issuer.token(&signer, |_| {});
    eventually("the keys are fetched", Duration::from_secs(20), || ask(&host, "/v1/models", &good).0 == 200);
    let (status, _, usage) = ask(&host, "/.well-known/nala/usage", &good);
    assert_eq!((status, &usage["tenant"]), (200, &json!("acme")), "{usage}");
    // A key is as good as before, and one tenant's token no way to another one's place.
    assert_eq!(ask(&host, "/t/other/v1/models", &own_key).0, 200);
    assert_eq!(ask(&host, "/t/other/v1/models", &good).0, 403);

    type Change = fn(&mut Value);
    let of_another: Change = |claims| claims["aud"] = json!("https://other.example/mcp");
    let refusals: [(Change, u16, &str, &str); 5] = [
        (|claims| claims["exp"] = json!(now() - 3600), 401, "invalid_token", "expired"),
        (of_another, 401, "invalid_token", "another server"),
        (|claims| claims["scope"] = json!("other"), 403, "insufficient_scope", "scopes tools"),
        (|claims| claims["org"] = json!("stranger"), 403, "wrong_tenant", "nobody who is served"),
        (|claims| claims["org"] = Value::Null, 403, "wrong_tenant", "no claim `org`"),
    ];
    for (change, status, code, words) in refusals {
        let token = issuer.token(&signer, change);
        let (got, challenge, body) = ask(&host, "/mcp", &token);
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((got, body["error"]["code"].as_str()), (status, Some(code)), "{body}");
        assert!(message.contains(words), "{body}");
        assert_eq!(challenge.contains(&format!("error=\"{code}\"")), code != "wrong_tenant", "{challenge}");
    }
    // Signed by somebody else, in the name of the key that is known; and no token at all.
    let forged = Signer { id: "first", ..Signer::new("x") };
    assert_eq!(ask(&host, "/v1/models", &issuer.token(&forged, |_| {})).2["error"]["code"], "invalid_token");
    for nothing in ["a.b.c", "nala_0_0", "x"] {
        assert_eq!(ask(&host, "/v1/models", nothing).0, 401, "{nothing}");
    }

    // A key that is published later is fetched when a token names it, and one that is
    // withdrawn counts no more.
    let later = issuer.token(&next, |_| {});
    assert_eq!(ask(&host, "/v1/models", &later).0, 401);
    *issuer.keys.lock().unwrap() = vec![next.public()];
    eventually("the new key is fetched", Duration::from_secs(30), || ask(&host, "/v1/models", &later).0 == 200);
    assert_eq!(ask(&host, "/v1/models", &good).0, 401);
    assert!(!host.log().contains(good.rsplit('.').next().unwrap()), "a token is in the log");
}
