use std::time::Duration;

use chat_format::Event;
use nala_sdk::http::Response;
use nala_sdk::llm::{Alt, Error, PrefillInfo, Sampled, Token};
use serde_json::{Value, json};

use super::*;
use crate::parameters::StreamUsage;
use crate::turn::{End, Turn};

/// The bytes of the tokens: a letter each, but for the two halves of "ö".
fn bytes(token: Token) -> Vec<u8> {
    match token {
        8 => vec![0xc3],
        9 => vec![0xb6],
        letter => vec![b'a' + u8::try_from(letter).unwrap()],
    }
}

fn turn(text: &str, tokens: &[Token], end: Option<End>) -> Result<Turn, ApiError> {
    let sampled = |id: &Token| Sampled {
        id: *id,
        logprob: Some(-0.5),
        alts: vec![Alt { id: 1, logprob: -0.25 }, Alt { id: 2, logprob: f32::NEG_INFINITY }],
        forced: false,
    };
    Ok(Turn {
        events: if text.is_empty() { vec![] } else { vec![Event::Content(text.to_owned())] },
        tokens: tokens.iter().map(sampled).collect(),
        reasoning_tokens: 0,
        end,
    })
}

type Said = Vec<(usize, Result<Turn, ApiError>)>;

fn answer(logprobs: Option<u32>, prompts: Vec<(&str, usize, Said)>) -> Answer<impl Turns, impl Bytes> {
    let part = |(echo, choices, turns): (&str, usize, Said)| Part {
        running: Running {
            model: "m".to_owned(),
            created: 17,
            prompt: PrefillInfo { cached: 2, computed: 3 },
            prompt_time: Duration::ZERO,
            generating: std::time::Instant::now(),
            choices,
            turns: turns.into_iter(),
            bytes,
        },
        echo: echo.to_owned(),
    };
    Answer { parts: prompts.into_iter().map(part).collect(), ids: Ids::of(1), logprobs }
}

fn one() -> Said {
    vec![(0, turn("a", &[0], None)), (0, turn("", &[8], None)), (0, turn("ö", &[9], Some(End::Natural)))]
}

fn two() -> Said {
    vec![
        (1, turn("x", &[1], None)),
        (0, turn("y", &[1, 1], Some(End::StopText(0)))),
        (1, turn("z", &[1], Some(End::Length))),
    ]
}

fn whole(answer: Answer<impl Turns, impl Bytes>) -> Value {
    serde_json::from_slice(&answer.whole().unwrap()).unwrap()
}

fn stream(answer: Answer<impl Turns + 'static, impl Bytes + 'static>, usage: StreamUsage) -> String {
    let response = Response::stream("text/event-stream", move |out| answer.stream(usage, out));
    String::from_utf8(response.into_bytes().unwrap()).unwrap()
}

#[test]
fn the_whole_answer_has_the_choices_of_each_prompt_in_order() {
    let body = whole(answer(None, vec![("", 1, one()), ("p", 2, two())]));
    assert_eq!(
        (&body["id"], &body["object"]),
        (&json!("cmpl-00000000000000000000000000000001"), &json!("text_completion"))
    );
    assert_eq!(
        body["choices"],
        json!([
            {"index": 0, "text": "aö", "logprobs": null, "finish_reason": "stop"},
            {"index": 1, "text": "py", "logprobs": null, "finish_reason": "stop"},
            {"index": 2, "text": "pxz", "logprobs": null, "finish_reason": "length"},
        ])
    );
    assert_eq!(
        body["usage"],
        json!({"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17,
               "prompt_tokens_details": {"cached_tokens": 4}})
    );
}

