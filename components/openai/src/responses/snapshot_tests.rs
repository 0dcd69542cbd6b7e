//! Whole answers and whole streams, as files in `snapshots/`.
//!
//! `NALA_WRITE_SNAPSHOTS=1` writes them anew instead of comparing; look at what
//! changed, and have `tests/python/responses_types.py` check it by the types of the
//! official client and of Open Responses.

use std::time::Duration;

use agent_loop::{Failure, Outcome, Returned};
use chat_format::Event;
use nala_sdk::http::Response;
use nala_sdk::llm::{self, Alt, PrefillInfo, Sampled};
use nala_sdk::tools::Tool;
use serde_json::{Value, json};

use super::Answer;
use super::answer::Story;
use super::request::read_with;
use crate::error::ApiError;
use crate::ids::Ids;
use crate::snapshots::compare;
use crate::turn::{Bytes, End, Heard, Running, Turn};

/// What the tokens of the tests stand for. 0 ends the turn.
const VOCABULARY: [&[u8]; 12] = [
    b"<|im_end|>",
    b"Hello",
    b" \"world\"\n",
    b"Let me see. ",
    b"Yes.",
    b"<think>",
    b"</think>",
    b"<tool_call>",
    // Two halves of a character.
    b"\xc3",
    b"\xb6",
    b"!",
    b"{}",
];

fn bytes(token: u32) -> Vec<u8> {
    VOCABULARY[token as usize].to_vec()
}

fn sampled(id: u32) -> Sampled {
    let alts = vec![Alt { id, logprob: -0.25 }, Alt { id: 1, logprob: f32::NEG_INFINITY }];
    Sampled { id, logprob: Some(-0.25), alts, forced: false }
}

/// A turn of events that are one token each, but for what is said otherwise.
fn turn(events: &[Event], tokens: &[u32]) -> Result<Turn, ApiError> {
    Ok(Turn { events: events.to_vec(), tokens: tokens.iter().copied().map(sampled).collect(), ..Turn::default() })
}

fn thought(text: &str, tokens: &[u32]) -> Result<Turn, ApiError> {
    turn(&[Event::Reasoning(text.to_owned())], tokens)
        .map(|turn| Turn { reasoning_tokens: u32::try_from(tokens.len()).unwrap(), ..turn })
}

fn last(end: End) -> Result<Turn, ApiError> {
    turn(&[], &[0]).map(|turn| Turn { end: Some(end), ..turn })
}

fn content(text: &str) -> Event {
    Event::Content(text.to_owned())
}

fn start(index: usize, name: &str, id: Option<&str>) -> Event {
    Event::CallStart { index, name: name.to_owned(), id: id.map(str::to_owned) }
}

fn arguments(index: usize, text: &str) -> Event {
    Event::CallArguments { index, text: text.to_owned() }
}

/// The tools that the server has.
fn granted() -> Vec<Tool> {
    let schema = r#"{"type":"object","properties":{"expression":{"type":"string"}}}"#;
    vec![Tool::new("calculate", "Calculates \"it\"", schema).read_only(), Tool::new("clock", "Tells the time", "{}")]
}

fn answer(request: Value, turns: Vec<Result<Turn, ApiError>>) -> Answer<impl Story, impl Bytes> {
    story(request, turns.into_iter().map(|turn| turn.map(Heard::Said)).collect())
}

fn story(request: Value, story: Vec<Result<Heard, ApiError>>) -> Answer<impl Story, impl Bytes> {
    let request = read_with(request.to_string().as_bytes(), &granted).unwrap();
    Answer {
        running: Running {
            model: request.ask.model,
            created: 1_700_000_000,
            prompt: PrefillInfo { cached: 2, computed: 3 },
            prompt_time: Duration::from_millis(3),
            generating: std::time::Instant::now(),
            choices: 1,
            turns: story.into_iter(),
            bytes,
        },
        echo: request.echo,
        server: request.server,
        ids: Ids::of(0xabc),
        clock: || 1_700_000_009,
    }
}

