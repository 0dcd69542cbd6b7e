//! Answers that have to be of a certain form, and several of them at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nala_e2e::chat;
use nala_e2e::host::Host;
use nala_e2e::raw::Raw;
use serde_json::{Value, json};

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "colour": {"enum": ["red", "green", "blue"]},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3},
        },
        "required": ["name", "age", "colour", "tags"],
        "additionalProperties": false,
    })
}

fn is_person(text: &str) {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}")).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 4, "{text}");
    let name = value["name"].as_str().unwrap();
    assert!((1..=20).contains(&name.chars().count()), "{text}");
    assert!(value["age"].as_u64().is_some_and(|age| age <= 120), "{text}");
    assert!(["red", "green", "blue"].contains(&value["colour"].as_str().unwrap()), "{text}");
    let tags = value["tags"].as_array().unwrap();
    assert!(tags.len() <= 3, "{text}");
    assert!(tags.iter().all(|tag| tag.as_str().is_some_and(|tag| tag.chars().count() <= 8)), "{text}");
}

fn about_a_person() -> Value {
    let mut request = chat::request("Invent a person. Answer with JSON.", 200);
    request["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "person", "strict": true, "schema": person()}});
    request
}

fn ask(host: &Host, request: &Value) -> Value {
    let (status, answer) = chat::post(&host.url("/v1/chat/completions"), &request.to_string());
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn json_follows_its_schema_greedily_and_at_temperature_1() {
    let host = Host::up();
    let greedy = ask(&host, &about_a_person());
    is_person(greedy["choices"][0]["message"]["content"].as_str().unwrap());
    assert_eq!(greedy["choices"][0]["finish_reason"], "stop", "{greedy}");
    for seed in 1..=5 {
        let mut request = about_a_person();
        request["temperature"] = 1.into();
        request["seed"] = seed.into();
        let events = chat::stream(&host.url(""), &request);
        is_person(&chat::streamed_text(&events));
        assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "stop");
    }
    assert!(host.metrics().sum("nala_engine_forced_tokens_total") > 0.0, "what has no choice is not sampled");
}

#[test]
fn every_way_of_asking_for_a_form_is_honoured() {
    let host = Host::up();
    let say = |change: Value| {
        let mut request = chat::request("Is the sky blue?", 60);
        request.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = ask(&host, &request);
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        (text, answer["choices"][0]["finish_reason"].as_str().unwrap().to_owned())
    };
    let (text, reason) = say(json!({"grammar": "root ::= (\"yes\" | \"no\") \", \" [a-z]{3} \".\""}));
    assert!((text.starts_with("yes, ") || text.starts_with("no, ")) && text.ends_with('.'), "{text}");
    assert_eq!(reason, "stop");
    let (text, _) = say(json!({"json_schema": {"type": "boolean"}}));
    assert!(["true", "false"].contains(&text.as_str()), "{text}");
    // It may be cut off, but it is an object as far as it goes.
    let (text, reason) = say(json!({"response_format": {"type": "json_object"}}));
    assert!(text.starts_with('{'), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).is_ok(), reason == "stop", "{reason}: {text}");
    let (_, reason) = say(json!({"json_schema": person(), "max_tokens": 3}));
    assert_eq!(reason, "length");
}

