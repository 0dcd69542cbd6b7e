//! The official clients find what they know from the services that they are made for.
//!
//! Each test is a script in `tests/python` or `tests/node`.

use nala_e2e::host::Host;
use nala_e2e::scripts::{Runner, holds};

/// Runs a script under both majors of OpenAI's Python client.
fn python(script: &str) {
    let host = Host::up();
    holds(&host, Runner::Python, script);
    holds(&host, Runner::PythonBefore, script);
}

fn node(script: &str) {
    holds(&Host::up(), Runner::Node, script);
}

#[test]
fn pythons_openai_completes_chats() {
    python("openai_chat.py");
}

#[test]
fn pythons_openai_calls_tools() {
    python("openai_tools.py");
}

#[test]
fn pythons_openai_parses_answers() {
    python("openai_structured.py");
}

#[test]
fn pythons_openai_creates_responses() {
    python("openai_responses.py");
}

#[test]
fn pythons_openai_fails_as_it_should() {
    python("openai_failures.py");
}

#[test]
fn npms_openai_completes_chats() {
    node("openai_chat.mjs");
}

#[test]
fn npms_openai_creates_responses() {
    node("openai_responses.mjs");
}
