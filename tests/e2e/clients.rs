//! The official clients find what they know from the services that they are made for.
//!
//! Each test is a script in `tests/python` or `tests/node`.

use nala_e2e::host::Host;
use nala_e2e::paths;
use nala_e2e::scripts::{Runner, accepts, holds, survives_requests};

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
fn pythons_openai_completes_texts() {
    python("openai_texts.py");
}

#[test]
fn npms_openai_completes_chats() {
    node("openai_chat.mjs");
}

#[test]
fn npms_openai_creates_responses() {
    node("openai_responses.mjs");
}

#[test]
fn pythons_anthropic_creates_messages() {
    holds(&Host::up(), Runner::Python, "anthropic_client.py");
}

#[test]
fn npms_anthropic_creates_messages() {
    node("anthropic.mjs");
}

/// `tests/python/openapi_fuzz.py` sends as many as are wanted.
#[test]
fn requests_made_from_the_description_are_answered_as_it_says() {
    survives_requests(&Host::up(), 200);
}

/// The answers and streams that the component's own tests compare with: all that a
/// real model does not say on demand.
#[test]
fn recorded_responses_have_the_clients_types() {
    let folder = paths::root().join("components/openai/src/responses/snapshots");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 10, "{files:?}");
    for runner in [Runner::Python, Runner::PythonBefore] {
        accepts(runner, "responses_types.py", &files);
    }
}
