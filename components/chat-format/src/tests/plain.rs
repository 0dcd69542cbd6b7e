//! Plain text, and how much of a text is held back.

use crate::{Event, Format, Parser};

use crate::tests::answers::{reads, tools};

#[test]
fn plain_text_comes_out_as_it_is() {
    for &format in Format::ALL {
        for text in ["", " ", "\n\n Hello \n", "Straße 🚀\r\n\tx ", "a < b && c > d", "1. x\n\n\n2. y\n"] {
            let say = format!("say: {text}");
            let expected: &[&str] = if text.is_empty() { &[] } else { &[&say] };
            reads(format, text, expected);
        }
        let blanks = " \n".repeat(5000);
        reads_once(format, &format!("{blanks}x{blanks}"));
    }
}

fn reads_once(format: Format, text: &str) {
    let mut parser = Parser::new(format, &tools(), "");
    let mut events = Vec::new();
    parser.push(text, &mut events);
    parser.finish(crate::Ended::Complete, &mut events);
    let all: String =
        events.iter().map(|event| if let Event::Content(text) = event { text.as_str() } else { "?" }).collect();
    assert_eq!(all, text);
}

#[test]
fn only_what_may_be_a_marker_is_held_back() {
    let mut parser = Parser::new(Format::Hermes, &tools(), "");
    let mut events = Vec::new();
    for (piece, expected) in [
        ("Hello", "Hello"),
        (" ", ""),
        ("you", " you"),
        (" <tool", ""),
        ("s>", " <tools>"),
        (" {\"name\": ", " {\"name\":"),
    ] {
        events.clear();
        parser.push(piece, &mut events);
        let expected: &[Event] = if expected.is_empty() { &[] } else { &[Event::Content(expected.to_owned())] };
        assert_eq!(events, expected, "{piece}");
    }
}

#[test]
fn arguments_come_as_they_are_written() {
    let mut parser = Parser::new(Format::Hermes, &tools(), "");
    let mut events = Vec::new();
    parser.push("<tool_call>{\"name\": \"any\", \"arguments\": {\"a\": \"b", &mut events);
    let start = Event::CallStart { index: 0, name: "any".to_owned(), id: None };
    assert_eq!(events, [start, Event::CallArguments { index: 0, text: "{\"a\": \"b".to_owned() }]);
    events.clear();
    parser.push("c", &mut events);
    assert_eq!(events, [Event::CallArguments { index: 0, text: "c".to_owned() }]);
    let mut parser = Parser::new(Format::QwenCoder, &tools(), "");
    events.clear();
    parser.push("<tool_call><function=weather><parameter=city>New ", &mut events);
    assert_eq!(events[1], Event::CallArguments { index: 0, text: "{\"city\":\"New ".to_owned() });
}

#[test]
fn no_more_is_held_back_than_the_bound() {
    let long = "x".repeat(200 << 10);
    // What is not known to be a call.
    for format in [Format::Llama3, Format::Generic] {
        let mut parser = Parser::new(format, &tools(), "");
        let mut events = Vec::new();
        parser.push(&format!("{{\"id\": \"{long}"), &mut events);
        assert!(matches!(&events[..], [Event::Content(text)] if text.len() == long.len() + 8), "{format:?}");
    }
    // What is, but says nothing yet.
    for text in ["<tool_call>{\"arguments\": {\"a\": \"", "<tool_call>{\"type\": \"", "<tool_call>{\"name\": \""] {
        let mut parser = Parser::new(Format::Hermes, &tools(), "");
        let mut events = Vec::new();
        parser.push(text, &mut events);
        for _ in 0..200 {
            parser.push(&"x".repeat(1 << 10), &mut events);
        }
        assert!(matches!(&events[0], Event::Malformed { index: None, text, .. } if text.len() == 64 << 10), "{text}");
        let rest: usize =
            events.iter().map(|event| if let Event::Content(text) = event { text.len() } else { 0 }).sum();
        assert_eq!(rest + (64 << 10), text.len() + (200 << 10));
    }
    // A value whose type is not known.
    let mut parser = Parser::new(Format::QwenCoder, &tools(), "");
    let mut events = Vec::new();
    parser.push(&format!("<tool_call><function=any><parameter=a>{long}"), &mut events);
    assert!(events.iter().any(|event| matches!(event, Event::Malformed { index: Some(0), .. })), "{}", events.len());
    // Arguments that are given out can be as long as they like.
    let mut parser = Parser::new(Format::Hermes, &tools(), "");
    events.clear();
    parser.push(&format!("<tool_call>{{\"name\": \"any\", \"arguments\": {{\"a\": \"{long}\"}}}}"), &mut events);
    assert_eq!(events.last(), Some(&Event::CallEnd { index: 0 }));
}

#[test]
fn nothing_comes_after_the_end() {
    let mut parser = Parser::new(Format::Hermes, &tools(), "");
    let mut events = Vec::new();
    parser.finish(crate::Ended::Cut, &mut events);
    parser.push("more", &mut events);
    parser.finish(crate::Ended::Complete, &mut events);
    assert_eq!(events, []);
}
