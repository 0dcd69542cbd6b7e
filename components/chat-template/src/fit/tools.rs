//! Tools, calls of them and their results.

use serde_json::{Map, Value};

use super::{remedies, trial, words};
use crate::Content;
use crate::conversation::{Call, Conversation, Offer, Turn};
use crate::engine::Program;
use crate::manner::{Arguments, Manner, Silence};

/// Makes the tools, calls and results of a conversation fit for the template.
pub(super) fn fit(program: &Program<'_>, conversation: &mut Conversation, now: u64) {
    let offered = !conversation.tools.is_empty();
    let called = conversation.turns.iter().any(|turn| turn.role == "tool" || !turn.calls.is_empty());
    if offered && !knows_tools(program, conversation, now) {
        words::offer(conversation);
        words::write_calls_and_results(conversation);
        return;
    }
    if !called {
        return;
    }
    let Some(manner) = manner_of_calls(program, conversation) else {
        if knows_results(program, conversation) {
            words::write_calls(conversation);
        } else {
            words::write_calls_and_results(conversation);
        }
        return;
    };
    conversation.manner = manner;
    speak_first(program, conversation);
    if conversation.turns.iter().any(|turn| turn.calls.len() > 1) && !knows_several(program, conversation) {
        separate(conversation);
    }
}

/// Whether the template shows tools; if it does by other variables, these are given
/// to it.
fn knows_tools(program: &Program<'_>, conversation: &mut Conversation, now: u64) -> bool {
    let begins = conversation.turns.first().map(|turn| turn.role.as_str());
    let system = Turn::new("system", "toolqa");
    let user = Turn::new("user", "toolqb");
    let with_system = (begins == Some("system")).then(|| vec![system, user.clone()]);
    let shown = |like: &Conversation| {
        with_system.clone().into_iter().chain([vec![user.clone()]]).any(|turns| {
            let printed = trial(program, &like.instead(turns, vec![offer()]));
            printed.is_some_and(|text| text.contains("toolqc") && text.contains("toolqd"))
        })
    };
    if shown(conversation) {
        return true;
    }
    let mut more = conversation.instead(Vec::new(), vec![offer()]);
    remedies::variables(&mut more, now);
    if !shown(&more) {
        return false;
    }
    remedies::variables(conversation, now);
    true
}

fn offer() -> Offer {
    let mut parameters = Map::new();
    let property = serde_json::json!({ "toolqd": { "type": "string", "description": "toolqe" } });
    parameters.insert("type".to_owned(), "object".into());
    parameters.insert("properties".to_owned(), property);
    parameters.insert("required".to_owned(), Value::Array(vec!["toolqd".into()]));
    Offer { name: "toolqc".to_owned(), description: "toolqe".to_owned(), parameters }
}

fn call(id: &str, name: &str) -> Call {
    let arguments = Map::from_iter([("callqk".to_owned(), "callqv".into())]);
    Call { id: id.to_owned(), name: name.to_owned(), arguments }
}

fn result(id: &str, name: &str, text: &str) -> Turn {
    Turn { name: Some(name.to_owned()), call_id: Some(id.to_owned()), ..Turn::new("tool", text) }
}

/// How the template shows calls and results best; none if it does not.
fn manner_of_calls(program: &Program<'_>, conversation: &Conversation) -> Option<Manner> {
    let mut best: Option<(Quality, Manner)> = None;
    // Silence matters only if there is any.
    let silent = conversation.turns.iter().any(|turn| !turn.calls.is_empty() && turn.content == Content::None);
    let silences: &[Silence] = if silent { &[Silence::Missing, Silence::Empty] } else { &[Silence::Empty] };
    for arguments in [Arguments::Object, Arguments::Text] {
        for silence in silences {
            let manner = Manner { arguments, silence: *silence, ..conversation.manner.clone() };
            let quality = quality(program, conversation, &manner);
            if quality == Quality::Good {
                return Some(manner);
            }
            if quality > best.as_ref().map_or(Quality::Lost, |(best, _)| *best) {
                best = Some((quality, manner));
            }
        }
    }
    best.map(|(_, manner)| manner)
}

/// How well calls are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Quality {
    /// The template fails, or a call or a result does not appear.
    Lost,
    /// Something appears that is Python or none.
    Odd,
    /// The arguments are JSON within JSON.
    Quoted,
    /// As it should be.
    Good,
}

