//! Tools for models whose template knows none: they are told of tools in words,
//! and calls and results are written out, in the notation of Hermes, which many
//! models were trained on or can follow.
//!
//! A call is
//! ```text
//! <tool_call>
//! {"name": "add", "arguments": {"a": 1, "b": 2}}
//! </tool_call>
//! ```
//! in what the assistant says. Results are `<tool_response>`, a line break, the
//! result, a line break and `</tool_response>` in what the user says.

use crate::conversation::{Call, Conversation, Turn};
use crate::{Content, json};

/// Tells the model of the tools, in its first system message.
pub(super) fn offer(conversation: &mut Conversation) {
    let mut text = "# Tools\n\nYou may call functions to answer. Their signatures are JSON between <tools> and </tools>:\n<tools>\n"
        .to_owned();
    for tool in std::mem::take(&mut conversation.tools) {
        if let serde_json::Value::Object(shown) = tool.plain() {
            text.push_str(&json::object(&shown));
            text.push('\n');
        }
    }
    text.push_str(
        "</tools>\n\nTo call a function, write a JSON object with its name and its arguments between \
         <tool_call> and </tool_call>, and nothing after it:\n\
         <tool_call>\n{\"name\": <name of the function>, \"arguments\": <object of arguments>}\n</tool_call>\n\
         The result is then given to you between <tool_response> and </tool_response>.",
    );
    match conversation.turns.first_mut().filter(|turn| turn.role == "system") {
        Some(system) => super::roles::put_behind(&mut system.content, &text),
        None => conversation.turns.insert(0, Turn::new("system", text)),
    }
}

/// Writes calls out.
pub(super) fn write_calls(conversation: &mut Conversation) {
    conversation.turns.iter_mut().filter(|turn| !turn.calls.is_empty()).for_each(say_calls);
}

/// Writes calls and their results out.
pub(super) fn write_calls_and_results(conversation: &mut Conversation) {
    let mut turns: Vec<Turn> = Vec::with_capacity(conversation.turns.len());
    // Whether the last turn is of results, which the user's next message joins.
    let mut after_results = false;
    for mut turn in conversation.turns.drain(..) {
        let is_result = turn.role == "tool";
        if is_result {
            turn = Turn::new("user", format!("<tool_response>\n{}\n</tool_response>", turn.text()));
        } else if !turn.calls.is_empty() {
            say_calls(&mut turn);
        }
        match turns.last_mut() {
            Some(last) if after_results && turn.role == "user" => {
                last.content = Content::Text(format!("{}\n{}", last.text(), turn.text()));
            }
            _ => turns.push(turn),
        }
        after_results = is_result;
    }
    conversation.turns = turns;
}

fn say_calls(turn: &mut Turn) {
    let mut said = turn.text();
    for call in turn.calls.drain(..) {
        if !said.is_empty() {
            said.push('\n');
        }
        said.push_str(&written(&call));
    }
    turn.content = Content::Text(said);
}

fn written(call: &Call) -> String {
    let name = serde_json::Value::from(call.name.as_str());
    format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {}}}\n</tool_call>", json::object(&call.arguments))
}