#[test]
fn several_choices_come_with_their_index() {
    let host = Host::up();
    let mut request = chat::request("Tell me a short story about a fox.", 24);
    request["n"] = 3.into();
    request["temperature"] = 1.into();
    for seed in [1, 2] {
        request["seed"] = seed.into();
        let answer = ask(&host, &request);
        let choices = answer["choices"].as_array().unwrap();
        let texts: Vec<&str> = choices.iter().map(|c| c["message"]["content"].as_str().unwrap()).collect();
        let indexes: Vec<u64> = choices.iter().map(|c| c["index"].as_u64().unwrap()).collect();
        assert_eq!(indexes, [0, 1, 2]);
        assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2], "{texts:?}");
        let usage = &answer["usage"];
        let completion = usage["completion_tokens"].as_u64().unwrap();
        assert!((4..=72).contains(&completion), "{usage}");
        assert!(usage["prompt_tokens"].as_u64().unwrap() < 60, "the prompt counts once: {usage}");

        let mut streamed = request.clone();
        streamed["stream_options"] = json!({"include_usage": true});
        let events = chat::stream(&host.url(""), &streamed);
        let (usage, events) = events.split_last().unwrap();
        assert!(usage["usage"]["completion_tokens"].as_u64().unwrap() >= 4, "{usage}");
        for index in 0..3 {
            let own: Vec<&Value> = events.iter().filter(|event| event["choices"][0]["index"] == index).collect();
            assert_eq!(own[0]["choices"][0]["delta"]["role"], "assistant", "{index}");
            let text: String = own.iter().filter_map(|e| e["choices"][0]["delta"]["content"].as_str()).collect();
            assert!(!text.is_empty(), "{index}");
            let ends = own.iter().filter(|event| event["choices"][0]["finish_reason"].is_string()).count();
            assert_eq!(ends, 1, "{index}");
        }
    }
    // Each of them is an answer of its own, and the grammar is each one's.
    let mut request = about_a_person();
    request["n"] = 3.into();
    request["temperature"] = 1.into();
    for choice in ask(&host, &request)["choices"].as_array().unwrap() {
        is_person(choice["message"]["content"].as_str().unwrap());
    }
}

/// Schemas that are wrong or too much work, with what the answer must speak of.
fn hostile() -> Vec<(Value, &'static str)> {
    let deep = (0..100).fold(json!({"type": "null"}), |inner, _| json!({"type": "array", "items": inner}));
    let wide: String = (0..900).map(|n| format!("(x{n}|y{n})*z")).collect();
    vec![
        (json!({"type": "wizard"}), "wizard"),
        (deep, "deep"),
        (json!({"type": "string", "pattern": "("}), "pattern"),
        (json!({"type": "string", "pattern": wide}), "bytes"),
        (json!({"$ref": "https://example.com/schema.json"}), "example.com"),
    ]
}

/// A schema that may be too much work, or not.
fn heavy() -> Value {
    let tower = (0..6).fold("[ab]".to_owned(), |inner, _| format!("({inner}|x){{1,60}}"));
    json!({"type": "string", "pattern": format!("^{tower}$")})
}

#[test]
fn a_hostile_schema_is_refused_in_time_and_disturbs_nobody() {
    let host = Host::up();
    let url = host.url("/v1/chat/completions");
    let mut story = chat::request("Count from 1 to 100000, one number a line.", 4000);
    story["stream"] = true.into();
    story["ignore_eos"] = true.into();
    let mut neighbour = Raw::post(&host.address, "/v1/chat/completions", &story.to_string());
    neighbour.read_until("\"content\":");
    let enough = Arc::new(AtomicBool::new(false));
    let neighbour = std::thread::spawn({
        let enough = Arc::clone(&enough);
        move || longest_silence(neighbour, &enough)
    });
    let ask = |schema: Value| {
        let mut request = chat::request("Hello", 8);
        request["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema}});
        let begin = Instant::now();
        let answer = chat::post(&url, &request.to_string());
        assert!(begin.elapsed() < Duration::from_secs(10), "{request}: {:?}", begin.elapsed());
        answer
    };
    let (status, answer) = ask(heavy());
    assert!([200, 400].contains(&status), "{answer}");
    for (schema, says) in hostile() {
        let (status, answer) = ask(schema);
        assert_eq!(status, 400, "{says}: {answer}");
        assert_eq!(answer["error"]["param"], "response_format.json_schema.schema", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(says) && message.len() < 900, "{says}: {message}");
    }
    enough.store(true, Ordering::Relaxed);
    let (silence, tokens) = neighbour.join().unwrap();
    assert!(tokens >= 5, "only {tokens} tokens came meanwhile");
    // A grammar may be compiled for 5 seconds, in which a token takes milliseconds.
    assert!(silence < Duration::from_secs(3), "nothing came for {silence:?}");
}

/// Reads a stream until it is enough: the longest time between two of its events,
/// and how many there were.
fn longest_silence(mut stream: Raw, enough: &AtomicBool) -> (Duration, u32) {
    let (mut longest, mut events) = (Duration::ZERO, 0);
    while !enough.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let event = stream.read_until("\n\n");
        assert!(!event.contains("[DONE]"), "it ended after {events} tokens");
        longest = longest.max(begin.elapsed());
        events += 1;
    }
    (longest, events)
}
