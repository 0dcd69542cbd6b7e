//! What dependencies have of what their component is granted, when they run.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::common::{Bench, guest};
use nala_compose::{ComposeError, Dependency, Main, compose};
use nala_egress::{AllowList, ConnectionLimit, EgressMetrics, Gate, GateConfig, Owner, SystemResolver};
use nala_keyvalue::{Config, KeyValue, Scope};
use nala_manifest::dependencies::{Configuration, Inheritance};
use nala_wasm::{Access, Capabilities, Files, Folder, MAX_COMPONENT_BYTES, Outbound};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const EVERY: [Configuration; 5] = [
    Configuration::AllowedOutboundHosts,
    Configuration::Environment,
    Configuration::Files,
    Configuration::KeyValueStores,
    Configuration::Variables,
];

fn only(these: &[Configuration]) -> Inheritance {
    Inheritance::Only(these.iter().copied().collect())
}

/// A guest that asks another.
fn composed(main: &str, dependency: &str, inherits: &Inheritance) -> Result<Vec<u8>, ComposeError> {
    let (main, bytes) = (std::fs::read(guest(main)).unwrap(), std::fs::read(guest(dependency)).unwrap());
    let name = "test:capabilities".parse().unwrap();
    let dependency = Dependency { name: &name, bytes: &bytes, export: None, inherits };
    compose(&Main { name: "composed", bytes: &main }, &[dependency], MAX_COMPONENT_BYTES)
}

/// A server that greets.
async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut part = [0; 4096];
                while let Ok(1..) = stream.read(&mut part).await {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
                }
            });
        }
    });
    address
}

