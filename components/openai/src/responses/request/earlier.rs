//! Items about the server's tools, as earlier answers had them.

use nala_sdk::chat::{Content, ToolCall};
use serde_json::Value;

use super::conversation::Conversation;
use crate::error::ApiError;
use crate::part::Part;

/// The label of tools that were listed. Which there are is asked anew, so nothing else of
/// the list is read.
pub(super) fn listed<'a>(item: &Part<'a>) -> Result<&'a str, ApiError> {
    item.only(&["type", "id", "server_label", "tools", "error"])?;
    item.required("server_label", "the label of the tools")
}

/// A call of a tool of the server's, and what came of it.
pub(super) fn call(item: &Part<'_>, conversation: &mut Conversation) -> Result<(), ApiError> {
    item.only(&[
        "type",
        "id",
        "server_label",
        "name",
        "arguments",
        "output",
        "error",
        "status",
        "approval_request_id",
    ])?;
    let field = |key, what| item.required(key, what).map(str::to_owned);
    field("server_label", "the label of the tools")?;
    let id = field("id", "the id of the call")?;
    conversation.called(ToolCall {
        id: id.clone(),
        name: field("name", "the name of the tool")?,
        arguments: field("arguments", "the arguments as a text of JSON")?,
    });
    let said = match (item.text("output")?, item.get("error")) {
        (Some(output), _) => output.to_owned(),
        (None, Some(error)) => format!("Error: {}", why(error)),
        (None, None) => "Error: this call was not made".to_owned(),
    };
    // The call stands before it.
    let _ = conversation.returned(&id, Content::Text(said));
    Ok(())
}

/// What an error says: a text, or what its kind has one in.
fn why(error: &Value) -> String {
    let texts = |parts: &Vec<Value>| {
        let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
        texts.join("\n")
    };
    match (error, error.get("message"), error.get("content")) {
        (Value::String(text), ..) | (_, Some(Value::String(text)), _) => text.clone(),
        (_, _, Some(Value::Array(parts))) => texts(parts),
        _ => error.to_string(),
    }
}

/// 400: nobody is asked for approval, so there is nothing to approve of.
pub(super) fn approval(item: &Part<'_>) -> ApiError {
    let message = "is about an approval, but nobody is asked to approve of calls here; leave the item out, and send \
                   \"require_approval\": \"never\" with the tools that may be called without";
    item.unsupported("type", message)
}
