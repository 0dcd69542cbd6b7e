//! The engine alone beside transformers: the same variables, byte for byte.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test, its helpers included")]

mod golden;

use chat_template::Error;
use golden::{Goldens, Outcome, templates};

#[test]
fn every_template_renders_as_in_transformers() {
    let goldens = Goldens::read();
    let all: Vec<_> = templates("corpus").into_iter().chain(templates("templates")).collect();
    let mut differ = Vec::new();
    for (name, source) in &all {
        for (conversation, expected) in goldens.of(name) {
            let found = goldens.raw(source, &conversation);
            let same = match (&expected, &found) {
                (Outcome::Prompt(a) | Outcome::Locked(a), Ok(b)) => a == b,
                (Outcome::Refused(a), Err(Error::Refused(b))) => a == b,
                (Outcome::Failed(_), Err(Error::Template(_))) => true,
                _ => false,
            };
            if !same {
                differ.push(format!("{name} / {conversation}: {}", golden::difference(&expected, &found)));
            }
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}
