//! Pulling and pushing against a real registry, and against one that lies.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

mod registry;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, SystemTime};

use nala_oci::{Client, Credentials, Digest, Error, Pulled, Reference, Transport};
use registry::{Access, Registry};
use serde_json::json;

const MIB: u64 = 1 << 20;

fn client() -> Client {
    Client::new(Transport::Automatic, Duration::from_secs(60))
}

fn component(padding: usize) -> Vec<u8> {
    let text = format!(
        r#"(component (import "wasi:http/types@0.2.0" (instance)) (@custom "padding" "{}"))"#,
        "x".repeat(padding)
    );
    wat::parse_str(text).unwrap()
}

async fn push(reference: &Reference, bytes: Vec<u8>) -> Result<Digest, Error> {
    let annotations = BTreeMap::from([("org.opencontainers.image.version".to_owned(), "1.0".to_owned())]);
    client().push(reference, bytes, &annotations, SystemTime::UNIX_EPOCH, &Credentials::Anonymous).await
}

async fn pull(reference: &Reference) -> Result<Pulled, Error> {
    client().pull(reference, MIB, &Credentials::Anonymous).await
}

#[tokio::test]
async fn what_is_pushed_is_pulled_by_tag_and_by_digest() {
    let registry = Registry::start(Access::Everybody);
    let reference = registry.reference("acme/shop:1");
    // Larger than one part of a stream.
    let bytes = component(300_000);
    let digest = push(&reference, bytes.clone()).await.unwrap();
    let expected = Pulled { component: Digest::of(&bytes), bytes, digest: digest.clone() };
    assert_eq!(pull(&reference).await.unwrap(), expected);
    assert_eq!(pull(&reference.pinned(&digest)).await.unwrap(), expected);

    // The tag goes on; what is pinned stays.
    let other = component(1);
    let second = push(&reference, other.clone()).await.unwrap();
    assert_ne!(second, digest);
    assert_eq!(pull(&reference).await.unwrap().bytes, other);
    assert_eq!(pull(&reference.pinned(&digest)).await.unwrap(), expected);
    let both = registry.reference(&format!("acme/shop:1@{digest}"));
    assert_eq!(pull(&both).await.unwrap(), expected);
    assert_eq!(push(&reference, other).await.unwrap(), second, "the same has the same digest");
}

#[tokio::test]
async fn the_registry_has_it_in_the_layout_of_others() {
    let registry = Registry::start(Access::Everybody);
    let bytes = component(1);
    let digest = push(&registry.reference("acme/shop:1"), bytes.clone()).await.unwrap();
    let answer = registry.get("/v2/acme/shop/manifests/1");
    assert!(answer.contains(&format!("Docker-Content-Digest: {digest}")), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let manifest: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["layers"][0]["digest"], Digest::of(&bytes).as_str());
    assert_eq!(manifest["annotations"]["org.opencontainers.image.version"], "1.0");
    let config = registry.get(&format!("/v2/acme/shop/blobs/{}", manifest["config"]["digest"].as_str().unwrap()));
    assert!(config.contains(r#""imports":["wasi:http/types@0.2.0"]"#), "{config}");
}

#[tokio::test]
async fn what_others_store_is_pulled_and_other_artifacts_are_refused() {
    let registry = Registry::start(Access::Everybody);
    let bytes = component(1);
    let layer = |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": Digest::of(bytes).as_str(), "size": bytes.len()});
    let manifest = |config: &str, kind: &str, bytes: &[u8]| {
        json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": layer(config, b"{}"), "layers": [layer(kind, bytes)],
        })
    };
    let config = "application/vnd.wasm.config.v0+json";
    registry.store("x/good", "1", &manifest(config, "application/wasm", &bytes), &[b"{}", &bytes]);
    assert_eq!(pull(&registry.reference("x/good:1")).await.unwrap().bytes, bytes);

    let image = manifest("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar", b"tar");
    registry.store("x/image", "1", &image, &[b"{}", b"tar"]);
    let error = pull(&registry.reference("x/image:1")).await.unwrap_err();
    assert!(matches!(error, Error::WrongMediaType { part: "config", .. }), "{error}");

    let module = wat::parse_str("(module)").unwrap();
    registry.store("x/module", "1", &manifest(config, "application/wasm", &module), &[b"{}", &module]);
    let error = pull(&registry.reference("x/module:1")).await.unwrap_err();
    assert!(error.to_string().contains("it is a core module"), "{error}");
    let error = push(&registry.reference("x/module:2"), module).await.unwrap_err();
    assert!(error.to_string().contains("build one for wasm32-wasip2"), "{error}");
}

