//! The parameter `input`.

use nala_sdk::chat::{Content, Message, ToolCall};
use serde_json::Value;

use super::content::{self, Author};
use super::conversation::Conversation;
use super::earlier;
use super::stored;
use crate::brief::short;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::part::Part;

/// What was said before.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) messages: Vec<Message>,
    /// The labels of the server's tools that were listed.
    pub(super) known: Vec<String>,
}

/// The items that there may be.
const ITEMS: &str = "message, function_call, function_call_output, reasoning, mcp_list_tools and mcp_call";

/// Reads a text of the user's, or a list of items.
pub(super) fn read(instructions: Option<&str>, value: Option<&Value>) -> Result<Input, ApiError> {
    const WHAT: &str = "a string or a list of at least one item";
    let value = value.ok_or_else(|| ApiError::missing("input", WHAT))?;
    let mut conversation = Conversation::default();
    let mut known = Vec::new();
    match value {
        Value::String(text) => conversation.said("user", Content::Text(text.clone())),
        Value::Array(items) if !items.is_empty() => {
            for (index, value) in items.iter().enumerate() {
                item(value, format!("input[{index}]"), &mut conversation, &mut known)?;
            }
        }
        other => return Err(Fields::wrong("input", WHAT, other)),
    }
    Ok(Input { messages: conversation.finish(instructions), known })
}

fn item(value: &Value, at: String, conversation: &mut Conversation, known: &mut Vec<String>) -> Result<(), ApiError> {
    let item = Part::of(value, &*at)?;
    match item.text("type")? {
        Some("message") => message(&item, conversation),
        None if item.get("role").is_some() => message(&item, conversation),
        Some("function_call") => call(&item, conversation),
        Some("function_call_output") => output(&item, conversation),
        Some("reasoning") => reasoning(&item, conversation),
        Some("mcp_list_tools") => {
            known.push(earlier::listed(&item)?.to_owned());
            Ok(())
        }
        Some("mcp_call") => earlier::call(&item, conversation),
        Some("mcp_approval_request" | "mcp_approval_response") => Err(earlier::approval(&item)),
        // A reference's type may be left out.
        Some("item_reference") => Err(stored::reference(item.required("id", "the id of an item")?, at)),
        None if item.get("id").is_some() => Err(stored::reference(item.required("id", "the id of an item")?, at)),
        None => Err(ApiError::missing(item.at("type"), ITEMS)),
        Some(other) => {
            let message = format!("is {}; only items of type {ITEMS} are supported", short(other));
            Err(item.unsupported("type", message))
        }
    }
}

fn message(item: &Part<'_>, conversation: &mut Conversation) -> Result<(), ApiError> {
    item.only(&["type", "role", "content", "id", "status", "phase"])?;
    let role = item.required("role", "user, assistant, system or developer")?;
    let author = if role == "assistant" { Author::Assistant } else { Author::Other };
    let content = match item.get("content") {
        None => return Err(ApiError::missing(item.at("content"), "a string or a list of text parts")),
        Some(value) => content::read(value, author, &item.at("content"))?,
    };
    match role {
        "assistant" => conversation.answered(content),
        "user" => conversation.said("user", content),
        // OpenAI's newer name; templates know the older one.
        "system" | "developer" => conversation.said("system", content),
        other => {
            return Err(item.wrong("role", "user, assistant, system or developer", &Value::from(short(other))));
        }
    }
    Ok(())
}

fn call(item: &Part<'_>, conversation: &mut Conversation) -> Result<(), ApiError> {
    item.only(&["type", "call_id", "name", "arguments", "id", "status", "caller"])?;
    let field = |key, what| item.required(key, what).map(str::to_owned);
    conversation.called(ToolCall {
        id: field("call_id", "the id of the call")?,
        name: field("name", "the name of the function")?,
        arguments: field("arguments", "the arguments as a text of JSON")?,
    });
    Ok(())
}

fn output(item: &Part<'_>, conversation: &mut Conversation) -> Result<(), ApiError> {
    item.only(&["type", "call_id", "output", "id", "status", "name", "caller"])?;
    let id = item.required("call_id", "the id of the call that this item answers")?;
    let content = match item.get("output") {
        None => return Err(ApiError::missing(item.at("output"), "a string or a list of text parts")),
        Some(value) => content::read(value, Author::Other, &item.at("output"))?,
    };
    if conversation.returned(id, content) {
        return Ok(());
    }
    let at = item.at("call_id");
    let message = format!(
        "'{at}' is {:?}, but no item of type function_call before it has this id; send the call, too",
        short(id)
    );
    Err(ApiError::invalid(at, message))
}

fn reasoning(item: &Part<'_>, conversation: &mut Conversation) -> Result<(), ApiError> {
    item.only(&["type", "id", "summary", "content", "status", "encrypted_content"])?;
    if item.get("encrypted_content").is_some() {
        let message = "cannot be read, since only who encrypted it has the key; leave it out";
        return Err(item.unsupported("encrypted_content", message));
    }
    let content = texts(item, "content", "reasoning_text")?;
    let summary = texts(item, "summary", "summary_text")?;
    // A summary stands for thoughts that were kept back.
    for text in if content.is_empty() { summary } else { content } {
        conversation.thought(text);
    }
    Ok(())
}

/// The texts of a list of parts that are all of one type.
fn texts<'a>(item: &Part<'a>, key: &str, kind: &str) -> Result<Vec<&'a str>, ApiError> {
    let one = |(index, value): (usize, &'a Value)| {
        let part = Part::of(value, format!("{}[{index}]", item.at(key)))?;
        let given = part.required("type", kind)?;
        if given != kind {
            return Err(part.wrong("type", kind, &Value::from(short(given))));
        }
        part.only(&["type", "text"])?;
        part.required("text", "a string")
    };
    item.items(key)?.into_iter().flatten().enumerate().map(one).collect()
}
