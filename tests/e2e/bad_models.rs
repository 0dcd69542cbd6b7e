//! Model files that are none.

use std::ffi::OsStr;

use nala_e2e::host::Host;
use nala_e2e::paths;

fn refused(model: &OsStr) -> String {
    refused_with(&["--model".as_ref(), model])
}

fn refused_with(args: &[&OsStr]) -> String {
    let refused = Host::refused(["up".as_ref()].into_iter().chain(args.iter().copied()));
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

/// The model, and what else is said.
fn refused_beside(args: &[&str]) -> String {
    let model = format!("good={}", paths::model().display());
    let args: Vec<&OsStr> = ["--model", &model].into_iter().chain(args.iter().copied()).map(OsStr::new).collect();
    let said = refused_with(&args);
    assert!(!said.contains("Loading"), "it is told before anything is loaded: {said}");
    said
}

#[test]
fn one_of_several() {
    let said = refused_beside(&["--model", "/no/such/second.gguf"]);
    assert!(said.contains("/no/such/second.gguf"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gguf");
    std::fs::write(&path, &std::fs::read(paths::model()).unwrap()[..2_000_000]).unwrap();
    let said = refused_beside(&["--model", &path.display().to_string()]);
    assert!(said.contains("cut.gguf"), "{said}");
}

#[test]
fn names_and_memory_that_cannot_be() {
    let again = format!("good={}", paths::model().display());
    let said = refused_beside(&["--model", &again]);
    assert!(said.contains("two models are named good") && said.contains("--model OTHER="), "{said}");
    let other = format!("other={}", paths::model().display());
    let said = refused_beside(&["--model", &other, "--model-memory", "100MiB"]);
    assert!(said.contains("good needs") || said.contains("other needs"), "{said}");
    assert!(said.contains("100.0 MiB") && said.contains("raise --model-memory"), "{said}");
    let said = refused_beside(&["--model-memory", "100MiB"]);
    assert!(said.contains("100.0 MiB") && said.contains("raise --model-memory"), "{said}");
    let said = refused_beside(&["--resident", "third"]);
    assert!(said.contains("third") && said.contains("good"), "{said}");
}
