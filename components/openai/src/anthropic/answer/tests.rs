//! Whole answers and streams, byte by byte, as the files in `snapshots` have them.

use std::time::Duration;

use chat_format::Event;
use nala_sdk::llm::{self, Sampled};
use serde_json::Value;

use super::*;
use crate::snapshots::compare;
use crate::turn::Turn;

/// What is generated, and a shape.
struct Script {
    turns: Vec<Result<Turn, ApiError>>,
    thoughts: Thoughts,
    stop: Vec<String>,
}

impl Script {
    /// A turn of two tokens for each list of events, the last of which ends so.
    fn new(turns: &[&[Event]], end: End) -> Self {
        let count = turns.len();
        let turn = |(at, events): (usize, &&[Event])| {
            let thoughts = events.iter().any(|event| matches!(event, Event::Reasoning(_)));
            let tokens = [1, 2].map(|id| Sampled { id, logprob: None, alts: Vec::new(), forced: false }).to_vec();
            let reasoning_tokens = if thoughts { 2 } else { 0 };
            Ok(Turn { events: events.to_vec(), tokens, reasoning_tokens, end: (at + 1 == count).then_some(end) })
        };
        let turns = turns.iter().enumerate().map(turn).collect();
        Self { turns, thoughts: Thoughts::Shown, stop: vec!["\n\n".to_owned(), "END".to_owned()] }
    }

    fn answer(self) -> Answer<impl Turns, impl Bytes> {
        Answer {
            ids: Ids::of(0x2a),
            thoughts: self.thoughts,
            stop: self.stop,
            running: Running {
                model: "the \"model\"".to_owned(),
                created: 17,
                prompt: PrefillInfo { cached: 2, computed: 3 },
                prompt_time: Duration::from_millis(3),
                generating: std::time::Instant::now(),
                choices: 1,
                turns: self.turns.into_iter().map(|turn| (0, turn)),
                bytes: |_| Vec::new(),
            },
        }
    }
}

fn text(text: &str) -> Event {
    Event::Content(text.to_owned())
}

fn thought(text: &str) -> Event {
    Event::Reasoning(text.to_owned())
}

fn call(index: usize, name: &str) -> Event {
    Event::CallStart { index, name: name.to_owned(), id: None }
}

fn input(index: usize, text: &str) -> Event {
    Event::CallArguments { index, text: text.to_owned() }
}

fn called(index: usize) -> Event {
    Event::CallEnd { index }
}

const SNAPSHOTS: &str = "anthropic/answer/snapshots";

/// Compares the events of an answer to its snapshot.
fn streamed(name: &str, script: impl Fn() -> Script + 'static) {
    let streamed = Response::stream("text/event-stream", move |out| script().answer().stream(out)).into_bytes();
    compare(SNAPSHOTS, &format!("{name}.sse"), std::str::from_utf8(&streamed.unwrap()).unwrap());
}

/// Compares an answer as one object to its snapshot.
fn whole(name: &str, script: Script) {
    let whole = script.answer().whole().unwrap();
    serde_json::from_slice::<Value>(&whole).unwrap();
    compare(SNAPSHOTS, &format!("{name}.json"), std::str::from_utf8(&whole).unwrap());
}

macro_rules! snapshot {
    ($name:ident, $script:expr) => {
        #[test]
        fn $name() {
            let script = || $script;
            streamed(stringify!($name), script);
            whole(stringify!($name), script());
        }
    };
}

snapshot!(
    plain_text,
    // The second turn has a part of a character, and no text yet.
    Script::new(&[&[text("Hel\"lo\n")], &[], &[text("ö")], &[text("!")]], End::Natural)
);

snapshot!(
    thinking_then_text,
    Script::new(&[&[thought("2 + 2, ")], &[thought("hm.")], &[text("4")], &[]], End::Natural)
);

snapshot!(
    thoughts_that_are_omitted,
    Script {
        thoughts: Thoughts::Omitted,
        ..Script::new(&[&[thought("secret")], &[thought(" thing"), text("4")]], End::Natural)
    }
);

snapshot!(
    one_tool,
    Script::new(
        &[&[call(0, "get_weather")], &[input(0, "{\"location\": \"Pa")], &[input(0, "ris\"}")], &[called(0)]],
        End::Natural
    )
);

snapshot!(
    a_tool_without_arguments_by_the_models_id,
    Script::new(
        &[&[Event::CallStart { index: 0, name: "now".to_owned(), id: Some("functions.now:0".to_owned()) }, called(0)]],
        End::Natural
    )
);

snapshot!(
    two_parallel_tools,
    Script::new(
        &[
            &[call(0, "add"), input(0, "{\"a\":1,"), input(0, "\"b\":[2]}"), called(0), call(1, "now")],
            &[input(1, "{}"), called(1)],
        ],
        End::Natural
    )
);

