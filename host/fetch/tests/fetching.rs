//! Fetching from a real registry and from a small server, and what is kept of it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

#[path = "../../oci/tests/registry/mod.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod registry;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use nala_fetch::{Error, Fetched, Fetcher, Network, Settings, Wanted, Was};
use nala_manifest::source::{Download, Package};
use nala_oci::{Client, Credentials, Digest, Reach, Reference, Transport};
use registry::{Access, Registry};

fn component(number: u32) -> Vec<u8> {
    wat::parse_str(format!(r#"(component (@custom "number" "{number}"))"#)).unwrap()
}

fn push(reference: &Reference, bytes: Vec<u8>) -> Digest {
    let client = Client::new(Transport::Automatic, Duration::from_secs(60), Reach::Anybody).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let none = BTreeMap::new();
    let pushed = client.push(reference, bytes, &none, SystemTime::UNIX_EPOCH, &Credentials::Anonymous);
    runtime.block_on(pushed).unwrap()
}

struct Kept {
    folder: tempfile::TempDir,
}

impl Kept {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn fetcher(&self, network: Network) -> Fetcher {
        Fetcher::new(Settings {
            folder: self.folder.path().to_owned(),
            max_bytes: 100_000,
            limit: Duration::from_secs(60),
            network,
            plain_text: Vec::new(),
        })
    }

    fn fetch(&self, wanted: &Wanted<'_>) -> Result<Fetched, Error> {
        self.fetcher(Network::Used).fetch(wanted, &mut |_, _| {})
    }

    fn offline(&self, wanted: &Wanted<'_>) -> Result<Fetched, Error> {
        self.fetcher(Network::Unused).fetch(wanted, &mut |_, _| {})
    }
}

fn bytes(fetched: &Fetched) -> Vec<u8> {
    std::fs::read(&fetched.path).unwrap()
}

#[test]
fn what_is_pinned_is_fetched_once_and_looked_at_each_time() {
    let registry = Registry::start(Access::Everybody);
    let tag = registry.reference("acme/shop:1");
    let pinned = tag.pinned(&push(&tag, component(1)));
    let kept = Kept::new();
    let wanted = Wanted::Reference(pinned.clone());
    let error = kept.offline(&wanted).unwrap_err();
    assert!(matches!(&error, Error::Offline(what) if *what == pinned.to_string()), "{error}");
    let mut heard = Vec::new();
    let first = kept.fetcher(Network::Used).fetch(&wanted, &mut |done, total| heard.push((done, total))).unwrap();
    let size = component(1).len() as u64;
    assert_eq!((first.was, &first.pinned, bytes(&first)), (Was::Elsewhere, &Some(pinned.clone()), component(1)));
    assert_eq!(heard.last(), Some(&(size, Some(size))));
    // The tag goes on, and what was pinned is what it was.
    push(&tag, component(2));
    assert_eq!(bytes(&kept.fetch(&Wanted::Reference(tag.clone())).unwrap()), component(2));
    assert_eq!(kept.fetch(&wanted).unwrap().was, Was::Kept);
    // Changed on the disk, it is fetched again; without the registry it is an error.
    std::fs::write(&first.path, b"something else").unwrap();
    let again = kept.fetch(&wanted).unwrap();
    assert_eq!((again.was, bytes(&again)), (Was::Elsewhere, component(1)));
    drop(registry);
    assert_eq!(kept.fetch(&wanted).unwrap().was, Was::Kept);
    assert_eq!(bytes(&kept.offline(&wanted).unwrap()), component(1));
    std::fs::write(&first.path, b"something else").unwrap();
    let error = kept.fetch(&wanted).unwrap_err();
    assert!(matches!(error, Error::Remote(nala_oci::Error::Unreachable { .. })), "{error}");
    let error = kept.fetch(&Wanted::Reference(tag)).unwrap_err();
    assert!(matches!(error, Error::Remote(nala_oci::Error::Unreachable { .. })), "a tag is always looked up: {error}");
}

#[test]
fn a_package_is_what_it_was_when_it_was_fetched_first() {
    let registry = Registry::start(Access::Everybody);
    let exact = |version: &str| Package {
        registry: Some(registry.address.to_string()),
        package: "acme:shop".to_owned(),
        version: version.parse().unwrap(),
    };
    let newest = |version: &str| Package {
        registry: Some(registry.address.to_string()),
        package: "acme:shop".to_owned(),
        version: version.parse().unwrap(),
    };
    for (number, version) in [(1, "1.0.0"), (2, "1.2.0"), (3, "2.0.0-rc.1"), (4, "latest")] {
        push(&registry.reference(&format!("acme/shop:{version}")), component(number));
    }
    let kept = Kept::new();
    let first = kept.fetch(&Wanted::Package(&exact("1.0.0"))).unwrap();
    assert_eq!((first.was, bytes(&first)), (Was::Elsewhere, component(1)));
    push(&registry.reference("acme/shop:1.0.0"), component(5));
    for again in [kept.fetch(&Wanted::Package(&exact("1.0.0"))), kept.offline(&Wanted::Package(&exact("1.0.0")))] {
        let again = again.unwrap();
        assert_eq!((again.was, bytes(&again), again.pinned.as_ref()), (Was::Kept, component(1), first.pinned.as_ref()));
    }
    // Somebody else sees what it is now.
    assert_eq!(bytes(&Kept::new().fetch(&Wanted::Package(&exact("1.0.0"))).unwrap()), component(5));

    assert_eq!(bytes(&kept.fetch(&Wanted::Newest(&newest("1"))).unwrap()), component(2));
    assert_eq!(bytes(&kept.fetch(&Wanted::Newest(&newest("<1.1"))).unwrap()), component(1));
    push(&registry.reference("acme/shop:1.3.0"), component(6));
    assert_eq!(bytes(&kept.offline(&Wanted::Newest(&newest("1"))).unwrap()), component(2));
    assert_eq!(bytes(&kept.fetch(&Wanted::Newest(&newest("1"))).unwrap()), component(6));
    assert!(matches!(kept.offline(&Wanted::Newest(&newest("2"))), Err(Error::Offline(_))));
    let error = kept.fetch(&Wanted::Newest(&newest("3"))).unwrap_err().to_string();
    assert!(error.contains("no version of acme:shop") && error.contains("2.0.0-rc.1, 1.3.0, 1.2.0, 1.0.0"), "{error}");
    let error = kept.fetch(&Wanted::Package(&exact("1.9.0"))).unwrap_err();
    assert!(matches!(error, Error::Remote(nala_oci::Error::NotFound(_))), "{error}");
    let nowhere = Package { registry: None, ..exact("1.0.0") };
    let error = kept.fetch(&Wanted::Package(&nowhere)).unwrap_err().to_string();
    assert!(error.contains("registry ="), "{error}");
}

/// A server of files, which counts what it is asked.
fn serve(files: BTreeMap<&'static str, Vec<u8>>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            counted.fetch_add(1, Ordering::SeqCst);
            let head = String::from_utf8_lossy(&head).into_owned();
            let file = files.get(head.split(' ').nth(1).unwrap_or_default());
            let status = if file.is_some() { "200 OK" } else { "404 Not Found" };
            let body = file.cloned().unwrap_or_default();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    (address, asked)
}

#[test]
fn a_file_of_the_web_is_fetched_once() {
    let (address, asked) = serve(BTreeMap::from([("/a.wasm", component(1)), ("/large.wasm", vec![0; 100_001])]));
    let file = |path: &str, digest: &Digest| Download {
        url: format!("http://{address}{path}"),
        digest: digest.as_str().parse().unwrap(),
    };
    let kept = Kept::new();
    let good = file("/a.wasm", &Digest::of(&component(1)));
    let first = kept.fetch(&Wanted::Url(&good)).unwrap();
    assert_eq!((first.was, bytes(&first), first.pinned), (Was::Elsewhere, component(1), None));
    assert_eq!(kept.fetch(&Wanted::Url(&good)).unwrap().was, Was::Kept);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    for (wrong, why) in [
        (file("/a.wasm", &Digest::of(b"x")), "somebody changed it"),
        (file("/large.wasm", &Digest::of(b"x")), "more than 100000 bytes"),
        (file("/b.wasm", &Digest::of(b"x")), "answers 404"),
        (Download { url: "http://a.example/x".to_owned(), ..good.clone() }, "in plain text"),
    ] {
        // An address that changes its mind about what it has is of no use, whatever was kept.
        let wrong = Download { digest: Digest::of(b"x").as_str().parse().unwrap(), ..wrong };
        let error = kept.fetch(&Wanted::Url(&wrong)).unwrap_err().to_string();
        assert!(error.contains(why), "{wrong:?}: {error}");
    }
}

#[test]
fn what_stands_in_a_manifest_is_wanted_or_is_here() {
    let text = format!(
        "spin_manifest_version = 2\n[application]\nname = \"x\"\n[[trigger.http]]\nroute = \"/\"\ncomponent = \"a\"\n\
         [component.a]\nsource = \"a.wasm\"\n[component.a.dependencies]\n\
         \"a:url\" = {{ url = \"https://a.example/x\", digest = \"{digest}\" }}\n\
         \"a:newest\" = \"1.0\"\n\"a:path\" = {{ path = \"x.wasm\" }}\n\
         [component.b]\nsource = \"oci://r.example/shop@{digest}\"\n",
        digest = Digest::of(b"x")
    );
    let application = nala_manifest::Application::parse(&text, std::path::Path::new(""), None).unwrap();
    let component = |id: &str| application.component(id).unwrap();
    assert!(Wanted::of(&component("a").source).unwrap().is_none());
    assert!(matches!(Wanted::of(&component("b").source).unwrap(), Some(Wanted::Reference(_))));
    let behind: Vec<_> = component("a").dependencies.values().map(|one| Wanted::behind(&one.from)).collect();
    assert!(matches!(&behind[..], [Some(Wanted::Newest(_)), None, Some(Wanted::Url(_))]), "{behind:?}");
}

#[test]
fn a_registry_may_say_where_its_packages_are() {
    let registry = Registry::start(Access::Everybody);
    push(&registry.reference("web/acme/shop:1.0.0"), component(1));
    let well_known = format!(r#"{{"oci":{{"registry":"{}","namespacePrefix":"web/"}}}}"#, registry.address);
    let (address, _) = serve(BTreeMap::from([("/.well-known/wasm-pkg/registry.json", well_known.into_bytes())]));
    let package = Package {
        registry: Some(address.to_string()),
        package: "acme:shop".to_owned(),
        version: "1.0.0".parse().unwrap(),
    };
    let kept = Kept::new();
    let fetched = kept.fetch(&Wanted::Package(&package)).unwrap();
    assert_eq!(bytes(&fetched), component(1));
    assert!(fetched.pinned.unwrap().to_string().starts_with(&format!("oci://{}/web/acme/shop", registry.address)));
    let (address, _) = serve(BTreeMap::from([("/.well-known/wasm-pkg/registry.json", vec![b' '; 70_000])]));
    let package = Package { registry: Some(address.to_string()), ..package };
    let error = Kept::new().fetch(&Wanted::Package(&package)).unwrap_err().to_string();
    assert!(error.contains("more than 65536 bytes"), "{error}");
}
