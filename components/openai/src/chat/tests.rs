use std::time::Duration;

use chat_format::Event;
use nala_sdk::http::Response;
use nala_sdk::llm::{Alt, Error, PrefillInfo, Sampled, Token};
use serde_json::{Value, json};

use super::*;
use crate::parameters::StreamUsage;
use crate::turn::{Bytes, End, Running, Turn, Turns};

fn turn(events: Vec<Event>, tokens: &[Token], end: Option<End>) -> Turn {
    let tokens = tokens.iter().map(|id| Sampled {
        id: *id,
        logprob: Some(-0.5),
        alts: vec![Alt { id: *id, logprob: -0.5 }, Alt { id: 0, logprob: f32::NEG_INFINITY }],
        forced: false,
    });
    Turn { events, tokens: tokens.collect(), reasoning_tokens: 0, end }
}

fn chunk(text: &str, tokens: &[Token], end: Option<End>) -> Result<Turn, ApiError> {
    let events = if text.is_empty() { vec![] } else { vec![Event::Content(text.to_owned())] };
    Ok(turn(events, tokens, end))
}

fn answer(turns: Vec<Result<Turn, ApiError>>) -> Answer<impl Turns, impl Bytes> {
    answers(1, turns.into_iter().map(|turn| (0, turn)).collect())
}

fn answers(choices: usize, turns: Vec<(usize, Result<Turn, ApiError>)>) -> Answer<impl Turns, impl Bytes> {
    Answer {
        running: Running {
            model: "the \"model\"".to_owned(),
            created: 17,
            prompt: PrefillInfo { cached: 2, computed: 3 },
            prompt_time: Duration::from_millis(3),
            generating: std::time::Instant::now(),
            choices,
            turns: turns.into_iter(),
            bytes: |token| vec![b'a' + u8::try_from(token).unwrap(), 0xe4],
        },
        ids: Ids::of(1),
        logprobs: false,
        thoughts: Thoughts::Apart,
        timings: Timings::Absent,
    }
}

fn hello() -> Vec<Result<Turn, ApiError>> {
    vec![
        chunk("Hel\"lo\n", &[1], None),
        // A part of a character.
        chunk("", &[2], None),
        chunk("ö", &[3], None),
        chunk("!", &[4], Some(End::Natural)),
    ]
}

fn events(answer: Answer<impl Turns + 'static, impl Bytes + 'static>, usage: StreamUsage) -> Vec<String> {
    let response = Response::stream("text/event-stream", move |out| answer.stream(usage, out));
    let text = String::from_utf8(response.into_bytes().unwrap()).unwrap();
    assert!(text.ends_with("\n\n"));
    text.trim_end().split("\n\n").map(|event| event.strip_prefix("data: ").unwrap().to_owned()).collect()
}

fn parsed(events: &[String]) -> Vec<Value> {
    events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

#[test]
fn a_stream_is_role_content_end_and_done() {
    let events = events(answer(hello()), StreamUsage::Absent);
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(done, "[DONE]");
    let chunks = parsed(chunks);
    for chunk in &chunks {
        assert_eq!(chunk["id"], "chatcmpl-00000000000000000000000000000001");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["created"], 17);
        assert_eq!(chunk["model"], "the \"model\"");
        assert!(chunk.get("usage").is_none());
    }
    let deltas: Vec<_> = chunks.iter().map(|chunk| chunk["choices"][0]["delta"].clone()).collect();
    assert_eq!(
        deltas,
        [
            json!({"role": "assistant", "content": ""}),
            json!({"content": "Hel\"lo\n"}),
            json!({"content": "ö"}),
            json!({"content": "!"}),
            json!({}),
        ]
    );
    let reasons: Vec<_> = chunks.iter().map(|chunk| chunk["choices"][0]["finish_reason"].clone()).collect();
    assert_eq!(reasons, [json!(null), json!(null), json!(null), json!(null), json!("stop")]);
}

#[test]
fn usage_comes_in_a_chunk_of_its_own() {
    let events = events(answer(hello()), StreamUsage::Included);
    let chunks = parsed(&events[..events.len() - 1]);
    let (last, before) = chunks.split_last().unwrap();
    assert!(before.iter().all(|chunk| chunk["usage"] == json!(null) && chunk.get("usage").is_some()));
    assert_eq!(last["choices"], json!([]));
    assert_eq!(
        last["usage"],
        json!({
            "prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 0},
        })
    );
}

#[test]
fn an_error_in_the_middle_ends_the_stream_with_its_envelope() {
    let broken = vec![chunk("a", &[1], None), Err(Error::Backend("out of luck".to_owned()).into())];
    let events = events(answer(broken), StreamUsage::Included);
    let all = parsed(&events);
    assert_eq!(all.len(), 3, "no [DONE], no usage");
    assert_eq!(all[2]["error"]["type"], "server_error");
}

#[test]
fn the_whole_answer_is_one_object() {
    let body: Value = serde_json::from_slice(&answer(hello()).whole().unwrap()).unwrap();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(
        body["choices"],
        json!([{
            "index": 0,
            "message": {"role": "assistant", "content": "Hel\"lo\nö!", "refusal": null},
            "logprobs": null,
            "finish_reason": "stop",
        }])
    );
    assert_eq!(body["usage"]["completion_tokens"], 4);
}

