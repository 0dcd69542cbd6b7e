//! Whole answers and whole streams, as files in `snapshots/`.
//!
//! `NALA_WRITE_SNAPSHOTS=1` writes them anew instead of comparing; look at what
//! changed, and have `tests/python/chat_snapshots.py` check it by the official client.

use std::time::Duration;

use chat_format::Event;
use nala_sdk::http::Response;
use nala_sdk::llm::{self, Alt, PrefillInfo, Sampled};
use serde_json::Value;

use super::*;
use crate::parameters::StreamUsage;
use crate::snapshots::compare;
use crate::turn::{Bytes, End, Running, Turn, Turns};

/// What the tokens of the tests stand for. 0 ends the turn.
const VOCABULARY: [&[u8]; 8] =
    [b"<|im_end|>", b"Hello", b" world", b"{\"city\":", b"\"K\xc3\xb6ln\"}", b"\xc3", b"\xb6", b"!"];

type Said = Vec<(usize, Result<Turn, ApiError>)>;

/// What is said by one token, or by several.
fn turn(tokens: &[u32], events: &[Event]) -> (usize, Result<Turn, ApiError>) {
    let sampled = |id: &u32| Sampled {
        id: *id,
        logprob: Some(-0.25),
        alts: vec![Alt { id: *id, logprob: -0.25 }, Alt { id: 1, logprob: f32::NEG_INFINITY }],
        forced: false,
    };
    let thinks = events.iter().any(|event| matches!(event, Event::Reasoning(_)));
    let reasoning_tokens = if thinks { u32::try_from(tokens.len()).unwrap() } else { 0 };
    let turn =
        Turn { events: events.to_vec(), tokens: tokens.iter().map(sampled).collect(), reasoning_tokens, end: None };
    (0, Ok(turn))
}

/// The same for another of the answers.
fn of(choice: usize, said: (usize, Result<Turn, ApiError>)) -> (usize, Result<Turn, ApiError>) {
    (choice, said.1)
}

/// The same as the last turn.
fn last(end: End, said: (usize, Result<Turn, ApiError>)) -> (usize, Result<Turn, ApiError>) {
    (said.0, said.1.map(|turn| Turn { end: Some(end), ..turn }))
}

fn text(text: &str) -> Event {
    Event::Content(text.to_owned())
}

fn thought(text: &str) -> Event {
    Event::Reasoning(text.to_owned())
}

fn start(index: usize, name: &'static str, id: Option<&str>) -> Event {
    Event::CallStart { index, name: name.to_owned(), id: id.map(str::to_owned) }
}

fn arguments(index: usize, text: &str) -> Event {
    Event::CallArguments { index, text: text.to_owned() }
}

/// An answer, with log-probabilities where its name says so.
fn answer(choices: usize, name: &'static str, said: Said) -> Answer<impl Turns, impl Bytes> {
    Answer {
        running: Running {
            model: "tiny \"model\"".to_owned(),
            created: 1_700_000_000,
            prompt: PrefillInfo { cached: 2, computed: 3 },
            prompt_time: Duration::ZERO,
            generating: std::time::Instant::now(),
            choices,
            turns: said.into_iter(),
            bytes: |token| VOCABULARY[token as usize].to_vec(),
        },
        ids: Ids::of(0x123),
        logprobs: name.starts_with("logprobs"),
        thoughts: Thoughts::Apart,
        timings: Timings::Absent,
    }
}

fn stream(choices: usize, name: &'static str, said: Said) -> String {
    let answer = answer(choices, name, said);
    let response = Response::stream("text/event-stream", move |out| answer.stream(StreamUsage::Included, out));
    String::from_utf8(response.into_bytes().unwrap()).unwrap()
}

/// The whole answer and the stream are as the files say.
fn check(name: &'static str, choices: usize, said: impl Fn() -> Said) {
    let whole: Value = serde_json::from_slice(&answer(choices, name, said()).whole().unwrap()).unwrap();
    compare("chat/snapshots", &format!("{name}.json"), &format!("{whole:#}\n"));
    compare("chat/snapshots", &format!("{name}.sse"), &stream(choices, name, said()));
}

