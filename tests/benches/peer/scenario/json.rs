//! Answers that are held to a JSON schema.

use serde_json::{Value, json};

use crate::client;
use crate::prompts::Seed;
use crate::report::{Side, Turn, Unit, compare};
use crate::server::{Ours, Peer, Serve};
use crate::settings::Settings;

/// More than the schema lets an answer have.
const MOST: u32 = 400;

pub(crate) fn run(settings: &Settings) {
    let ours = Ours::start(settings, Serve::Api);
    let (status, answer) = ours.client.post("/v1/chat/completions", &request(Seed(99_999)));
    if status == 400 {
        println!("\nJSON by a schema\nnot offered by our side: {}", answer["error"]["message"]);
        return;
    }
    let peer = Peer::start(settings, &[]);
    let figures = [("decode", Unit::Rate), ("whole answer", Unit::Time)];
    compare(settings, "JSON by a schema", &figures, |side, seed| {
        let client = match side {
            Side::Ours => &ours.client,
            Side::Peer => &peer.client,
        };
        let answer = client.stream(&request(seed));
        check(&answer.text);
        Turn { figures: vec![answer.decode_rate(), answer.end * 1e3], usage: answer.usage }
    });
}

/// Objects whose shape leaves the model little choice, so that both sides write
/// about the same; white space between them is a side's own affair.
fn request(seed: Seed) -> Value {
    let colours = json!({"enum": ["red", "green", "blue", "yellow"]});
    let item = json!({
        "type": "object",
        "properties": {"colour": colours, "count": {"type": "integer", "minimum": 0, "maximum": 9}, "sold": {"type": "boolean"}},
        "required": ["colour", "count", "sold"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": item, "minItems": 8, "maxItems": 8}},
        "required": ["items"],
        "additionalProperties": false,
    });
    let messages = json!([
        {"role": "user", "content": format!("List 8 items of shop {:05} with their colours as JSON.", seed.0)},
    ]);
    let mut request = client::open_request(&messages, MOST);
    request["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "shop", "strict": true, "schema": schema}});
    request
}

fn check(text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON, {error}: {text}"));
    let items = value["items"].as_array().unwrap_or_else(|| panic!("without items: {text}"));
    assert!(items.len() == 8 && items.iter().all(|item| item["sold"].is_boolean()), "not by the schema: {text}");
}
