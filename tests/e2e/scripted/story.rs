//! A stream as something that is the same each time.
//!
//! Ids and times are named instead of told. How many tokens come in one event
//! depends on how fast they are taken, so events that only go on from the one before
//! them are joined to it.

use serde_json::Value;

/// Where events keep what goes on: the text of chat completions, of responses, and
/// of Anthropic's messages.
const GROWING: [&str; 7] = [
    "/choices/0/delta/content",
    "/choices/0/delta/reasoning_content",
    "/choices/0/delta/tool_calls/0/function/arguments",
    "/delta",
    "/delta/text",
    "/delta/thinking",
    "/delta/partial_json",
];

/// One event a line, its name before its data.
///
/// # Panics
/// If the text is no stream of events, or their numbers do not count.
pub(super) fn of(stream: &str) -> String {
    assert!(stream.ends_with("\n\n"), "it ends within an event: {stream}");
    let mut told: Vec<(String, Value)> = Vec::new();
    let mut number = 0;
    for event in stream.trim_end_matches("\n\n").split("\n\n") {
        let (mut name, mut data) = (String::new(), None);
        for line in event.lines() {
            match line.split_once(": ") {
                Some(("event", text)) => text.clone_into(&mut name),
                Some(("data", "[DONE]")) => data = Some("[DONE]".into()),
                Some(("data", text)) => data = Some(serde_json::from_str(text).expect("an event is JSON")),
                _ => panic!("not a line of an event: {line:?}"),
            }
        }
        let mut data: Value = data.expect("an event has data");
        if let Some(here) = data.as_object_mut().and_then(|data| data.shift_remove("sequence_number")) {
            assert_eq!(here, number, "{event}");
            number += 1;
        }
        let joined = told.last_mut().is_some_and(|(before, last)| *before == name && join(last, &data));
        if !joined {
            told.push((name, data));
        }
    }
    let line = |(name, data): (String, Value)| format!("{name} {data}\n").trim_start().to_owned();
    without_chance(&told.into_iter().map(line).collect::<String>())
}

/// Appends `next` to `last` if it only goes on from there.
fn join(last: &mut Value, next: &Value) -> bool {
    let at =
        GROWING.iter().find(|at| [&*last, next].iter().all(|event| event.pointer(at).is_some_and(Value::is_string)));
    let Some(at) = at else { return false };
    let mut rest = next.clone();
    let (Some(Value::String(more)), Some(Value::String(text))) = (rest.pointer(at).cloned(), last.pointer(at).cloned())
    else {
        return false;
    };
    // The rest of the two has to be the same. A role is said once, with no text.
    *rest.pointer_mut(at).expect("it was there") = text.as_str().into();
    if rest != *last || text.is_empty() {
        return false;
    }
    *last.pointer_mut(at).expect("it was there") = (text + &more).into();
    true
}

/// The same with ids and times named.
fn without_chance(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let (before, from) = rest.split_at(at);
        let run = from.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(from.len());
        let (hex, after) = from.split_at(run);
        out.push_str(before);
        match run {
            // An id is a random number of 32 digits and perhaps a counter.
            32.. => {
                out.push_str("ID");
                out.push_str(&hex[32..]);
            }
            // Seconds since 1970.
            10 if hex.starts_with('1') && hex.chars().all(|c| c.is_ascii_digit()) => out.push_str("TIME"),
            _ => out.push_str(hex),
        }
        rest = after;
    }
    out + rest
}

/// The same with numbers of tokens named.
pub(super) fn without_counts(text: &str) -> String {
    const COUNT: &str = "_tokens\":";
    let mut parts = text.split(COUNT);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        out.push_str(COUNT);
        out.push_str(if rest.len() < part.len() { "N" } else { "" });
        out.push_str(rest);
    }
    out
}

#[test]
fn what_is_left_to_chance_is_named() {
    let id = "0123456789abcdef0123456789abcdef";
    let text = format!("{{\"id\":\"chatcmpl-{id}\",\"call\":\"call_{id}02\",\"created\":1796004731,\"n\":12}}");
    assert_eq!(without_chance(&text), "{\"id\":\"chatcmpl-ID\",\"call\":\"call_ID02\",\"created\":TIME,\"n\":12}");
}

#[test]
fn what_goes_on_is_joined() {
    let delta =
        |text: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let stream = format!("{}{}{}data: [DONE]\n\n", delta(""), delta("a"), delta("b"));
    let story = of(&stream);
    assert_eq!(story.lines().count(), 3, "{story}");
    assert!(story.contains("\"ab\""), "{story}");
}
