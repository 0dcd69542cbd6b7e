//! The content blocks of a message.

use std::collections::{HashMap, HashSet};

use nala_sdk::chat::{Content, Message, ToolCall};
use serde_json::Value;

use crate::brief::{brief, short};
use crate::error::ApiError;
use crate::part::Part;

/// The calls that are still to be answered: their functions by their ids.
pub(super) type Calls = HashMap<String, String>;

/// What a user said in one turn.
#[derive(Debug, Default)]
pub(super) struct User {
    /// Answers to calls, as messages.
    pub(super) results: Vec<Message>,
    /// The rest.
    pub(super) texts: Vec<String>,
}

/// What the assistant said in one turn.
#[derive(Debug, Default)]
pub(super) struct Assistant {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<ToolCall>,
    /// The ids of the calls.
    ids: HashSet<String>,
}

impl User {
    /// Adds the content of a message: a string, or a list of text blocks and results
    /// of calls.
    pub(super) fn add(&mut self, content: &Value, place: &str, calls: &mut Calls) -> Result<(), ApiError> {
        if let Value::String(text) = content {
            self.texts.push(text.clone());
            return Ok(());
        }
        let blocks = listed(content, place)?;
        if blocks.is_empty() {
            return Err(ApiError::invalid(place, format!("'{place}' is an empty list; it needs at least one block")));
        }
        for block in blocks {
            match kind(&block, "text or tool_result")? {
                "text" => self.texts.push(text(&block)?),
                "tool_result" => self.results.push(result(&block, calls)?),
                other @ ("tool_use" | "thinking" | "redacted_thinking") => {
                    let message =
                        format!("'{}' is {other}, which only messages of the assistant can have", block.at("type"));
                    return Err(ApiError::invalid(block.at("type"), message));
                }
                other => return Err(unsupported(&block, other, "text and tool_result")),
            }
        }
        Ok(())
    }
}

impl Assistant {
    /// Adds the content of a message: a string, or a list of blocks as answers have
    /// them. Its blocks of text are pieces of one text.
    pub(super) fn add(&mut self, content: &Value, place: &str) -> Result<(), ApiError> {
        let said = match content {
            Value::String(text) => text.clone(),
            _ => self.blocks(content, place)?,
        };
        // Texts of different messages are not.
        if !self.text.is_empty() && !said.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&said);
        Ok(())
    }

    /// Adds blocks and returns their text.
    fn blocks(&mut self, content: &Value, place: &str) -> Result<String, ApiError> {
        let mut said = String::new();
        for block in listed(content, place)? {
            match kind(&block, "text, thinking, redacted_thinking or tool_use")? {
                "text" => said.push_str(&text(&block)?),
                "thinking" => {
                    block.only(&["type", "thinking", "signature", "cache_control"])?;
                    block.text("signature")?;
                    self.reasoning.push_str(block.required("thinking", "what the model thought")?);
                }
                // Sealed by another server; nobody here can read it.
                "redacted_thinking" => block.only(&["type", "data", "cache_control"])?,
                "tool_use" => {
                    let call = call(&block)?;
                    if !self.ids.insert(call.id.clone()) {
                        let at = block.at("id");
                        let message = format!("'{at}' is {:?}, as another call's; each needs its own", short(&call.id));
                        return Err(ApiError::invalid(at, message));
                    }
                    self.calls.push(call);
                }
                "tool_result" => {
                    let at = block.at("type");
                    let message = format!("'{at}' is tool_result, which only messages of the user can have");
                    return Err(ApiError::invalid(at, message));
                }
                other => return Err(unsupported(&block, other, "text, thinking, redacted_thinking and tool_use")),
            }
        }
        Ok(said)
    }
}

/// The texts of a string or a list of text blocks.
pub(super) fn texts(value: &Value, place: &str) -> Result<Vec<String>, ApiError> {
    if let Value::String(text) = value {
        return Ok(vec![text.clone()]);
    }
    let one = |block: Part<'_>| match kind(&block, "text")? {
        "text" => text(&block),
        other => Err(unsupported(&block, other, "text")),
    };
    listed(value, place)?.into_iter().map(one).collect()
}

fn listed<'a>(content: &'a Value, place: &str) -> Result<Vec<Part<'a>>, ApiError> {
    match content {
        Value::Array(_) => Part::list(content, place),
        other => {
            let message = format!("'{place}' must be a string or a list of blocks, not {}", brief(other));
            Err(ApiError::invalid(place, message))
        }
    }
}

fn kind<'a>(block: &Part<'a>, kinds: &str) -> Result<&'a str, ApiError> {
    block.required("type", kinds)
}

fn unsupported(block: &Part<'_>, kind: &str, supported: &str) -> ApiError {
    let at = block.at("type");
    let message = format!("'{at}' is {}; only blocks of type {supported} are supported here", short(kind));
    ApiError::unsupported(at, message)
}

fn text(block: &Part<'_>) -> Result<String, ApiError> {
    // Citations come with answers of other servers and are no part of the text.
    block.only(&["type", "text", "cache_control", "citations"])?;
    block.required("text", "a string").map(str::to_owned)
}

fn call(block: &Part<'_>) -> Result<ToolCall, ApiError> {
    block.only(&["type", "id", "name", "input", "cache_control", "caller", "toolset_name"])?;
    let arguments = match block.get("input") {
        Some(input @ Value::Object(_)) => input.to_string(),
        Some(other) => return Err(block.wrong("input", "an object", other)),
        None => return Err(ApiError::missing(block.at("input"), "the arguments of the call, an object")),
    };
    Ok(ToolCall {
        id: block.required("id", "the id of the call")?.to_owned(),
        name: block.required("name", "the name of the tool")?.to_owned(),
        arguments,
    })
}

fn result(block: &Part<'_>, calls: &mut Calls) -> Result<Message, ApiError> {
    block.only(&["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"])?;
    let id = block.required("tool_use_id", "the id of the call that this answers")?;
    let Some(name) = calls.remove(id) else {
        let at = block.at("tool_use_id");
        let message = format!(
            "'{at}' is {:?}, but the assistant's turn before makes no such call, or it has a result already",
            short(id)
        );
        return Err(ApiError::invalid(at, message));
    };
    let said = match block.get("content") {
        Some(content) => texts(content, &block.at("content"))?.join("\n"),
        None => String::new(),
    };
    let said = if block.boolean("is_error")?.unwrap_or(false) { failed(said) } else { said };
    Ok(Message {
        content: Content::Text(said),
        // Some templates print it.
        name: Some(name),
        tool_call_id: Some(id.to_owned()),
        ..Message::new("tool", "")
    })
}

/// Templates know no errors, so the text has to say that it is one.
fn failed(text: String) -> String {
    match text.get(..5) {
        _ if text.is_empty() => "Error".to_owned(),
        Some(begin) if begin.eq_ignore_ascii_case("error") => text,
        _ => format!("Error: {text}"),
    }
}
