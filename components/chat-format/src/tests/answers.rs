//! Answers, read as a whole and cut everywhere.

use crate::{Ended, Event, Format, Parser, Strict, Tool};
use serde_json::json;

fn tool(name: &str, parameters: Option<serde_json::Value>) -> Tool {
    let parameters = parameters.map(|schema| schema.as_object().cloned().unwrap());
    Tool { name: name.to_owned(), description: None, parameters, strict: Strict::Lenient }
}

/// Tools with arguments of each kind.
pub(crate) fn tools() -> Vec<Tool> {
    let weather = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "metric": {"type": "boolean"}},
        "required": ["city"],
    });
    let plan = json!({
        "type": "object",
        "properties": {
            "steps": {"type": "array", "items": {"type": "string"}},
            "where": {"type": "object", "properties": {"x": {"type": "number"}}},
            "note": {"type": ["string", "null"]},
        },
        "required": ["steps"],
    });
    let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
    vec![
        tool("weather", Some(weather)),
        tool("plan", Some(plan)),
        tool("now", Some(empty)),
        tool("any", Some(json!({}))),
    ]
}

/// All that comes of pieces of text.
pub(crate) fn events<'a>(
    format: Format,
    tools: &[Tool],
    tail: &str,
    pieces: impl IntoIterator<Item = &'a str>,
    ended: Ended,
) -> Vec<Event> {
    let mut parser = Parser::new(format, tools, tail);
    let mut events = Vec::new();
    for piece in pieces {
        parser.push(piece, &mut events);
    }
    parser.finish(ended, &mut events);
    events
}

/// Events in short, with pieces that belong together joined.
pub(crate) fn brief(events: &[Event]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open: Option<usize> = None;
    let mut calls = 0;
    let mut arguments = String::new();
    for (at, event) in events.iter().enumerate() {
        let joins = at.checked_sub(1).is_some_and(|before| {
            std::mem::discriminant(&events[before]) == std::mem::discriminant(event)
                && matches!(event, Event::Content(_) | Event::Reasoning(_))
        });
        match event {
            Event::Content(text) | Event::Reasoning(text) => {
                assert!(!text.is_empty(), "{events:?}");
                assert_eq!(open, None, "text within a call: {events:?}");
                if joins {
                    lines.last_mut().unwrap().push_str(text);
                } else {
                    let kind = if matches!(event, Event::Content(_)) { "say" } else { "think" };
                    lines.push(format!("{kind}: {text}"));
                }
            }
            Event::CallStart { index, name, id } => {
                assert_eq!((*index, open), (calls, None), "{events:?}");
                calls += 1;
                open = Some(*index);
                arguments.clear();
                let id = id.as_ref().map(|id| format!("#{id}")).unwrap_or_default();
                lines.push(format!("open {name}{id} "));
            }
            Event::CallArguments { index, text } => {
                assert_eq!(open, Some(*index), "{events:?}");
                assert!(!text.is_empty(), "{events:?}");
                lines.last_mut().unwrap().push_str(text);
                arguments.push_str(text);
            }
            Event::CallEnd { index } => {
                assert_eq!(open.take(), Some(*index), "{events:?}");
                let line = lines.last_mut().unwrap();
                *line = line.replacen("open", "call", 1);
                assert!(
                    serde_json::from_str::<serde_json::Value>(&arguments).is_ok_and(|value| value.is_object()),
                    "{arguments}"
                );
            }
            Event::Malformed { index, text, reason } => {
                assert_eq!(open.take(), *index, "{events:?}");
                lines.push(format!("bad: {text} ({reason})"));
            }
        }
    }
    lines
}

/// Splits a text before some of its characters.
fn split<'a>(text: &'a str, at: &[usize]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for &at in at.iter().rev() {
        let (before, after) = rest.split_at(at);
        pieces.push(after);
        rest = before;
    }
    pieces.push(rest);
    pieces.reverse();
    pieces
}

/// Asserts what an answer is, however it is cut.
#[track_caller]
pub(crate) fn reads_with(format: Format, tools: &[Tool], tail: &str, text: &str, ended: Ended, expected: &[&str]) {
    let whole = brief(&events(format, tools, tail, [text], ended));
    assert_eq!(whole, expected, "{format:?} of {text:?}");
    let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    let same = |pieces: Vec<&str>| {
        let cut = brief(&events(format, tools, tail, pieces.iter().copied(), ended));
        assert_eq!(cut, expected, "{format:?} of {pieces:?}");
    };
    same(split(text, &cuts));
    for (n, &first) in cuts.iter().enumerate() {
        same(split(text, &[first]));
        // All pairs are too many for long texts.
        let step = 1 + cuts.len() / 60;
        for &second in cuts.iter().skip(n + 1).step_by(step) {
            same(split(text, &[first, second]));
        }
    }
}

/// Asserts what a complete answer with tools is.
#[track_caller]
pub(crate) fn reads(format: Format, text: &str, expected: &[&str]) {
    reads_with(format, &tools(), "", text, Ended::Complete, expected);
}

/// Asserts what an answer is after the end of a prompt.
#[track_caller]
pub(crate) fn reads_after(format: Format, tail: &str, text: &str, expected: &[&str]) {
    reads_with(format, &tools(), tail, text, Ended::Complete, expected);
}

/// Asserts what an answer is that was cut off.
#[track_caller]
pub(crate) fn reads_cut(format: Format, text: &str, expected: &[&str]) {
    reads_with(format, &tools(), "", text, Ended::Cut, expected);
}
