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

use nala_oci::{Client, Credentials, Digest, Error, Listed, Pulled, Reach, Reference, Transport, component_of};
use registry::{Access, Registry};
use serde_json::json;

const MIB: u64 = 1 << 20;

fn client() -> Client {
    Client::new(Transport::Automatic, Duration::from_secs(60), Reach::Anybody).unwrap()
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
    let expected = pull(&reference).await.unwrap();
    assert_eq!((&expected.bytes, &expected.digest, &expected.component), (&bytes, &digest, &Digest::of(&bytes)));
    assert_eq!(Digest::of(&expected.manifest), digest);
    assert_eq!(component_of(&expected.manifest, &reference).unwrap(), expected.component);
    assert_eq!(client().resolve(&reference, &Credentials::Anonymous).await.unwrap(), digest);
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
    let tls = client().by(Transport::Tls);
    let error = tls.pull(&registry.reference("acme/shop:1"), MIB, &Credentials::Anonymous).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    // 0.0.0.0 leads here as well, but is not known to: plain text has to be asked for.
    let text = format!("oci://0.0.0.0:{}/acme/shop:1", registry.address.port());
    let reference = Reference::parse(&text).unwrap();
    let error = pull(&reference).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let plain = client().by(Transport::PlainText);
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
            let head = String::from_utf8_lossy(&head).into_owned();
            // Left unread, it would break the connection.
            let length =
                head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let _ = std::io::copy(&mut (&stream).take(length.unwrap_or(0)), &mut std::io::sink());
            let _ = stream.write_all(&answer(&head));
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

/// The head of an answer that has no body.
fn head(status: &str, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n{more}\r\n\r\n").into_bytes()
}

/// The head of an answer whose body goes on, and more of that than anybody should keep.
fn endless(status: &str) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n").into_bytes();
    bytes.resize(bytes.len() + (32 << 20), b'x');
    bytes
}

#[tokio::test]
async fn a_token_that_no_header_can_hold_and_silence_are_errors() {
    let realm = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let to = realm.clone();
    let reference = liar(move |asked| match asked.starts_with("GET /token") {
        true => answer(br#"{"token":"a\nb"}"#),
        false => {
            head("401 Unauthorized", &format!("WWW-Authenticate: Bearer realm=\"http://{}/token\"", to.get().unwrap()))
        }
    });
    realm.set(reference.registry().to_owned()).unwrap();
    let error = pull(&reference).await.unwrap_err();
    assert!(error.to_string().contains("its token has characters that none may have"), "{error}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = Reference::parse(&format!("oci://{}/x:1", listener.local_addr().unwrap())).unwrap();
    let impatient = Client::new(Transport::Automatic, Duration::from_millis(300), Reach::Anybody).unwrap();
    let error = impatient.pull(&reference, MIB, &Credentials::Anonymous).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. } | Error::Registry { .. }), "{error}");
}

#[tokio::test]
async fn what_a_registry_sends_is_read_up_to_a_bound() {
    let error = pull(&liar(|_| endless("200 OK"))).await.unwrap_err();
    assert!(error.to_string().contains("a manifest of more than 4194304 bytes"), "{error}");
    // The words of an error are left out where they have no end.
    let error = pull(&liar(|_| endless("500 Broken"))).await.unwrap_err();
    assert!(error.to_string().ends_with("500 Internal Server Error"), "{error}");
    let error = client().tags(&liar(|_| endless("200 OK")), &Credentials::Anonymous).await.unwrap_err();
    assert!(error.to_string().contains("a page of tags of more than"), "{error}");
    let realm = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let to = realm.clone();
    let reference = liar(move |asked| match asked.starts_with("GET /token") {
        true => endless("200 OK"),
        false => {
            head("401 Unauthorized", &format!("WWW-Authenticate: Bearer realm=\"http://{}/token\"", to.get().unwrap()))
        }
    });
    realm.set(reference.registry().to_owned()).unwrap();
    let error = pull(&reference).await.unwrap_err();
    assert!(error.to_string().contains("a token of more than"), "{error}");
}

