//! Model files that are none.

use std::ffi::OsStr;

use nala_e2e::host::Host;
use nala_e2e::paths;

fn refused(model: &OsStr) -> String {
    let refused = Host::refused(["up".as_ref(), "--model".as_ref(), model]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(!refused.stderr.contains("panicked"), "{}", refused.stderr);
    refused.stderr
}

#[test]
fn a_missing_file() {
    let said = refused("/no/such/model.gguf".as_ref());
    assert!(said.contains("/no/such/model.gguf"), "{said}");
}

#[test]
fn an_unknown_name() {
    let said = refused("smollm3".as_ref());
    assert!(said.contains("smollm3") && said.contains("smollm2-135m-instruct-q4_1"), "{said}");
}

#[test]
fn truncated_at_many_places() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(paths::model()).unwrap();
    for length in [0, 3, 4, 20, 1000, 100_000, 2_000_000, whole.len() / 2, whole.len() - 1] {
        let path = folder.path().join(format!("cut-at-{length}.gguf"));
        std::fs::write(&path, &whole[..length]).unwrap();
        let said = refused(path.as_os_str());
        assert!(said.contains(&format!("cut-at-{length}.gguf")), "{said}");
    }
}

#[test]
fn something_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.gguf");
    std::fs::write(&path, "This is not a model. ".repeat(1000)).unwrap();
    let said = refused(path.as_os_str());
    assert!(said.contains("GGUF"), "{said}");
}
