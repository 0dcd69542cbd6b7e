//! Key-value data by all three interfaces.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use crate::common::Bench;
use nala_keyvalue::{Config, KeyValue, Scope, Store};
use nala_wasm::{Capabilities, Limits};

fn data() -> KeyValue {
    KeyValue::in_memory(Config::default()).unwrap()
}

fn store(data: &KeyValue, application: &str, name: &str) -> Store {
    data.store(&Scope::new("tenant", application).unwrap(), name).unwrap()
}

fn granted(stores: &[(&str, &Store)]) -> Capabilities {
    let key_value = stores.iter().map(|(label, store)| ((*label).to_owned(), (*store).clone())).collect();
    Capabilities { key_value, ..Capabilities::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn spins_interface_reads_and_writes() {
    let store = store(&data(), "app", "default");
    let bench = Bench::granted(granted(&[("default", &store)]));
    let told = bench.text("/key-value?default").await;
    let said = r#"Ok(()) Ok(Some("one")) (Ok(true), Ok(false)) Ok(["a"]) Ok(()) Ok(None)"#;
    assert_eq!(told, said);
    store.set("kept", b"x").unwrap();
    assert!(bench.text("/key-value?default").await.contains(r#"Ok(["a", "kept"])"#), "other requests see it");
    assert_eq!(bench.text("/key-value?other").await, "Error::AccessDenied");
}

#[tokio::test(flavor = "multi_thread")]
async fn spins_asynchronous_interface_reads_and_writes() {
    let store = store(&data(), "app", "default");
    let bench = Bench::granted_within(Limits::default(), granted(&[("default", &store)]), "capabilities_async");
    let told = bench.text("/key-value?default").await;
    assert_eq!(told, r#"Ok(()) Ok(Some("one")) Ok(true) ["a"] Ok(()) Ok(())"#);
    assert_eq!(bench.text("/key-value?other").await, "Error::AccessDenied");
}

#[tokio::test(flavor = "multi_thread")]
async fn wasis_interfaces_read_write_count_and_swap() {
    let store = store(&data(), "app", "default");
    let bench = Bench::granted(granted(&[("default", &store)]));
    let told = bench.text("/wasi-key-value?default").await;
    let said = r#"Ok(()) Ok(Some("one")) (Ok(2), Ok(-1), true) Ok(()) Ok([Some(("b", [116, 119, 111])), None]) "#;
    assert!(told.starts_with(said), "{told}");
    assert!(told.ends_with(r#"Ok((["a", "b", "n"], None)) Ok(()) (Ok(false), Ok(()))"#), "{told}");
    assert_eq!(bench.text("/key-value-swap?default").await, r#"Some("old") Some("between") true Some("new")"#);
    assert_eq!(bench.text("/wasi-key-value?other").await, "Error::AccessDenied");
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_have_the_shape_that_a_component_was_built_for() {
    let store = store(&data(), "app", "default");
    let bench = Bench::granted_within(Limits::default(), granted(&[("default", &store)]), "capabilities_async");
    assert_eq!(bench.text("/batch?default").await, r#"Ok([("a", Some([111, 110, 101])), ("none", None)])"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_what_the_grant_says_it_is() {
    let data = data();
    let (own, others) = (store(&data, "app", "default"), store(&data, "other", "default"));
    others.set("theirs", b"x").unwrap();
    let bench = Bench::granted(granted(&[("default", &own), ("second", &store(&data, "app", "second"))]));
    assert!(bench.text("/key-value?default").await.contains(r#"Ok(["a"])"#));
    own.set("mine", b"x").unwrap();
    assert!(bench.text("/key-value?second").await.contains(r#"Ok(["a"])"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn open_stores_are_handles() {
    let store = store(&data(), "app", "default");
    let limits = Limits { handles: 50, ..Limits::default() };
    let bench = Bench::granted_within(limits, granted(&[("default", &store)]), "capabilities");
    assert_eq!(bench.text("/key-value-handles?default").await, "25 then Error::StoreTableFull");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_reads_and_writes_so_many_bytes() {
    let store = store(&data(), "app", "default");
    let limits = Limits { key_value_bytes: 6 << 10, ..Limits::default() };
    let bench = Bench::granted_within(limits, granted(&[("default", &store)]), "capabilities");
    // Four are written and two read.
    let told = bench.text("/key-value-bytes?default").await;
    assert!(told.starts_with("6 then Error::Other(") && told.contains("`key_value_bytes`"), "{told}");
    // The next request has as many again.
    assert!(bench.text("/key-value-bytes?default").await.starts_with("6 then"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owners_quota_is_told_as_an_error() {
    let mut config = Config::default();
    config.limits.tenant_bytes = 3000;
    let data = KeyValue::in_memory(config).unwrap();
    let bench = Bench::granted(granted(&[("default", &store(&data, "app", "default"))]));
    assert!(bench.text("/key-value?default").await.starts_with("Ok(())"));
    store(&data, "app", "second").set("full", &[0; 2900]).unwrap();
    let told = bench.text("/key-value-bytes?default").await;
    assert!(told.starts_with("0 then Error::Other(") && told.contains("3000"), "{told}");
}
