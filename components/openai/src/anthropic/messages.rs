//! The conversation: `system` and `messages`.
//!
//! Messages of one role that follow one another are one turn, as at Anthropic. A
//! turn of the user becomes the results of calls, in their order, and then a message
//! with all its texts: models were trained on results that directly follow their
//! calls. A turn of the assistant becomes one message, whose text, thoughts and calls
//! templates put in an order of their own.

use nala_sdk::chat::{Content, Message};
use serde_json::Value;

use super::blocks::{self, Assistant, Calls, User};
use super::system;
use crate::ask::Last;
use crate::brief::short;
use crate::error::ApiError;
use crate::part::Part;

/// The most messages of a request, as at Anthropic.
const MOST: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    System,
    User,
    Assistant,
}

struct Said<'a> {
    role: Role,
    content: &'a Value,
    /// Where the content stands.
    at: String,
}

/// Reads what has been said, and what becomes of the end of it.
pub(super) fn read(root: &Part<'_>) -> Result<(Vec<Message>, Last), ApiError> {
    const WHAT: &str = "a list of at least one message";
    let value = root.get("messages").ok_or_else(|| ApiError::missing("messages", WHAT))?;
    let list = match value {
        Value::Array(list) if list.is_empty() || list.len() > MOST => {
            let message = format!("'messages' has {} messages; it must have 1 to {MOST}", list.len());
            return Err(ApiError::invalid("messages", message));
        }
        Value::Array(_) => Part::list(value, "messages")?,
        other => return Err(root.wrong("messages", WHAT, other)),
    };
    let said = list.iter().map(said).collect::<Result<Vec<_>, _>>()?;

    let mut system = system::read(root)?;
    let mut messages = Vec::with_capacity(said.len() + 1);
    let mut calls = Calls::new();
    for turn in said.chunk_by(|one, next| one.role == next.role) {
        let Some(first) = turn.first() else { continue };
        if first.role != Role::System || !messages.is_empty() {
            messages.extend(of("system", std::mem::take(&mut system)));
        }
        match first.role {
            Role::System => {
                for said in turn {
                    system.extend(blocks::texts(said.content, &said.at)?);
                }
                messages.extend(of("system", std::mem::take(&mut system)));
            }
            Role::User => {
                let mut user = User::default();
                for said in turn {
                    user.add(said.content, &said.at, &mut calls)?;
                }
                messages.append(&mut user.results);
                messages.extend(of("user", user.texts));
            }
            Role::Assistant => {
                let mut assistant = Assistant::default();
                for said in turn {
                    assistant.add(said.content, &said.at)?;
                }
                calls = assistant.calls.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
                messages.push(message(assistant));
            }
        }
    }
    let place = list.last().map_or("messages", Part::place);
    let last = end(&mut messages, place)?;
    Ok((messages, last))
}

fn said<'a>(message: &Part<'a>) -> Result<Said<'a>, ApiError> {
    message.only(&["role", "content"])?;
    let role = match message.required("role", "user or assistant")? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => {
            let at = message.at("role");
            let message = format!("'{at}' is {:?}; it must be user, assistant or system", short(other));
            return Err(ApiError::invalid(at, message));
        }
    };
    let at = message.at("content");
    let content =
        message.get("content").ok_or_else(|| ApiError::missing(at.as_str(), "a string or a list of blocks"))?;
    Ok(Said { role, content, at })
}

/// A message of texts, where there are any.
fn of(role: &str, mut texts: Vec<String>) -> Option<Message> {
    let content = match texts.len() {
        0 => return None,
        1 => Content::Text(texts.pop()?),
        _ => Content::Parts(texts),
    };
    Some(Message { content, ..Message::new(role, "") })
}

fn message(said: Assistant) -> Message {
    let content = match said.text {
        text if text.is_empty() && !said.calls.is_empty() => Content::None,
        text => Content::Text(text),
    };
    let reasoning = Some(said.reasoning).filter(|text| !text.is_empty());
    Message { content, reasoning, tool_calls: said.calls, ..Message::new("assistant", "") }
}

/// What becomes of the last message, which stands at `place`. An assistant's is the
/// beginning of the answer; one that says nothing begins nothing.
fn end(messages: &mut Vec<Message>, place: &str) -> Result<Last, ApiError> {
    let Some(last) = messages.last().filter(|last| last.role == "assistant") else { return Ok(Last::Answered) };
    let wrong = |message: String| Err(ApiError::invalid(place, message));
    if !last.tool_calls.is_empty() {
        return wrong(format!("'{place}' calls tools; a message of the user with their results must follow"));
    }
    let text = match &last.content {
        Content::Text(text) => text.as_str(),
        Content::None | Content::Parts(_) => "",
    };
    match (text, &last.reasoning) {
        ("", Some(_)) => wrong(format!(
            "'{place}' has thoughts alone, from which no answer can be gone on; add a text, or leave the message out"
        )),
        ("", None) => {
            messages.pop();
            match messages.iter().any(|message| message.role != "system") {
                true => Ok(Last::Answered),
                false => wrong(format!("'{place}' is empty, and there is no other message to answer")),
            }
        }
        (text, _) if text.ends_with(char::is_whitespace) => wrong(format!(
            "'{place}' ends with white space; the answer goes on from it, and models begin their words with the blank \
             themselves: leave it out"
        )),
        _ => Ok(Last::Continued),
    }
}