fn plain() -> Value {
    json!({"model": "tiny \"model\"", "input": "Hi"})
}

fn with_tools() -> Value {
    json!({
        "model": "tiny", "input": "What is the weather?", "instructions": "Be brief.\n",
        "tools": [
            {"type": "function", "name": "weather", "description": "Looks out of the window",
             "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}, "strict": true},
            {"type": "function", "name": "time"},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "weather"}]},
        "parallel_tool_calls": false, "max_output_tokens": 50, "max_tool_calls": 3,
        "temperature": 0.8, "top_p": 0.9, "presence_penalty": 0.5, "metadata": {"run": "7"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "user": "u", "safety_identifier": "s", "prompt_cache_key": "k", "service_tier": "auto", "store": true,
    })
}

/// The whole answer and the stream are as the files say.
fn check(name: &str, request: &Value, turns: impl Fn() -> Vec<Result<Turn, ApiError>>) {
    check_story(name, request, || turns().into_iter().map(|turn| turn.map(Heard::Said)).collect());
}

fn check_story(name: &str, request: &Value, heard: impl Fn() -> Vec<Result<Heard, ApiError>>) {
    let whole = story(request.clone(), heard()).whole().unwrap();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    compare("responses/snapshots", &format!("{name}.json"), &format!("{whole:#}\n"));
    let events = stream_of(name, story(request.clone(), heard()));
    let last = events.last().unwrap();
    assert_eq!(last["response"], whole, "{name}: the last event has the whole answer");
    follows_the_order(&events);
}

fn stream(name: &str, request: &Value, turns: Vec<Result<Turn, ApiError>>) -> Vec<Value> {
    stream_of(name, answer(request.clone(), turns))
}

fn stream_of(name: &str, answer: Answer<impl Story + 'static, impl Bytes + 'static>) -> Vec<Value> {
    let text = Response::stream("text/event-stream", move |out| answer.stream(out)).into_bytes().unwrap();
    let text = String::from_utf8(text).unwrap();
    compare("responses/snapshots", &format!("{name}.sse"), &text);
    let events = text.strip_suffix("\n\n").unwrap().split("\n\n").map(|event| {
        let (kind, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["type"], kind.strip_prefix("event: ").unwrap());
        data
    });
    events.collect()
}

/// What the documentation promises of all streams.
fn follows_the_order(events: &[Value]) {
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["response.created", "response.in_progress"]);
    for kind in &kinds {
        assert!(super::EVENT_ORDER.contains(kind), "{kind} is not in the documented order");
    }
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
    }
    let mut open: Vec<(u64, String)> = Vec::new();
    let mut next = 0;
    for event in &events[2..events.len() - 1] {
        let index = event["output_index"].as_u64().unwrap();
        let place = open.iter().position(|(number, _)| *number == index);
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                // Only calls of the server's tools may be open still.
                assert!(open.iter().all(|(_, id)| id.starts_with("mcp_")) && index == next, "{event}");
                next += 1;
                open.push((index, event["item"]["id"].as_str().unwrap().to_owned()));
            }
            "response.output_item.done" => {
                let (number, id) = open.remove(place.unwrap());
                assert_eq!((&event["item"]["id"], index), (&json!(id), number));
            }
            _ => {
                let (number, id) = &open[place.unwrap()];
                assert_eq!((&event["item_id"], index), (&json!(id), *number), "{event}");
            }
        }
    }
}

#[test]
fn plain_text() {
    check("text", &plain(), || {
        vec![turn(&[content("Hello")], &[1]), turn(&[content(" \"world\"\n")], &[2]), last(End::Natural)]
    });
}

#[test]
fn thoughts_and_then_text() {
    check("thoughts", &with_tools(), || {
        vec![
            turn(&[], &[5]),
            thought("Let me ", &[3]),
            thought("see.", &[3]),
            turn(&[], &[6]),
            turn(&[content("Yes.")], &[4]),
            last(End::Natural),
        ]
    });
}