#[tokio::test]
async fn redirects_are_followed_a_few_times_and_shown_no_password() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let asked_there = seen.clone();
    let good = component(10);
    let blob = good.clone();
    let storage = liar(move |asked| {
        asked_there.lock().unwrap().push(asked.to_lowercase());
        answer(&blob)
    });
    let (manifest, to) = (manifest(&Digest::of(&good), good.len()), storage.registry().to_owned());
    let registry = liar(move |asked| match asked {
        asked if !asked.to_lowercase().contains("authorization: basic") => {
            head("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"")
        }
        asked if asked.contains("/manifests/") => answer(&manifest),
        _ => head("307 Temporary Redirect", &format!("Location: http://{to}/storage")),
    });
    let password = Credentials::Password { user: "nala".to_owned(), password: "open sesame".to_owned() };
    assert_eq!(client().pull(&registry, MIB, &password).await.unwrap().bytes, good);
    let seen = seen.lock().unwrap().join("");
    assert!(seen.contains("get /storage") && !seen.contains("authorization"), "{seen}");

    let around = liar(|asked| {
        let path = asked.split(' ').nth(1).unwrap_or_default();
        head("302 Found", &format!("Location: {path}x"))
    });
    let error = pull(&around).await.unwrap_err();
    assert!(matches!(&error, Error::Misled { why, .. } if why.contains("more than 5 times")), "{error}");
    // Plain text stays on this machine, for what is fetched and for tokens alike.
    for more in [
        "302 Found\r\nLocation: http://registry.example/",
        "401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"http://registry.example/\"",
    ] {
        let (status, header) = more.split_once("\r\n").unwrap();
        let error = pull(&liar(move |_| head(status, header))).await.unwrap_err();
        assert!(
            matches!(&error, Error::Misled { why, .. } if why.contains("registry.example in plain text")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn where_a_registry_leads_an_upload_no_password_is_shown() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let asked_there = seen.clone();
    let storage = liar(move |asked| {
        asked_there.lock().unwrap().push(asked.to_lowercase());
        head("201 Created", "")
    });
    let to = storage.registry().to_owned();
    let registry = liar(move |asked| match asked {
        asked if !asked.to_lowercase().contains("authorization: basic") => {
            head("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"")
        }
        asked if asked.starts_with("HEAD") => head("404 Not Found", ""),
        asked if asked.starts_with("POST") => head("202 Accepted", &format!("Location: http://{to}/upload?x=1")),
        _ => head("201 Created", ""),
    });
    let password = Credentials::Password { user: "nala".to_owned(), password: "open sesame".to_owned() };
    let mut heard = Vec::new();
    let bytes = component(200_000);
    let size = bytes.len() as u64;
    let mut progress = |done, total| heard.push((done, total));
    let pushed = client()
        .push_showing(&registry, bytes, &BTreeMap::new(), SystemTime::UNIX_EPOCH, &password, &mut progress)
        .await;
    assert!(pushed.is_ok(), "{pushed:?}");
    assert_eq!(heard.last(), Some(&(size, Some(size))));
    let seen = seen.lock().unwrap().join("");
    assert_eq!(seen.matches("put /upload?x=1&digest=sha256").count(), 2, "{seen}");
    assert!(!seen.contains("authorization"), "{seen}");
    // Nor is it led to plain text elsewhere.
    let registry = liar(|asked| match asked.starts_with("POST") {
        true => head("202 Accepted", "Location: http://a.example/upload"),
        false => head("404 Not Found", ""),
    });
    let error = push(&registry, component(1)).await.unwrap_err();
    assert!(matches!(&error, Error::Misled { why, .. } if why.contains("a.example in plain text")), "{error}");
}

#[tokio::test]
async fn on_behalf_of_others_only_what_is_listed_is_asked() {
    let registry = Registry::start(Access::Everybody);
    let reference = registry.reference("acme/shop:1");
    push(&reference, component(1)).await.unwrap();
    let listing = |registries: &[&str]| {
        let reach = Reach::Listed(Listed::new(registries.iter().copied(), |address| !address.is_loopback()));
        Client::new(Transport::Automatic, Duration::from_secs(60), reach).unwrap()
    };
    let address = registry.address.to_string();
    assert!(listing(&[&address]).pull(&reference, MIB, &Credentials::Anonymous).await.is_ok());
    for others in [&["registry.example"][..], &[]] {
        let error = listing(others).pull(&reference, MIB, &Credentials::Anonymous).await.unwrap_err();
        assert!(matches!(&error, Error::Misled { why, .. } if why.contains("no public address")), "{error}");
    }
    // One that is listed and leads to another on this machine.
    let leading = liar(move |_| head("302 Found", &format!("Location: http://{address}/v2/")));
    let error = listing(&[leading.registry()]).pull(&leading, MIB, &Credentials::Anonymous).await.unwrap_err();
    assert!(matches!(&error, Error::Misled { why, .. } if why.contains("no public address")), "{error}");
}

#[tokio::test]
async fn the_tags_of_a_repository_are_listed() {
    let registry = Registry::start(Access::Everybody);
    for tag in ["1.0.0", "1.2.0", "latest"] {
        push(&registry.reference(&format!("acme/shop:{tag}")), component(1)).await.unwrap();
    }
    let mut tags = client().tags(&registry.reference("acme/shop"), &Credentials::Anonymous).await.unwrap();
    tags.sort();
    assert_eq!(tags, ["1.0.0", "1.2.0", "latest"]);
    let error = client().tags(&registry.reference("acme/blog"), &Credentials::Anonymous).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error}");
    // Pages without an end.
    let around = liar(|_| {
        let body = br#"{"tags":["1"]}"#;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\nLink: </v2/x/tags/list>; rel=\"next\"\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    });
    let error = client().tags(&around, &Credentials::Anonymous).await.unwrap_err();
    assert!(error.to_string().contains("more than 20 pages"), "{error}");
}

#[tokio::test]
async fn a_file_is_downloaded_by_its_digest() {
    let good = component(10);
    let blob = good.clone();
    let reference = liar(move |asked| match asked {
        asked if asked.starts_with("GET /good") => answer(&blob),
        asked if asked.starts_with("GET /away") => head("302 Found", "Location: http://a.example/"),
        asked if asked.starts_with("GET /short") => {
            [&b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nConnection: close\r\n\r\n"[..], b"abc"].concat()
        }
        asked if asked.starts_with("GET /endless") => endless("200 OK"),
        _ => head("404 Not Found", ""),
    });
    let get = async |path: &str, digest: &Digest| {
        let url = url::Url::parse(&format!("http://user:secret@{}{path}", reference.registry())).unwrap();
        client().download(&url, digest, MIB, &mut |_, _| {}).await
    };
    let digest = Digest::of(&good);
    assert_eq!(get("/good", &digest).await.unwrap(), good);
    for (path, digest, why) in [
        ("/good", &Digest::of(b"other"), "somebody changed it"),
        ("/gone", &digest, "answers 404: check the address"),
        ("/away", &digest, "a.example in plain text"),
        ("/short", &digest, "it ended before the file did"),
        ("/endless", &digest, "more than 1048576 bytes"),
    ] {
        let error = get(path, digest).await.unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("secret"), "{path}: {error}");
    }
    let plain = url::Url::parse("http://a.example/x.wasm").unwrap();
    let error = client().download(&plain, &digest, MIB, &mut |_, _| {}).await.unwrap_err();
    assert!(matches!(error, Error::PlainText(_)), "{error}");
}