snapshot!(
    text_then_tool,
    Script::new(
        &[
            &[thought("I need it."), text("Let me "), text("see.")],
            &[call(0, "now"), input(0, "{\"zone\":\"ü\"}"), called(0)],
            &[text("Done.")],
        ],
        End::Natural
    )
);

snapshot!(
    a_tool_cut_by_max_tokens,
    Script::new(
        &[&[call(0, "write"), input(0, "{\"path\":\"a.txt\",\"text\":\"once upon")], &[input(0, " a ti")]],
        End::Length
    )
);

snapshot!(
    a_tool_that_is_no_json,
    Script::new(
        &[
            &[call(0, "write"), input(0, "{\"path\":\"a.txt\",text:")],
            &[
                input(0, " oops"),
                Event::Malformed { index: Some(0), text: "}</tool_call>".to_owned(), reason: "no JSON".to_owned() }
            ],
            &[text("Sorry.")],
        ],
        End::Natural
    )
);

snapshot!(
    what_only_looked_like_a_tool,
    Script::new(
        &[
            &[text("a ")],
            &[Event::Malformed { index: None, text: "<tool_call>b".to_owned(), reason: "no JSON".to_owned() }],
            &[text(" c")],
        ],
        End::Natural
    )
);

snapshot!(empty_output, Script::new(&[&[]], End::Natural));

snapshot!(a_stop_sequence, Script::new(&[&[text("one")], &[text("two")]], End::StopText(1)));

snapshot!(prefill, Script::new(&[&[text(" Paris")], &[text(".")]], End::ContextFull));

#[test]
fn an_error_in_the_middle() {
    let script = || {
        let mut script = Script::new(&[&[text("Hel")], &[text("lo")]], End::Natural);
        script.turns[1] = Err(llm::Error::Evicted.into());
        script
    };
    streamed("an_error_in_the_middle", script);
    assert_eq!(script().answer().whole().unwrap_err().status, 503);
}

#[test]
fn a_generation_that_breaks_off_is_an_error_and_no_answer() {
    let script = || {
        let mut script = Script::new(&[&[text("Hel")], &[text("lo")]], End::Natural);
        script.turns.pop();
        script
    };
    assert_eq!(script().answer().whole().unwrap_err().status, 500);
    let streamed = Response::stream("text/event-stream", move |out| script().answer().stream(out)).into_bytes();
    let streamed = String::from_utf8(streamed.unwrap()).unwrap();
    assert!(streamed.contains("event: error\n") && streamed.contains("\"api_error\""), "{streamed}");
    assert!(!streamed.contains("message_stop"), "{streamed}");
}

#[test]
fn the_end_is_told_in_anthropics_words() {
    let texts = ["a".to_owned(), "b".to_owned()];
    let stop = |end, calls, texts| {
        let Stop { reason, sequence } = Stop::of(end, calls, texts);
        (reason, sequence.map(str::to_owned))
    };
    assert_eq!(stop(End::Natural, 0, &texts), ("end_turn", None));
    assert_eq!(stop(End::Natural, 2, &texts), ("tool_use", None));
    assert_eq!(stop(End::StopText(1), 0, &texts), ("stop_sequence", Some("b".to_owned())));
    assert_eq!(stop(End::Length, 1, &texts), ("max_tokens", None));
    assert_eq!(stop(End::ContextFull, 0, &texts), ("model_context_window_exceeded", None));
}

#[test]
fn ids_tell_calls_apart() {
    let twice = |id: &str| Event::CallStart { index: 0, name: "f".to_owned(), id: Some(id.to_owned()) };
    let script = Script::new(&[&[twice("x"), called(0), twice("x"), called(1), twice(""), called(2)]], End::Natural);
    let whole: Value = serde_json::from_slice(&script.answer().whole().unwrap()).unwrap();
    let ids: Vec<_> = (0..3).map(|index| whole["content"][index]["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids[0], "x");
    assert!(ids[1] != "x" && ids[2].len() > 6 && ids[1] != ids[2], "{ids:?}");
}

#[test]
fn each_delivery_has_its_content_type() {
    for (delivery, content_type) in [(Delivery::Whole, "application/json"), (Delivery::Events, "text/event-stream")] {
        let shape = Shape { delivery, thoughts: Thoughts::Shown, stop: Vec::new() };
        let answer = Script::new(&[&[text("Hi")]], End::Natural).answer();
        let response = shape.respond(Ids::of(1), answer.running).unwrap();
        assert_eq!(response.header("content-type"), Some(content_type));
        assert!(String::from_utf8(response.into_bytes().unwrap()).unwrap().contains("\"Hi\""));
    }
}
