//! Handlers that cannot be served, and handlers that misbehave.

use std::path::Path;

use nala_e2e::host::Host;

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
    assert!(said.contains("app.wasm") && said.to_lowercase().contains("not"), "{said}");
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
