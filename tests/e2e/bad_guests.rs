//! Handlers that cannot be served, and handlers that misbehave.

use std::path::Path;
use std::time::Duration;

use nala_e2e::host::Host;
use nala_e2e::metrics::eventually;

fn refused(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    refused_at(&path)
}

fn refused_at(path: &Path) -> String {
    let refused = Host::refused(["run".as_ref(), path.as_os_str()]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(!refused.stderr.contains("panicked"), "{}", refused.stderr);
    refused.stderr
}

#[test]
fn no_file() {
    let said = refused_at(Path::new("/no/such/app.wasm"));
    assert!(said.contains("/no/such/app.wasm"), "{said}");
}

#[test]
fn not_wasm() {
    let said = refused("app.wasm", b"#!/bin/sh\necho hello\n");
    assert!(said.contains("app.wasm is not WebAssembly") && said.contains(".wasm file"), "{said}");
}

#[test]
fn a_core_module() {
    let module = wat::parse_str("(module (func (export \"_start\")))").unwrap();
    let said = refused("core.wasm", &module);
    assert!(said.contains("core module") && said.contains("wasm32-wasip2"), "{said}");
}

#[test]
fn an_import_that_does_not_exist() {
    let component =
        wat::parse_str(r#"(component (import "acme:rockets/launch@1.0.0" (instance (export "fire" (func)))))"#)
            .unwrap();
    let said = refused("rockets.wasm", &component);
    assert!(said.contains("acme:rockets/launch"), "{said}");
}

#[test]
fn a_component_that_handles_nothing() {
    let said = refused("empty.wasm", &wat::parse_str("(component)").unwrap());
    assert!(said.contains("wasi:http"), "{said}");
}

/// A guest that misbehaves by path, served by the real binary.
fn misbehaving() -> Host {
    Host::run(nala_e2e::guests::guest("host/wasm/guests", "behaviours"))
}

#[test]
fn a_guest_that_traps_spins_or_grows_harms_itself_only() {
    let host = misbehaving();
    for (path, status, code) in [
        ("/trap", 500, "guest_trapped"),
        ("/panic", 500, "guest_trapped"),
        ("/silent", 500, "no_response"),
        ("/spin", 500, "cpu_limit"),
        ("/grow", 500, "memory_limit"),
    ] {
        let url = host.url(path);
        let bad = std::thread::spawn(move || nala_e2e::chat::get(&url));
        let begin = std::time::Instant::now();
        let (neighbour, text) = nala_e2e::chat::get(&host.url("/hello"));
        assert_eq!((neighbour, text.as_str()), (200, Some("hello")), "beside {path}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{path} held its neighbour up");
        let (got, answer) = bad.join().unwrap();
        assert_eq!((got, answer["error"]["code"].as_str()), (status, Some(code)), "{path}: {answer}");
    }
    // An instance is dropped a moment after its answer has left.
    eventually("all instances are gone", Duration::from_secs(5), || host.metrics().sum("nala_wasm_instances") == 0.0);
    assert_eq!(nala_e2e::chat::get(&host.url("/hello")).0, 200);
}

#[test]
fn a_response_that_breaks_off_does_not_look_complete() {
    let host = misbehaving();
    for path in ["/trap-late", "/spin-late"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let said = nala_e2e::raw::Raw::send(&host.address, request.as_bytes()).read_to_end();
        // What was written just before may be lost with the connection.
        assert!(!said.ends_with("0\r\n\r\n"), "{path} ended as if it were complete: {said}");
    }
}
