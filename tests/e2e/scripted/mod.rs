//! Whole streams of a model that says what a test wants it to, through the real
//! components and the engine.
//!
//! What is expected stands in `streams/`, told as [`story`] does. After a wanted change `NALA_UPDATE_STREAMS=1 cargo test … scripted` writes it anew; read
//! the difference before you commit it.

mod agents;
mod bench;
mod edges;
mod story;

use std::path::Path;

use nala_e2e::paths;
use serde_json::{Value, json};

use bench::Scripted;

/// An API that streams.
struct Api {
    name: &'static str,
    path: &'static str,
    /// A request, from a common one of chat completions.
    request: fn(&Wish) -> Value,
}

/// What is asked for.
#[derive(Default)]
struct Wish {
    tools: Option<Value>,
    choice: Option<&'static str>,
    stop: Option<&'static str>,
    /// What the answer has to be, where it is no call.
    schema: Option<Value>,
    max_tokens: Option<u32>,
    counts: Counts,
}

/// Whether the same tokens are counted each time.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Counts {
    #[default]
    Same,
    /// Which of them count depends on how many come at once.
    Vary,
}

const APIS: [Api; 3] = [
    Api { name: "chat", path: "/v1/chat/completions", request: chat },
    Api { name: "responses", path: "/v1/responses", request: responses },
    Api { name: "messages", path: "/v1/messages", request: messages },
];

/// A function that tells the weather of a city.
fn weather() -> Option<Value> {
    Some(json!({
        "name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}))
}

fn chat(wish: &Wish) -> Value {
    let mut request = json!({
        "model": "scripted", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0,
        "messages": [{"role": "user", "content": "HELLO"}],
        "max_tokens": wish.max_tokens.unwrap_or(400),
    });
    if let Some(function) = &wish.tools {
        request["tools"] = json!([{"type": "function", "function": function}]);
    }
    as_openai_says(wish, &mut request);
    if let Some(schema) = &wish.schema {
        request["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema}});
    }
    request
}

/// What both of OpenAI's APIs call the same.
fn as_openai_says(wish: &Wish, request: &mut Value) {
    if let Some(choice) = wish.choice {
        request["tool_choice"] = choice.into();
        request["parallel_tool_calls"] = false.into();
    }
    if let Some(stop) = wish.stop {
        request["stop"] = stop.into();
    }
}

fn responses(wish: &Wish) -> Value {
    let mut request = json!({
        "model": "scripted", "stream": true, "temperature": 0, "input": "HELLO",
        "max_output_tokens": wish.max_tokens.unwrap_or(400),
    });
    if let Some(function) = &wish.tools {
        let mut tool = function.clone();
        tool["type"] = "function".into();
        request["tools"] = json!([tool]);
    }
    as_openai_says(wish, &mut request);
    if let Some(schema) = &wish.schema {
        request["text"] = json!({"format": {"type": "json_schema", "name": "n", "strict": true, "schema": schema}});
    }
    request
}

fn messages(wish: &Wish) -> Value {
    let mut request = json!({
        "model": "scripted", "stream": true, "temperature": 0,
        "messages": [{"role": "user", "content": "HELLO"}],
        "max_tokens": wish.max_tokens.unwrap_or(400),
    });
    if let Some(function) = &wish.tools {
        let mut tool = json!({"name": function["name"], "input_schema": function["parameters"]});
        if let Some(strict) = function.get("strict") {
            tool["strict"] = strict.clone();
        }
        request["tools"] = json!([tool]);
    }
    match wish.choice {
        Some("required") => request["tool_choice"] = json!({"type": "any", "disable_parallel_tool_use": true}),
        Some(choice) => request["tool_choice"] = json!({ "type": choice }),
        None => {}
    }
    if let Some(stop) = wish.stop {
        request["stop_sequences"] = json!([stop]);
    }
    if let Some(schema) = &wish.schema {
        request["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    }
    request
}

/// Has every API stream the answer and compares it with what is expected.
async fn streams(case: &str, scripted: impl Fn() -> Scripted, wish: Wish) {
    let update = std::env::var_os("NALA_UPDATE_STREAMS").is_some();
    let mut wrong = Vec::new();
    for api in &APIS {
        let (status, text) = scripted().text(api.path, &(api.request)(&wish)).await;
        assert_eq!(status, 200, "{}: {text}", api.name);
        let mut text = story::of(&text);
        if wish.counts == Counts::Vary {
            text = story::without_counts(&text);
        }
        let path = paths::root().join(format!("tests/e2e/scripted/streams/{case}.{}.txt", api.name));
        if update {
            std::fs::write(&path, &text).unwrap();
        } else if let Some(difference) = difference(&path, &text) {
            wrong.push(difference);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn difference(path: &Path, text: &str) -> Option<String> {
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    (expected != text).then(|| format!("{} differs; what came is\n{text}", path.display()))
}