#[test]
fn a_stream_says_the_same_piece_by_piece() {
    let text = stream(answer(None, vec![("q", 1, one()), ("", 2, two())]), StreamUsage::Included);
    let head = "data: {\"id\":\"cmpl-00000000000000000000000000000001\",\"object\":\"text_completion\",\"created\":17,\"model\":\"m\",\
                \"system_fingerprint\":\"fp_nala_0.1.0\",\"choices\":[";
    let chunk = |index: usize, text: &str, reason: &str| {
        format!(
            "{head}{{\"index\":{index},\"text\":\"{text}\",\"logprobs\":null,\"finish_reason\":{reason}}}],\
             \"usage\":null}}\n\n"
        )
    };
    let expected = [
        chunk(0, "qa", "null"),
        chunk(0, "ö", "null"),
        chunk(0, "", "\"stop\""),
        chunk(2, "x", "null"),
        chunk(1, "y", "null"),
        chunk(1, "", "\"stop\""),
        chunk(2, "z", "null"),
        chunk(2, "", "\"length\""),
        format!(
            "{head}],\"usage\":{{\"prompt_tokens\":10,\"completion_tokens\":7,\"total_tokens\":17,\
             \"prompt_tokens_details\":{{\"cached_tokens\":4}}}}}}\n\n"
        ),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    assert_eq!(text, expected);
    let bare = stream(answer(None, vec![("", 1, one())]), StreamUsage::Absent);
    assert!(!bare.contains("usage") && bare.ends_with("}\n\ndata: [DONE]\n\n"), "{bare}");
}

#[test]
fn log_probabilities_are_parallel_lists() {
    let body = whole(answer(Some(2), vec![("", 1, one())]));
    let logprobs = &body["choices"][0]["logprobs"];
    assert_eq!(logprobs["tokens"], json!(["a", "\u{fffd}", "\u{fffd}"]));
    assert_eq!(logprobs["token_logprobs"], json!([-0.5, -0.5, -0.5]));
    assert_eq!(logprobs["text_offset"], json!([0, 1, 2]));
    // Beside the alternatives there is the token itself.
    let top = &logprobs["top_logprobs"][0];
    assert_eq!((top["a"].as_f64(), top["b"].as_f64(), top["c"].as_f64()), (Some(-0.5), Some(-0.25), Some(-9999.0)));

    // Of the same lists, piece by piece. A token without a text is told, too.
    let text = stream(answer(Some(2), vec![("", 1, one())]), StreamUsage::Absent);
    let chunks: Vec<Value> =
        text.split("\n\n").filter_map(|event| serde_json::from_str(event.strip_prefix("data: ")?).ok()).collect();
    for name in ["tokens", "token_logprobs", "text_offset", "top_logprobs"] {
        let lists = chunks.iter().map(|chunk| &chunk["choices"][0]["logprobs"]).filter(|lists| !lists.is_null());
        let joined: Vec<Value> = lists.flat_map(|lists| lists[name].as_array().unwrap().clone()).collect();
        assert_eq!(&json!(joined), &logprobs[name], "{name}");
    }
}

#[test]
fn offsets_count_characters_and_not_bytes() {
    let said = vec![(0, turn("aöc", &[0, 8, 9, 2], None)), (0, turn("d", &[3], Some(End::Length)))];
    let body = whole(answer(Some(0), vec![("é", 1, said)]));
    let choice = &body["choices"][0];
    assert_eq!(choice["text"], "éaöcd");
    // The second half of "ö" begins behind it, as "c" does.
    assert_eq!(choice["logprobs"]["text_offset"], json!([1, 2, 3, 3, 4]));
}

#[test]
fn what_breaks_off_is_an_error() {
    let broken = || vec![(0, turn("a", &[0], None)), (0, Err(Error::Backend("out of luck".to_owned()).into()))];
    let error = answer(None, vec![("", 1, broken())]).whole().unwrap_err();
    assert_eq!(error.status, 500);
    let text = stream(answer(None, vec![("", 1, broken()), ("", 1, one())]), StreamUsage::Included);
    let events: Vec<&str> = text.trim_end().split("\n\n").collect();
    assert_eq!(events.len(), 2, "nothing behind the error: {text}");
    assert!(events[1].contains("out of luck") && events[1].contains("server_error"), "{text}");

    let unended = || vec![(0, turn("a", &[0], None))];
    assert_eq!(answer(None, vec![("", 1, unended())]).whole().unwrap_err().status, 500);
    let text = stream(answer(None, vec![("", 1, unended())]), StreamUsage::Absent);
    assert!(text.contains("broke off") && !text.contains("[DONE]"), "{text}");
}