#[tokio::test]
async fn what_is_not_there_is_told() {
    let registry = Registry::start(Access::Everybody);
    let bytes = component(1);
    push(&registry.reference("acme/shop:1"), bytes).await.unwrap();
    let digest = Digest::of(b"something else");
    for rest in ["acme/shop:2", "acme/blog:1", &format!("acme/shop@{digest}")] {
        let error = pull(&registry.reference(rest)).await.unwrap_err();
        assert!(matches!(error, Error::NotFound(_)), "{rest}: {error}");
        assert!(error.to_string().contains(rest), "{error}");
    }
    let pinned = registry.reference(&format!("acme/shop:1@{digest}"));
    let error = push(&pinned, component(2)).await.unwrap_err();
    assert!(matches!(error, Error::NoTag(_)), "{error}");
}

#[tokio::test]
async fn the_size_is_bounded() {
    let registry = Registry::start(Access::Everybody);
    let reference = registry.reference("acme/shop:1");
    let bytes = component(5000);
    push(&reference, bytes.clone()).await.unwrap();
    let size = bytes.len() as u64;
    let get = async |limit| client().pull(&reference, limit, &Credentials::Anonymous).await;
    assert!(get(size).await.is_ok());
    let error = get(size - 1).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit, .. } if limit == size - 1), "{error}");
}

#[tokio::test]
async fn bytes_that_were_changed_in_the_registry_are_refused() {
    let registry = Registry::start(Access::Everybody);
    let reference = registry.reference("acme/shop:1");
    let bytes = component(10);
    push(&reference, bytes.clone()).await.unwrap();
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    registry.damage(&Digest::of(&bytes), &changed);
    let error = pull(&reference).await.unwrap_err();
    let expected = (Digest::of(&bytes).to_string(), Digest::of(&changed).to_string());
    assert!(
        matches!(&error, Error::DigestMismatch { expected: e, actual: a } if (e, a) == (&expected.0, &expected.1)),
        "{error}"
    );
}

#[tokio::test]
async fn who_may_not_is_told_how_to_log_in() {
    let registry = Registry::start(Access::Password);
    let reference = registry.reference("acme/shop:1");
    let password = |password: &str| Credentials::Password { user: "nala".to_owned(), password: password.to_owned() };
    let annotations = BTreeMap::new();
    let push = async |credentials: &Credentials| {
        client().push(&reference, component(1), &annotations, SystemTime::UNIX_EPOCH, credentials).await
    };
    for credentials in [Credentials::Anonymous, password("wrong")] {
        for error in
            [push(&credentials).await.unwrap_err(), client().pull(&reference, MIB, &credentials).await.unwrap_err()]
        {
            assert!(matches!(error, Error::Unauthorized { .. }), "{credentials:?}: {error}");
            assert!(error.to_string().contains(&format!("docker login {}", registry.address)), "{error}");
        }
    }
    let digest = push(&password("open sesame")).await.unwrap();
    let pulled = client().pull(&reference, MIB, &password("open sesame")).await.unwrap();
    assert_eq!(pulled.digest, digest);

    // As a process finds them.
    let found = Credentials::find(&reference, |name| match name {
        "NALA_REGISTRY" => Some(registry.address.to_string().into()),
        "NALA_REGISTRY_USER" => Some("nala".into()),
        "NALA_REGISTRY_PASSWORD" => Some("open sesame".into()),
        _ => None,
    });
    assert_eq!(client().pull(&reference, MIB, &found.unwrap()).await.unwrap().digest, digest);
}

