//! A client that goes away takes its work with it.

use std::time::Duration;

use nala_e2e::chat;
use nala_e2e::host::Host;
use nala_e2e::metrics::eventually;
use nala_e2e::raw::Raw;

/// A prompt that the model would go on about for thousands of tokens.
fn endless(stream: bool) -> String {
    let mut request = chat::request("Count from 1 to 100000, one number a line.", 4000);
    request["stream"] = stream.into();
    request.to_string()
}

fn generated(host: &Host) -> f64 {
    host.metrics().sum("nala_engine_generated_tokens_total")
}

fn check_released(host: &Host) {
    eventually("the sequence is released", Duration::from_secs(5), || {
        host.metrics().sum("nala_engine_sessions") == 0.0
    });
    let metrics = host.metrics();
    assert_eq!(metrics.sum("nala_engine_kv_cells_used"), 0.0);
    assert_eq!(metrics.sum("nala_engine_running"), 0.0);
    // Released before the next batch, or after the one that was being decoded.
    let all = metrics.sum("nala_engine_release_steps_count");
    assert!(all >= 1.0);
    assert_eq!(metrics.with("nala_engine_release_steps_bucket", "le=\"1.0\""), all, "within one decode step");
    let before = generated(host);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(generated(host), before, "nothing is generated for nobody");
}

#[test]
fn in_the_middle_of_a_stream() {
    let host = Host::up();
    let mut raw = Raw::post(&host.address, "/v1/chat/completions", &endless(true));
    for _ in 0..5 {
        raw.read_until("\"content\":");
    }
    assert_eq!(host.metrics().sum("nala_engine_running"), 1.0);
    let at_hang_up = generated(&host);
    raw.hang_up();
    check_released(&host);
    // From the hang-up to the release, scrapes included: far from the 4,000 asked for.
    assert!(generated(&host) - at_hang_up < 100.0);
}

#[test]
fn before_the_answer_begins() {
    let host = Host::up();
    let raw = Raw::post(&host.address, "/v1/chat/completions", &endless(false));
    eventually("it generates", Duration::from_secs(10), || generated(&host) >= 3.0);
    raw.hang_up();
    check_released(&host);
}

#[test]
fn in_the_middle_of_the_prefill() {
    let host = Host::up();
    let long = "All work and no play makes Jack a dull boy. ".repeat(300);
    let raw = Raw::post(&host.address, "/v1/chat/completions", &chat::request(&long, 10).to_string());
    eventually("it prefills", Duration::from_secs(20), || {
        host.metrics().sum("nala_engine_prompt_tokens_total") > 100.0
    });
    raw.hang_up();
    check_released(&host);
    assert_eq!(generated(&host), 0.0);
}
