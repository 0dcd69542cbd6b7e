//! The question gets its answer, whichever way it is asked.

use std::process::Command;

use nala_e2e::chat::{self, FRANCE};
use nala_e2e::host::Host;
use nala_e2e::{guests, paths};

#[test]
fn over_http_streaming_and_not() {
    let host = Host::up();
    let request = chat::request(FRANCE, 32);
    let text = chat::complete(&host.url(""), &request);
    assert!(text.contains("Paris"), "{text}");
    let events = chat::stream(&host.url(""), &request);
    assert_eq!(chat::streamed_text(&events), text);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "stop");
    let (status, models) = chat::get(&host.url("/v1/models"));
    assert_eq!((status, &models["object"]), (200, &serde_json::json!("list")));
    // Written by ggml's own tokenizer and template elsewhere: 42 prompt tokens, 8 with the end.
    let (_, answer) = chat::post(&host.url("/v1/chat/completions"), &request.to_string());
    assert_eq!(answer["usage"]["prompt_tokens"], 42, "{answer}");
    assert_eq!(answer["usage"]["completion_tokens"], 8, "{answer}");
}

#[test]
fn with_curl() {
    let host = Host::up();
    let body = chat::request(FRANCE, 32).to_string();
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--json", &body, &host.url("/v1/chat/completions")])
        .output()
        .expect("curl runs");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && answer.contains("Paris"), "{answer}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn with_the_official_python_client() {
    let host = Host::up();
    let output = Command::new(paths::python())
        .arg(paths::root().join("tests/python/ask.py"))
        .env("NALA_URL", host.url(""))
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim() == "ok", "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn by_the_example_handler() {
    let host = Host::run(guests::ask());
    let url = host.url(&format!("/ask?q={}", FRANCE.replace(' ', "%20")));
    let text = ureq::get(url).call().unwrap().into_body().read_to_string().unwrap();
    assert!(text.contains("Paris"), "{text}");
}

#[test]
fn a_copied_binary_and_a_model_file_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("nala-host");
    std::fs::copy(paths::host_binary(), &binary).unwrap();
    std::os::unix::fs::symlink(paths::model(), folder.path().join("model.gguf")).unwrap();
    let host = Host::launch(
        Command::new(&binary)
            .args(["up", "--model", "model.gguf"])
            .current_dir(&folder)
            .env("HOME", folder.path())
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_DATA_HOME"),
    );
    let request = serde_json::json!({
        "model": "model",
        "messages": [{"role": "user", "content": FRANCE}],
        "temperature": 0,
    });
    let text = chat::complete(&host.unwrap().url(""), &request);
    assert!(text.contains("Paris"), "{text}");
}