#[test]
fn the_end_of_the_context_is_a_length() {
    for end in [End::Length, End::ContextFull] {
        let body = answer(vec![chunk("x", &[1], Some(end))]).whole().unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["choices"][0]["finish_reason"], "length");
    }
    assert_eq!(answer(vec![chunk("x", &[1], None)]).whole().unwrap_err().status, 500);
}

#[test]
fn log_probabilities_are_reported_in_both_shapes() {
    let asked = |mut answer: Answer<_, _>| {
        answer.logprobs = true;
        answer
    };
    let entry = |token: &str, first: u8| {
        json!({
            "token": token, "logprob": -0.5, "bytes": [first, 0xe4],
            "top_logprobs": [
                {"token": token, "logprob": -0.5, "bytes": [first, 0xe4]},
                {"token": "a\u{fffd}", "logprob": -9999, "bytes": [b'a', 0xe4]},
            ],
        })
    };
    let expected = [entry("b\u{fffd}", b'b'), entry("c\u{fffd}", b'c')];
    let chunks = || vec![chunk("x", &[1, 2], Some(End::Length))];

    let number = |value: &Value| value.to_string().replace("-9999.0", "-9999");
    let body: Value = serde_json::from_slice(&asked(answer(chunks())).whole().unwrap()).unwrap();
    assert_eq!(number(&body["choices"][0]["logprobs"]["content"]), number(&json!(expected)));

    let events = events(asked(answer(chunks())), StreamUsage::Absent);
    let content: Value = serde_json::from_str(&events[1]).unwrap();
    assert_eq!(number(&content["choices"][0]["logprobs"]["content"]), number(&json!(expected)));
}

/// Two answers whose chunks come in turns; the second one ends first.
fn two() -> Answer<impl Turns, impl Bytes> {
    answers(
        2,
        vec![
            (1, chunk("b", &[2], None)),
            (0, chunk("a", &[1], None)),
            (1, chunk("B", &[2, 3], Some(End::Length))),
            (0, chunk("A", &[1], Some(End::Natural))),
        ],
    )
}

#[test]
fn choices_are_told_apart_by_their_index() {
    let body: Value = serde_json::from_slice(&two().whole().unwrap()).unwrap();
    let choice = |index: usize| {
        let choice = &body["choices"][index];
        (choice["index"].clone(), choice["message"]["content"].clone(), choice["finish_reason"].clone())
    };
    assert_eq!(choice(0), (json!(0), json!("aA"), json!("stop")));
    assert_eq!(choice(1), (json!(1), json!("bB"), json!("length")));
    assert_eq!(body["usage"]["completion_tokens"], 5);
    assert_eq!(body["usage"]["prompt_tokens"], 5, "the prompt counts once");

    let events = events(two(), StreamUsage::Included);
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(done, "[DONE]");
    let (usage, chunks) = chunks.split_last().unwrap();
    assert!(usage.contains("\"completion_tokens\":5"), "{usage}");
    for (index, text, reason) in [(0, "aA", "stop"), (1, "bB", "length")] {
        let own: Vec<Value> =
            parsed(chunks).into_iter().filter(|chunk| chunk["choices"][0]["index"] == index).collect();
        assert_eq!(own[0]["choices"][0]["delta"]["role"], "assistant");
        let said: String = own.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(said, text);
        assert_eq!(own.last().unwrap()["choices"][0]["finish_reason"], reason);
    }
}

#[test]
fn an_answer_with_a_choice_that_broke_off_is_none() {
    let half = || answers(2, vec![(0, chunk("a", &[1], Some(End::Length))), (1, chunk("b", &[2], None))]);
    assert_eq!(half().whole().unwrap_err().status, 500);
    let events = events(half(), StreamUsage::Absent);
    assert!(events.last().unwrap().contains("broke off"), "{events:?}");
}

#[test]
fn time_is_counted_from_where_the_prompt_was_there() {
    let began = std::time::Instant::now().checked_sub(Duration::from_millis(90)).unwrap();
    let timed = |turns, choices| {
        let mut answer = answers(choices, turns);
        answer.running.generating = began;
        answer.timings = Timings::Reported;
        let body: serde_json::Value = serde_json::from_slice(&answer.whole().unwrap()).unwrap();
        body["timings"].clone()
    };
    // All at once, as a whole answer is fetched.
    let all = chunk("abcd", &[1, 2, 3, 4], Some(End::Natural));
    let times = timed(vec![(0, all)], 1);
    let spent = times["predicted_ms"].as_f64().unwrap();
    assert!(spent >= 90.0, "{times}");
    let rate = times["predicted_per_second"].as_f64().unwrap();
    assert!((rate - 3000.0 / spent).abs() < 0.01, "four tokens are three steps: {times}");
    assert_eq!((&times["predicted_n"], &times["prompt_ms"]), (&4.into(), &3.0.into()));
    let one = timed(vec![(0, chunk("a", &[1], Some(End::Length)))], 1);
    assert_eq!((&one["predicted_per_second"], &one["predicted_per_token_ms"]), (&0.0.into(), &0.0.into()), "{one}");
}
