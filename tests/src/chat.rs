//! Chat completions over HTTP.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

/// The question of all questions.
pub const FRANCE: &str = "What is the capital of France? Answer with one word.";

/// A greedy request for one user message.
pub fn request(content: &str, max_tokens: u32) -> Value {
    json!({
        "model": "smollm2-135m-instruct-q4_1",
        "messages": [{"role": "user", "content": content}],
        "temperature": 0,
        "max_tokens": max_tokens,
    })
}

/// Status and body of a GET, whatever the status.
pub fn get(url: &str) -> (u16, Value) {
    let response = ureq::get(url).config().http_status_as_error(false).build().call().expect("the host answers");
    read(response)
}

/// Status and body of a POST, whatever the status.
pub fn post(url: &str, body: &str) -> (u16, Value) {
    let response = ureq::post(url)
        .config()
        .http_status_as_error(false)
        .build()
        .header("content-type", "application/json")
        .send(body)
        .expect("the host answers");
    read(response)
}

fn read(response: ureq::http::Response<ureq::Body>) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.into_body().read_to_string().expect("the body is text");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The answer's text.
pub fn complete(base: &str, request: &Value) -> String {
    let (status, body) = post(&format!("{base}/v1/chat/completions"), &request.to_string());
    assert_eq!(status, 200, "{body}");
    body["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
}

/// The events of a streamed answer, `[DONE]` left out but required.
pub fn stream(base: &str, request: &Value) -> Vec<Value> {
    let mut request = request.clone();
    request["stream"] = Value::Bool(true);
    let response = ureq::post(format!("{base}/v1/chat/completions"))
        .header("content-type", "application/json")
        .send(request.to_string())
        .expect("the host answers with 200");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut events = Vec::new();
    for line in BufReader::new(response.into_body().into_reader()).lines() {
        let line = line.expect("the stream is text");
        match line.strip_prefix("data: ") {
            Some("[DONE]") => return events,
            Some(data) => events.push(serde_json::from_str(data).expect("each event is JSON")),
            None => assert!(line.is_empty(), "not an event: {line}"),
        }
    }
    panic!("the stream ended without [DONE]: {events:?}");
}

/// The text of a streamed answer.
pub fn streamed_text(events: &[Value]) -> String {
    events.iter().filter_map(|e| e["choices"][0]["delta"]["content"].as_str()).collect()
}
