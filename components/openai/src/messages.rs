//! The `messages` parameter.

use nala_sdk::chat::{Message, ToolCall};
use serde_json::{Map, Value};

use crate::error::ApiError;

/// Reads the conversation.
///
/// Content is a string or a list of text parts, which are joined by line breaks.
/// `developer` is OpenAI's newer name of `system`, the one that templates know.
/// Keys that answers carry (`refusal`, `annotations`, …) may come back in a
/// message and are ignored.
///
/// # Errors
/// 400 naming the message and its key.
pub fn read(value: Option<&Value>) -> Result<Vec<Message>, ApiError> {
    const WHAT: &str = "a list of at least one message";
    let value = value.ok_or_else(|| ApiError::missing("messages", WHAT))?;
    let list = value.as_array().filter(|list| !list.is_empty());
    let list =
        list.ok_or_else(|| ApiError::invalid("messages", format!("'messages' must be {WHAT}, not {}", brief(value))))?;
    list.iter().enumerate().map(|(index, value)| message(index, value)).collect()
}

fn message(index: usize, value: &Value) -> Result<Message, ApiError> {
    let at = |key: &str| format!("messages[{index}].{key}");
    let fields = value.as_object().ok_or_else(|| {
        let at = format!("messages[{index}]");
        ApiError::invalid(&*at, format!("'{at}' must be an object, not {}", brief(value)))
    })?;
    let role = text(fields, "role", &at)?
        .ok_or_else(|| ApiError::missing(at("role"), "system, developer, user, assistant or tool"))?;
    let role = match role.as_str() {
        "system" | "developer" => "system",
        "user" => "user",
        "assistant" => "assistant",
        "tool" => "tool",
        other => {
            return Err(ApiError::invalid(
                at("role"),
                format!("'{}' is {other:?}; it must be system, developer, user, assistant or tool", at("role")),
            ));
        }
    };
    if present(fields, "function_call").is_some() {
        return Err(ApiError::unsupported(at("function_call"), "'function_call' is not supported; use 'tool_calls'"));
    }
    let tool_calls = match present(fields, "tool_calls") {
        Some(calls) if role == "assistant" => tool_calls(calls, &at("tool_calls"))?,
        Some(_) => {
            return Err(ApiError::invalid(at("tool_calls"), "only messages of the assistant can have 'tool_calls'"));
        }
        None => Vec::new(),
    };
    let content = match present(fields, "content") {
        Some(value) => Some(content(value, &at("content"))?),
        None if !tool_calls.is_empty() => None,
        None => return Err(ApiError::missing(at("content"), "a string or a list of text parts")),
    };
    let tool_call_id = text(fields, "tool_call_id", &at)?;
    if role == "tool" && tool_call_id.is_none() {
        return Err(ApiError::missing(at("tool_call_id"), "the id of the call that this message answers"));
    }
    Ok(Message { role: role.to_owned(), content, name: text(fields, "name", &at)?, tool_calls, tool_call_id })
}

fn content(value: &Value, at: &str) -> Result<String, ApiError> {
    let parts = match value {
        Value::String(text) => return Ok(text.clone()),
        Value::Array(parts) => parts,
        other => {
            return Err(ApiError::invalid(
                at,
                format!("'{at}' must be a string or a list of text parts, not {}", brief(other)),
            ));
        }
    };
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("missing");
        let key = match kind {
            "text" => "text",
            "refusal" => "refusal",
            other => {
                let at = format!("{at}[{index}].type");
                return Err(ApiError::unsupported(
                    &*at,
                    format!("'{at}' is {other}; only parts of type text are supported"),
                ));
            }
        };
        let text = part.get(key).and_then(Value::as_str).ok_or_else(|| {
            let at = format!("{at}[{index}].{key}");
            ApiError::invalid(&*at, format!("'{at}' must be a string"))
        })?;
        texts.push(text);
    }
    Ok(texts.join("\n"))
}

fn tool_calls(value: &Value, at: &str) -> Result<Vec<ToolCall>, ApiError> {
    let calls = value
        .as_array()
        .ok_or_else(|| ApiError::invalid(at, format!("'{at}' must be a list, not {}", brief(value))))?;
    let read = |(index, call): (usize, &Value)| {
        let field = |path: &[&str]| {
            let value = path.iter().try_fold(call, |value, key| value.get(key));
            value.and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
                let at = format!("{at}[{index}].{}", path.join("."));
                ApiError::invalid(&*at, format!("'{at}' must be a string"))
            })
        };
        Ok(ToolCall {
            id: field(&["id"])?,
            name: field(&["function", "name"])?,
            arguments: field(&["function", "arguments"])?,
        })
    };
    calls.iter().enumerate().map(read).collect()
}

/// A value that is there and not null.
fn present<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    fields.get(key).filter(|value| !value.is_null())
}

fn text(fields: &Map<String, Value>, key: &str, at: &dyn Fn(&str) -> String) -> Result<Option<String>, ApiError> {
    match present(fields, key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            let at = at(key);
            Err(ApiError::invalid(&*at, format!("'{at}' must be a string, not {}", brief(other))))
        }
    }
}

/// A value in short, for messages to people.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.chars().count() <= 40 => format!("{text:?}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(messages: Value) -> (Option<String>, String) {
        let error = read(Some(&messages)).unwrap_err();
        assert_eq!(error.status, 400);
        (error.param, error.message)
    }

    #[test]
    fn all_shapes_of_content_are_read() {
        let messages = read(Some(&json!([
            {"role": "developer", "content": "Be brief", "name": "ops"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "refusal": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "done"},
            {"role": "assistant", "content": "", "annotations": []},
        ])))
        .unwrap();
        assert_eq!(messages[0].role, "system");
        assert_eq!(messages[0].name.as_deref(), Some("ops"));
        assert_eq!(messages[1].content.as_deref(), Some("a\nb"));
        assert_eq!((messages[2].content.as_deref(), messages[2].tool_calls.len()), (None, 1));
        assert_eq!(messages[3].tool_call_id.as_deref(), Some("1"));
        assert_eq!(messages[4].content.as_deref(), Some(""));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (messages, param) in [
            (json!([]), "messages"),
            (json!("hi"), "messages"),
            (json!([1]), "messages[0]"),
            (json!([{"content": "x"}]), "messages[0].role"),
            (json!([{"role": "king", "content": "x"}]), "messages[0].role"),
            (json!([{"role": 1, "content": "x"}]), "messages[0].role"),
            (json!([{"role": "user"}]), "messages[0].content"),
            (json!([{"role": "user", "content": null}]), "messages[0].content"),
            (json!([{"role": "user", "content": 1}]), "messages[0].content"),
            (json!([{"role": "user", "content": [{"type": "image_url"}]}]), "messages[0].content[0].type"),
            (json!([{"role": "user", "content": [{"type": "text"}]}]), "messages[0].content[0].text"),
            (json!([{"role": "user", "content": "x", "name": 1}]), "messages[0].name"),
            (json!([{"role": "tool", "content": "x"}]), "messages[0].tool_call_id"),
            (json!([{"role": "user", "content": "x", "tool_calls": []}]), "messages[0].tool_calls"),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}]),
                "messages[0].tool_calls[0].function.arguments",
            ),
            (json!([{"role": "assistant", "content": "x", "function_call": {}}]), "messages[0].function_call"),
        ] {
            let (named, message) = refused(messages.clone());
            assert_eq!(named.as_deref(), Some(param), "{messages}: {message}");
        }
        assert_eq!(read(None).unwrap_err().param.as_deref(), Some("messages"));
    }
}