#[test]
fn one_call() {
    check("call", &with_tools(), || {
        vec![
            turn(&[], &[7]),
            turn(&[start(0, "weather", None)], &[1]),
            turn(&[arguments(0, "{\"city\":")], &[1]),
            turn(&[arguments(0, " \"Köln\"}")], &[1]),
            turn(&[Event::CallEnd { index: 0 }], &[1]),
            last(End::Natural),
        ]
    });
}

#[test]
fn two_calls_with_ids_of_the_models_own() {
    check("calls", &with_tools(), || {
        vec![
            turn(&[start(0, "weather", Some("w1")), arguments(0, "{}"), Event::CallEnd { index: 0 }], &[7, 11]),
            turn(&[start(1, "time", Some("w1")), arguments(1, "{}"), Event::CallEnd { index: 1 }], &[7, 11]),
            last(End::Natural),
        ]
    });
}

#[test]
fn text_and_then_a_call() {
    check("text_call", &with_tools(), || {
        vec![
            turn(&[content("Yes."), start(0, "time", None)], &[4, 7]),
            turn(&[arguments(0, "{}"), Event::CallEnd { index: 0 }], &[11]),
            last(End::Natural),
        ]
    });
}

#[test]
fn a_call_that_is_cut_off() {
    check("call_cut", &with_tools(), || {
        vec![turn(&[start(0, "weather", None), arguments(0, "{\"city\":")], &[7, 1]), last(End::Length)]
    });
}

#[test]
fn text_that_is_cut_off() {
    check("text_cut", &plain(), || vec![turn(&[content("Hello")], &[1]), last(End::ContextFull)]);
}

#[test]
fn nothing_at_all() {
    check("empty", &plain(), || vec![last(End::Natural)]);
}

#[test]
fn a_text_that_stops_the_answer() {
    let mut request = plain();
    request["stop"] = json!(["!"]);
    check("stop", &request, || vec![turn(&[content("Hello")], &[1]), last(End::StopText(0))]);
}

#[test]
fn what_began_as_a_call_and_is_none() {
    check("malformed", &with_tools(), || {
        vec![
            turn(&[start(0, "weather", None), arguments(0, "{\"city\"")], &[7]),
            turn(
                &[Event::Malformed { index: Some(0), text: "}}</tool_call>".to_owned(), reason: "no JSON".to_owned() }],
                &[1],
            ),
            turn(
                &[Event::Malformed { index: None, text: "<tool_call>what?".to_owned(), reason: "no JSON".to_owned() }],
                &[1],
            ),
            last(End::Natural),
        ]
    });
}

#[test]
fn structured_output() {
    let mut request = plain();
    request["text"] = json!({"format": {
        "type": "json_schema", "name": "thing", "strict": true,
        "schema": {"type": "object", "properties": {}, "additionalProperties": false},
    }});
    check("structured", &request, || vec![turn(&[content("{}")], &[11]), last(End::Natural)]);
}

#[test]
fn log_probabilities() {
    let mut request = plain();
    request["include"] = json!(["message.output_text.logprobs"]);
    request["top_logprobs"] = json!(2);
    check("logprobs", &request, || {
        vec![
            turn(&[], &[5]),
            thought("Let me see. ", &[3]),
            // The text lags behind, and comes with that of a call.
            turn(&[], &[6, 8]),
            turn(&[content("ö"), content("!")], &[9, 10]),
            turn(&[content("Yes."), start(0, "f", None), arguments(0, "{}")], &[4, 7, 11]),
            turn(&[Event::CallEnd { index: 0 }, content("Hello")], &[6, 1]),
            last(End::Natural),
        ]
    });
}

