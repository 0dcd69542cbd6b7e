//! The examples of docs/applications.md are read.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "helpers of tests fail by panicking")]

use std::path::Path;

use nala_manifest::Application;

/// What an example that is a part of a manifest is a part of.
const AROUND: &str = "spin_manifest_version = 2\n[application]\nname = \"app\"\n\
    [[trigger.http]]\nroute = \"/...\"\ncomponent = \"chat\"\n[component.chat]\nsource = \"chat.wasm\"\n";

/// The examples, each with the number of its first line.
fn examples() -> Vec<(usize, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/applications.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut examples = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line) {
            (None, "```toml") => open = Some((index + 2, String::new())),
            (Some(_), "```") => examples.extend(open.take()),
            (Some((_, example)), line) => example.push_str(&format!("{line}\n")),
            (None, _) => {}
        }
    }
    examples
}

fn read(line: usize, example: &str) -> Application {
    let whole = match example.contains("spin_manifest_version") {
        true => example.to_owned(),
        false => format!("{AROUND}{}", example.strip_prefix("[component.chat]\n").unwrap_or(example)),
    };
    match Application::parse(&whole, Path::new(""), None) {
        Ok(application) => application,
        Err(error) => panic!("the example in line {line}: {error}"),
    }
}

#[test]
fn every_example_is_read_without_a_word() {
    let examples = examples();
    assert!(examples.len() >= 8, "{} examples", examples.len());
    for (line, example) in examples {
        let application = read(line, &example);
        assert!(application.warnings.is_empty(), "line {line}: {:?}", application.warnings);
    }
}

#[test]
fn every_limit_is_in_an_example() {
    let example = examples().into_iter().find(|(_, example)| example.contains("saved_sessions")).unwrap();
    let application = read(example.0, &example.1);
    let limits = application.component("chat").unwrap().limits;
    let shown = format!("{limits:?}");
    assert!(!shown.contains("None"), "{shown}");
}