#[tokio::test]
async fn where_nobody_is_the_address_is_named() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = pull(&Reference::parse(&format!("oci://{address}/x:1")).unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    // Reserved for names that never exist (RFC 6761, section 6.4).
    let error = pull(&Reference::parse("oci://registry.invalid/x:1").unwrap()).await.unwrap_err();
    assert!(matches!(&error, Error::NoSuchHost(host) if host == "registry.invalid"), "{error}");
}

#[tokio::test]
async fn plain_text_is_for_this_machine_only() {
    let registry = Registry::start(Access::Everybody);
    push(&registry.reference("acme/shop:1"), component(1)).await.unwrap();
    // TLS is meant here, which the registry does not speak.
    let tls = Client::new(Transport::Tls, Duration::from_secs(60));
    let error = tls.pull(&registry.reference("acme/shop:1"), MIB, &Credentials::Anonymous).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    // 0.0.0.0 leads here as well, but is not known to: plain text has to be asked for.
    let text = format!("oci://0.0.0.0:{}/acme/shop:1", registry.address.port());
    let reference = Reference::parse(&text).unwrap();
    let error = pull(&reference).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let plain = Client::new(Transport::PlainText, Duration::from_secs(60));
    assert!(plain.pull(&reference, MIB, &Credentials::Anonymous).await.is_ok());
}

/// A registry that gives every request one answer.
fn liar(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Reference {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = Reference::parse(&format!("oci://{}/x:1", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let _ = stream.write_all(&answer(&String::from_utf8_lossy(&head)));
        }
    });
    reference
}

fn answer(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The manifest of one layer.
fn manifest(digest: &Digest, size: usize) -> Vec<u8> {
    let config =
        json!({"mediaType": "application/vnd.wasm.config.v0+json", "digest": Digest::of(b"{}").as_str(), "size": 2});
    let layer = json!({"mediaType": "application/wasm", "digest": digest.as_str(), "size": size});
    json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string().into_bytes()
}

#[tokio::test]
async fn a_registry_that_lies_is_found_out() {
    let good = component(10);
    let digest = Digest::of(&good);
    let with = |size: usize, blob: Vec<u8>| {
        let manifest = manifest(&digest, size);
        liar(move |head| answer(if head.contains("/manifests/") { &manifest } else { &blob }))
    };
    assert_eq!(pull(&with(good.len(), good.clone())).await.unwrap().bytes, good);
    // More than it said, without an end: it is not read any further.
    let error = pull(&with(good.len(), [&*good, &[0; 100_000]].concat())).await.unwrap_err();
    assert!(error.to_string().contains(&format!("more than the {} bytes", good.len())), "{error}");
    // Other bytes, and less than it said.
    for blob in [component(11), good[..good.len() - 1].to_vec()] {
        let error = pull(&with(blob.len(), blob)).await.unwrap_err();
        assert!(matches!(error, Error::DigestMismatch { .. }), "{error}");
    }
    // Another manifest than the one that is pinned.
    let reference = with(good.len(), good.clone());
    let error = pull(&reference.pinned(&Digest::of(b"another"))).await.unwrap_err();
    assert!(matches!(error, Error::DigestMismatch { .. }), "{error}");
}

#[tokio::test]
async fn a_registry_that_crashes_the_library_or_is_silent_is_an_error() {
    // A token that cannot stand in a header is where the library panics.
    let token = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let realm = token.clone();
    let reference = liar(move |head| {
        if head.starts_with("GET /token") {
            return answer(br#"{"token":"a\nb"}"#);
        }
        let challenge = format!("Bearer realm=\"http://{}/token\"", realm.get().unwrap());
        let head = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\nWWW-Authenticate: ";
        format!("{head}{challenge}\r\n\r\n").into_bytes()
    });
    token.set(reference.registry().to_owned()).unwrap();
    let error = pull(&reference).await.unwrap_err();
    assert!(matches!(error, Error::Client(_)), "{error}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = Reference::parse(&format!("oci://{}/x:1", listener.local_addr().unwrap())).unwrap();
    let impatient = Client::new(Transport::Automatic, Duration::from_millis(300));
    let error = impatient.pull(&reference, MIB, &Credentials::Anonymous).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. } | Error::Registry { .. }), "{error}");
}