/// Some of everything that a component can be granted.
async fn everything() -> (Capabilities, TempDir, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "text").unwrap();
    let folders = vec![Folder { host: folder.path().to_owned(), guest: "/data".to_owned(), access: Access::ReadOnly }];
    let store = KeyValue::in_memory(Config::default()).unwrap();
    let store = store.store(&Scope::new("tenant", "app").unwrap(), "default").unwrap();
    let address = server().await;
    let admit = Arc::new(ConnectionLimit::new(100, 100));
    let resolver = Arc::new(SystemResolver::default());
    let gate = Gate::new(GateConfig::default(), resolver, admit, EgressMetrics::default()).unwrap();
    let allowed = AllowList::parse(&[format!("http://{address}")]).unwrap();
    let egress = gate.egress(Owner::new("tenant", "component"), allowed);
    let capabilities = Capabilities {
        environment: [("MODE".to_owned(), "test".into())].into(),
        variables: [("token".to_owned(), "s3cret".into())].into(),
        files: Files { folders, ..Files::default() },
        key_value: [("default".to_owned(), store)].into(),
        outbound: Some(Outbound { egress, chain: None }),
        ..Capabilities::default()
    };
    (capabilities, folder, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_has_nothing_of_what_its_component_has() {
    let (capabilities, _folder, address) = everything().await;
    let bench = Bench::of(capabilities, &composed("composed", "capabilities", &only(&[])).unwrap());
    // The component itself has all of it.
    assert_eq!(bench.text("/own/environment").await, r#"[("MODE", "test")]"#);
    assert_eq!(bench.text("/own/folders").await, r#"["/data"]"#);
    assert_eq!(bench.text("/own/key-value?default").await, "Ok(())");
    assert_eq!(bench.text(&format!("/own/fetch?http://{address}/")).await, "200 hello");
    // Its dependency is told so by each interface, and goes on.
    assert_eq!(bench.text("/environment").await, "[]");
    assert!(bench.text("/files?list&/data&.").await.starts_with("no folder"));
    assert!(bench.text("/whole?/data/file").await.starts_with("Err("));
    for path in ["/key-value?default", "/wasi-key-value?default"] {
        assert_eq!(bench.text(path).await, "Error::AccessDenied", "{path}");
    }
    for _ in 0..3 {
        assert_eq!(bench.text(&format!("/fetch?http://{address}/")).await, "ErrorCode::HttpRequestDenied");
    }
    let many = bench.text(&format!("/fetch-many?200&http://{address}/")).await;
    assert!(many.starts_with("0 good, Some(\"ErrorCode::HttpRequestDenied\")"), "{many}");
    let told = bench.text("/variable?token").await;
    assert!(told.starts_with("Err(Error::Undefined(\"this dependency does not inherit it"), "{told}");
    assert!(told.contains("Err(Error::Provider(") && told.ends_with("Ok(None) Ok(None)"), "{told}");
    assert_eq!(bench.text("/variables").await, "Ok([]) Ok([])");
    let told = bench.text("/sockets").await;
    assert_eq!(told, r#"Err("access-denied") Err("access-denied") Err("permanent-resolver-failure")"#);
    // What gives no right is there.
    assert_eq!(bench.text("/log").await, "logged");
    assert!(bench.text("/waits?1").await.parse::<u64>().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_has_what_it_inherits_and_only_that() {
    let (capabilities, _folder, address) = everything().await;
    let fetch = format!("/fetch?http://{address}/");
    // A path, its answer for those who have the right, and which one that is.
    let ways = [
        (Configuration::Environment, "/environment", r#"("MODE", "test")"#),
        (Configuration::Files, "/whole?/data/file", "Ok(4)"),
        (Configuration::KeyValueStores, "/key-value?default", r#"Ok(Some("one"))"#),
        (Configuration::KeyValueStores, "/wasi-key-value?default", r#"Ok(Some("one"))"#),
        (Configuration::Variables, "/variable?token", r#"Ok("s3cret") Ok("s3cret")"#),
        (Configuration::AllowedOutboundHosts, &fetch, "200 hello"),
    ];
    let all = EVERY.map(|one| (BTreeSet::from([one]), only(&[one]))).into_iter();
    for (inherited, inherits) in all.chain([(EVERY.into(), only(&EVERY)), (EVERY.into(), Inheritance::All)]) {
        let bench = Bench::of(capabilities.clone(), &composed("composed", "capabilities", &inherits).unwrap());
        for (right, path, answer) in &ways {
            let told = bench.text(path).await;
            assert_eq!(told.contains(answer), inherited.contains(right), "{inherits:?} {path}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_for_interfaces_of_wasi_0_3() {
    let (capabilities, _folder, address) = everything().await;
    let fetch = format!("/fetch?http://{address}/");
    let denied = composed("composed_async", "capabilities_async", &only(&[])).unwrap();
    let bench = Bench::of(capabilities.clone(), &denied);
    assert_eq!(bench.text("/environment").await, "[]");
    assert_eq!(bench.text("/folders").await, "[]");
    assert_eq!(bench.text("/key-value?default").await, "Error::AccessDenied");
    assert!(bench.text("/variable?token").await.starts_with("Err(Error::Undefined("));
    assert_eq!(bench.text(&fetch).await, "ErrorCode::HttpRequestDenied");
    assert_eq!(bench.text("/sockets").await, "Err(ErrorCode::AccessDenied)");
    assert_eq!(bench.text("/look-up?localhost").await, "Err(ErrorCode::PermanentResolverFailure)");
    assert!(bench.text("/waits?1").await.parse::<u64>().is_ok());
    let inherited = composed("composed_async", "capabilities_async", &only(&EVERY)).unwrap();
    let bench = Bench::of(capabilities, &inherited);
    assert_eq!(bench.text("/environment").await, r#"[("MODE", "test")]"#);
    assert_eq!(bench.text("/folders").await, r#"["/data"]"#);
    assert!(bench.text("/key-value?default").await.contains(r#"Some("one")"#));
    assert_eq!(bench.text("/variable?token").await, r#"Ok("s3cret")"#);
    assert!(bench.text(&fetch).await.starts_with("200 hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dependency_leaves_behind_is_bounded() {
    let (capabilities, _folder, address) = everything().await;
    let bench = Bench::of(capabilities, &composed("composed", "capabilities", &only(&[])).unwrap());
    // More requests than a component may have handles, each denied and given back.
    let many = bench.text(&format!("/fetch-many?5000&http://{address}/")).await;
    assert!(many.ends_with("then ErrorCode::HttpRequestDenied"), "{many}");
    bench.until_empty().await;
}