fn quality(program: &Program<'_>, conversation: &Conversation, manner: &Manner) -> Quality {
    let calling =
        Turn { content: Content::None, calls: vec![call("callq0001", "callqn")], ..Turn::new("assistant", "") };
    let mut probe = conversation.instead(
        vec![Turn::new("user", "callqu"), calling, result("callq0001", "callqn", "callqr")],
        if conversation.tools.is_empty() { Vec::new() } else { vec![offer()] },
    );
    probe.manner = manner.clone();
    let Some(text) = trial(program, &probe) else { return Quality::Lost };
    if ["callqn", "callqk", "callqv", "callqr"].iter().any(|word| !text.contains(word)) {
        Quality::Lost
    } else if text.contains("'callqk'") || text.contains("None") {
        Quality::Odd
    } else if text.contains("\\\"callqk") {
        Quality::Quoted
    } else {
        Quality::Good
    }
}

/// Whether results are shown where the calls are written out.
fn knows_results(program: &Program<'_>, conversation: &Conversation) -> bool {
    let turns =
        vec![Turn::new("user", "callqu"), Turn::new("assistant", "callqa"), result("callq0001", "callqn", "callqr")];
    let tools = if conversation.tools.is_empty() { Vec::new() } else { vec![offer()] };
    let printed = trial(program, &conversation.instead(turns, tools));
    printed.is_some_and(|text| ["callqa", "callqr"].iter().all(|word| text.contains(word)))
}

/// Lets a message speak first and call then, where the template shows only what a
/// message that does both says.
fn speak_first(program: &Program<'_>, conversation: &mut Conversation) {
    let both = |turn: &Turn| !turn.calls.is_empty() && !turn.text().trim().is_empty();
    if !conversation.turns.iter().any(both) {
        return;
    }
    let words = ["callqn", "callqk", "callqv"];
    let tools = || if conversation.tools.is_empty() { Vec::new() } else { vec![offer()] };
    let calling = Turn { calls: vec![call("callq0001", "callqn")], ..Turn::new("assistant", "callqa") };
    let mut turns = vec![Turn::new("user", "callqu"), calling, result("callq0001", "callqn", "callqr")];
    let shown = |turns: &[Turn]| {
        let printed = trial(program, &conversation.instead(turns.to_vec(), tools()));
        printed.is_some_and(|text| words.iter().all(|word| text.contains(word)))
    };
    if shown(&turns) {
        return;
    }
    split_speech(&mut turns);
    if shown(&turns) {
        split_speech(&mut conversation.turns);
    }
}

fn split_speech(turns: &mut Vec<Turn>) {
    let mut split = Vec::with_capacity(turns.len());
    for mut turn in turns.drain(..) {
        if !turn.calls.is_empty() && !turn.text().trim().is_empty() {
            split.push(Turn { reasoning: turn.reasoning.take(), ..Turn::new("assistant", turn.text()) });
            turn.content = Content::None;
        }
        split.push(turn);
    }
    *turns = split;
}

/// Whether a message may make several calls.
fn knows_several(program: &Program<'_>, conversation: &Conversation) -> bool {
    let calls = vec![call("callq0001", "callqn"), call("callq0002", "callqm")];
    let turns = vec![
        Turn::new("user", "callqu"),
        Turn { content: Content::Text(String::new()), calls, ..Turn::new("assistant", "") },
        result("callq0001", "callqn", "callqr"),
        result("callq0002", "callqm", "callqs"),
    ];
    let tools = if conversation.tools.is_empty() { Vec::new() } else { vec![offer()] };
    let printed = trial(program, &conversation.instead(turns, tools));
    printed.is_some_and(|text| ["callqn", "callqm", "callqr", "callqs"].iter().all(|word| text.contains(word)))
}

/// Gives each call a message of its own, with its result behind it.
fn separate(conversation: &mut Conversation) {
    let mut turns: Vec<Turn> = Vec::with_capacity(conversation.turns.len());
    let mut rest = conversation.turns.drain(..).peekable();
    while let Some(mut turn) = rest.next() {
        let calls = std::mem::take(&mut turn.calls);
        if calls.is_empty() {
            turns.push(turn);
            continue;
        }
        let mut results = Vec::new();
        while let Some(result) = rest.next_if(|next| next.role == "tool") {
            results.push(result);
        }
        let mut speaking = Some(turn);
        for call in calls {
            let silent = || Turn { content: Content::None, ..Turn::new("assistant", "") };
            let at = results.iter().position(|result| result.call_id.as_ref() == Some(&call.id));
            turns.push(Turn { calls: vec![call], ..speaking.take().unwrap_or_else(silent) });
            turns.extend(at.map(|at| results.remove(at)));
        }
        turns.extend(results);
    }
    drop(rest);
    conversation.turns = turns;
}