#[test]
fn plain_text() {
    check("text", 1, || {
        vec![
            turn(&[1], &[text("Hello")]),
            turn(&[2], &[text(" \"world\"\n")]),
            // A half of a character says nothing yet.
            turn(&[5], &[]),
            turn(&[6], &[text("ö")]),
            last(End::Natural, turn(&[0], &[])),
        ]
    });
}

#[test]
fn thoughts_then_text() {
    check("thoughts", 1, || {
        vec![
            turn(&[1], &[thought("Let me ")]),
            turn(&[2], &[thought("see.")]),
            turn(&[1], &[text("Yes.")]),
            last(End::Natural, turn(&[0], &[])),
        ]
    });
}

fn call() -> Said {
    vec![
        turn(&[1, 3], &[start(0, "weather", None), arguments(0, "{\"city\":")]),
        turn(&[4], &[arguments(0, "\"Köln\"}")]),
        last(End::Natural, turn(&[0], &[Event::CallEnd { index: 0 }])),
    ]
}

#[test]
fn one_call() {
    check("call", 1, call);
}

#[test]
fn two_parallel_calls() {
    check("calls", 1, || {
        vec![
            turn(&[1], &[start(0, "weather", Some("model-made")), arguments(0, "{\"city\":\"Köln\"}")]),
            turn(&[7], &[Event::CallEnd { index: 0 }, start(1, "time", None)]),
            turn(&[7], &[arguments(1, "{}")]),
            last(End::Natural, turn(&[0], &[Event::CallEnd { index: 1 }])),
        ]
    });
}

#[test]
fn text_then_a_call() {
    check("text_call", 1, || vec![turn(&[1], &[text("Let me see.")])].into_iter().chain(call()).collect());
}

#[test]
fn a_call_that_the_length_cuts() {
    check("call_cut", 1, || {
        vec![turn(&[1], &[start(0, "weather", None)]), last(End::Length, turn(&[3], &[arguments(0, "{\"city\":")]))]
    });
}

#[test]
fn a_call_that_turns_out_to_be_none() {
    check("malformed", 1, || {
        let broken = Event::Malformed {
            index: Some(0),
            text: "Köln}".to_owned(),
            reason: "the arguments of the call are no JSON".to_owned(),
        };
        vec![
            turn(&[1], &[start(0, "weather", None), arguments(0, "{\"city\":")]),
            turn(&[4], &[broken]),
            last(End::Natural, turn(&[0], &[])),
        ]
    });
}

#[test]
fn a_call_that_never_began() {
    check("malformed_text", 1, || {
        let broken = Event::Malformed {
            index: None,
            text: "<tool_call>{\"name\": 7}</tool_call>".to_owned(),
            reason: "the call names no function".to_owned(),
        };
        vec![turn(&[1, 2], &[broken]), last(End::Natural, turn(&[0], &[]))]
    });
}

#[test]
fn nothing() {
    check("empty", 1, || vec![last(End::Natural, turn(&[0], &[]))]);
}

#[test]
fn a_stop_text() {
    check("stop", 1, || vec![turn(&[1], &[text("Hello")]), last(End::StopText(0), turn(&[2, 7], &[text(" wor")]))]);
}

#[test]
fn log_probabilities_of_text() {
    check("logprobs_text", 1, || {
        vec![
            turn(&[1], &[text("Hello")]),
            turn(&[5], &[]),
            turn(&[6], &[text("ö")]),
            last(End::Natural, turn(&[0], &[])),
        ]
    });
}

#[test]
fn log_probabilities_of_calls() {
    check("logprobs_call", 1, || vec![turn(&[1], &[text("Hello")])].into_iter().chain(call()).collect());
}

#[test]
fn two_answers_of_which_one_calls() {
    check("two", 2, || {
        let mut said: Said = vec![of(1, turn(&[1], &[text("Hello")]))];
        for (index, turn) in call().into_iter().enumerate() {
            said.push(turn);
            if index == 0 {
                said.push(of(1, last(End::Length, turn_of_world())));
            }
        }
        said
    });
}

fn turn_of_world() -> (usize, Result<Turn, ApiError>) {
    turn(&[2], &[text(" world")])
}

#[test]
fn what_fails_in_the_middle() {
    let said = vec![turn(&[1], &[text("Hello")]), (0, Err(llm::Error::Evicted.into()))];
    compare("chat/snapshots", "error.sse", &stream(1, "error", said));
}