#[test]
fn an_error_in_the_middle() {
    let broken =
        || vec![turn(&[content("Hello")], &[1]), Err(llm::Error::Backend("out of \"luck\"".to_owned()).into())];
    let events = stream("error", &plain(), broken());
    follows_the_order(&events);
    let failed = events.last().unwrap();
    assert_eq!(failed["type"], "response.failed");
    assert_eq!(failed["response"]["error"]["code"], "server_error");
    assert!(failed["response"]["error"]["message"].as_str().unwrap().contains("out of \"luck\""));
    assert_eq!(failed["response"]["output"][0]["status"], "incomplete");
    assert_eq!(answer(plain(), broken()).whole().unwrap_err().status, 500);
}

#[test]
fn an_answer_that_breaks_off_has_failed() {
    let half = || vec![turn(&[start(0, "f", None)], &[1])];
    let events = stream("broken_off", &with_tools(), half());
    follows_the_order(&events);
    let message = events.last().unwrap()["response"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("broke off"), "{message}");
    assert_eq!(answer(with_tools(), half()).whole().unwrap_err().status, 500);
}

#[test]
fn arguments_without_a_call_are_said() {
    let turns = vec![turn(&[arguments(0, "{}")], &[11]), last(End::Natural)];
    let whole: Value = serde_json::from_slice(&answer(plain(), turns).whole().unwrap()).unwrap();
    assert_eq!(whole["output"][0]["content"][0]["text"], "{}");
}

#[test]
fn a_quota_that_is_used_up_in_the_middle_has_a_code_of_its_own() {
    let turns = vec![turn(&[content("x")], &[1]), Err(llm::Error::Quota(llm::QuotaKind::Tokens).into())];
    let events = stream("quota", &plain(), turns);
    assert_eq!(events.last().unwrap()["response"]["error"]["code"], "rate_limit_exceeded");
}

fn with_served_tools() -> Value {
    json!({
        "model": "tiny", "input": "What is 1 + 1, and what time is it?", "max_tool_calls": 3,
        "tools": [{"type": "mcp", "server_label": "nala", "require_approval": "never"}],
        "tool_choice": {"type": "mcp", "server_label": "nala"},
    })
}

fn call(index: usize, name: &str) -> [Event; 3] {
    [start(index, name, None), arguments(index, "{}"), Event::CallEnd { index }]
}

fn returned(id: u32, text: &str, outcome: Outcome) -> Result<Heard, ApiError> {
    Ok(Heard::Returned(Returned { id, text: text.to_owned(), outcome }))
}

#[test]
fn calls_of_the_servers_tools_and_then_text() {
    check_story("served", &with_served_tools(), || {
        vec![
            turn(&[Event::Reasoning("Let me see. ".to_owned())], &[3]).map(Heard::Said),
            turn(&[call(0, "calculate"), call(1, "clock")].concat(), &[7, 11, 11]).map(Heard::Said),
            turn(&[], &[0]).map(Heard::Said),
            returned(1, "2 \"two\"", Outcome::Answered),
            returned(2, "Error: no clock", Outcome::Declined),
            Ok(Heard::Read(PrefillInfo { cached: 0, computed: 7 })),
            turn(&call(0, "clock"), &[7, 11]).map(Heard::Said),
            returned(3, "Error: `clock` trapped", Outcome::Failed(Failure::Broken)),
            Ok(Heard::Read(PrefillInfo { cached: 1, computed: 2 })),
            turn(&[content("Yes.")], &[4]).map(Heard::Said),
            last(End::Natural).map(Heard::Said),
        ]
    });
}

#[test]
fn a_call_of_the_servers_tools_that_is_cut_off() {
    check_story("served_cut", &with_served_tools(), || {
        let cut = [call(0, "calculate").to_vec(), vec![start(1, "clock", None), arguments(1, "{\"a")]].concat();
        vec![turn(&cut, &[7, 11, 7]).map(Heard::Said), last(End::Length).map(Heard::Said)]
    });
}
