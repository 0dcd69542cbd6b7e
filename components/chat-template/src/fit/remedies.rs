//! What else may help when a template refuses a conversation or fails at it.

use serde_json::Value;

use super::render;
use crate::conversation::{Conversation, Turn};
use crate::engine::{Program, Rendered};
use crate::manner::NoTools;
use crate::{Content, Error, clock};

/// Applies one remedy after another until the template renders.
///
/// # Errors
/// The first of the template's own words; `failed`, how it failed without remedies,
/// where it has none.
pub(super) fn find(
    program: &Program<'_>,
    mut conversation: Conversation,
    failed: Error,
    now: u64,
) -> Result<(Conversation, Rendered), Error> {
    let remedies: [&dyn Fn(&mut Conversation); 6] = [
        &|conversation| variables(conversation, now),
        &no_tools,
        &descriptions,
        &short_ids,
        &fewer_thoughts,
        &neighbours,
    ];
    let mut told = failed;
    for remedy in remedies {
        remedy(&mut conversation);
        match render(program, &conversation) {
            Ok(rendered) => return Ok((conversation, rendered)),
            Err(refused @ Error::Refused(_)) if !matches!(told, Error::Refused(_)) => told = refused,
            Err(_) => {}
        }
    }
    Err(told)
}

/// Gives the template variables that only some families have: Firefunction's
/// `functions`, the tools as JSON text, and `datetime`.
pub(super) fn variables(conversation: &mut Conversation, now: u64) {
    let tools: Vec<Value> = conversation.tools.iter().map(|tool| tool.plain()).collect();
    let functions = serde_json::to_string_pretty(&tools).unwrap_or_default();
    let more = &mut conversation.manner.more;
    more.insert("functions".to_owned(), functions.into());
    more.insert("datetime".to_owned(), clock::strftime("%b %d %Y %H:%M:%S GMT", now).into());
}

/// Some templates walk over the tools unasked.
fn no_tools(conversation: &mut Conversation) {
    conversation.manner.no_tools = NoTools::Empty;
}

/// Command R+ prints the description of every argument unasked.
fn descriptions(conversation: &mut Conversation) {
    for tool in &mut conversation.tools {
        let Some(Value::Object(properties)) = tool.parameters.get_mut("properties") else { continue };
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.entry("description").or_insert_with(|| "".into());
        }
    }
}

/// Mistral's templates want ids of nine letters and digits.
fn short_ids(conversation: &mut Conversation) {
    let mut ids: Vec<String> = Vec::new();
    let mut short = |id: &mut String| {
        let number = ids.iter().position(|known| known == id).unwrap_or_else(|| {
            ids.push(id.clone());
            ids.len() - 1
        });
        *id = format!("call{number:05}");
    };
    for turn in &mut conversation.turns {
        turn.calls.iter_mut().for_each(|call| short(&mut call.id));
        turn.call_id.iter_mut().for_each(&mut short);
    }
}

/// gpt-oss refuses a message that thinks, speaks and calls: what it says there is
/// its thought.
fn fewer_thoughts(conversation: &mut Conversation) {
    for turn in &mut conversation.turns {
        if !turn.calls.is_empty() && turn.content != Content::None {
            turn.reasoning = None;
        }
    }
}

/// Some templates want user and assistant to alternate.
fn neighbours(conversation: &mut Conversation) {
    let mut turns: Vec<Turn> = Vec::with_capacity(conversation.turns.len());
    for turn in conversation.turns.drain(..) {
        let speaks = |turn: &Turn| matches!(turn.role.as_str(), "user" | "assistant") && turn.calls.is_empty();
        match turns.last_mut() {
            Some(last) if last.role == turn.role && speaks(last) && speaks(&turn) => {
                last.content = Content::Text(format!("{}\n\n{}", last.text(), turn.text()));
                last.reasoning = last.reasoning.take().or(turn.reasoning);
            }
            _ => turns.push(turn),
        }
    }
    conversation.turns = turns;
}
