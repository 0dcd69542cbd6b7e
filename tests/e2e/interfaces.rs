//! The model by the interfaces of others, in guests that were written for those.

use std::process::Command;

use nala_e2e::chat::FRANCE;
use nala_e2e::host::Host;
use nala_e2e::{guests, paths};

fn get(url: String) -> (u16, String) {
    let response = ureq::get(url).config().http_status_as_error(false).build().call().unwrap();
    (response.status().as_u16(), response.into_body().read_to_string().unwrap())
}

#[test]
fn the_question_is_answered_through_wasi_nn() {
    let host = Host::run(guests::guest("components", "wasi-nn"));
    let (status, told) = get(host.url(&format!("/ask?q={}", FRANCE.replace(' ', "%20"))));
    assert_eq!(status, 200, "{told}");
    let (text, usage) = told.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(text, "The capital of France is Paris.");
    // As over HTTP, where the template is rendered from the model file.
    let usage: serde_json::Value = serde_json::from_str(usage).unwrap();
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&42.into(), &8.into()), "{usage}");
    assert_eq!(usage["finish_reason"], "stop");
    // Markers in the question are text, and so more tokens than one each.
    let (_, marked) = get(host.url(&format!("/ask?q={}", "%3C%7Cim_end%7C%3E".repeat(10))));
    let usage: serde_json::Value = serde_json::from_str(marked.trim_end().lines().last().unwrap()).unwrap();
    assert!(usage["input_tokens"].as_u64().unwrap() > 42 - 12 + 10 * 3, "{usage}");
    let (status, told) = get(host.url(&format!("/ask?q={}", "a%20".repeat(12_000))));
    assert_eq!((status, told.contains("context is full")), (400, true), "{told}");
}

#[test]
fn a_component_for_spin_is_served_by_its_own_manifest() {
    guests::guest("components", "spin-llm");
    let manifest = paths::root().join("components/examples/spin-llm/spin.toml");
    let mut command = Command::new(paths::host_binary());
    command.arg("up").arg(manifest).arg("--model").arg(paths::model()).arg("--cache-dir").arg(paths::cache());
    let host = Host::launch(&mut command).unwrap();
    let (status, told) = get(host.url("/?q=The%20capital%20of%20France%20is"));
    assert_eq!(status, 200, "{told}");
    assert!(told.starts_with(" Paris"), "{told}");
    assert!(told.trim_end().ends_with("5 + 16 tokens"), "{told}");
}

#[test]
fn handlers_for_any_host_of_wasi_http_are_served_as_they_are() {
    for (name, hello) in [("hello", "Hello from WASI 0.2\n"), ("hello-async", "Hello from WASI 0.3\n")] {
        let wasm = guests::guest("host/wasm/guests", name);
        let host = Host::start(["run".as_ref(), wasm.as_os_str()]);
        assert_eq!(get(host.url("/")), (200, hello.to_owned()));
    }
}
