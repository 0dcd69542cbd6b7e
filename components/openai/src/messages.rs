//! The `messages` parameter.

mod content;

use std::collections::HashSet;

use nala_sdk::chat::{Content, Message, ToolCall};
use serde_json::{Map, Value};

use crate::brief::{brief, short};
use crate::error::ApiError;

/// The keys that a message of any role may have.
const KEYS: [&str; 6] = ["role", "content", "name", "tool_calls", "tool_call_id", "function_call"];

/// What answers carry beside those, and what comes back with the conversation. Of
/// these only thoughts are shown to templates.
const OF_ANSWERS: [&str; 4] = ["refusal", "annotations", "reasoning_content", "tool_call_errors"];

/// Reads the conversation.
///
/// Content is a string or a list of text parts.
/// `developer` is OpenAI's newer name of `system`, the one that templates know.
/// What answers carry (`refusal`, `annotations`) may come back in a message of the
/// assistant and is ignored; any other key is refused, unless it is null.
///
/// # Errors
/// 400 naming the message and its key.
pub fn read(value: Option<&Value>) -> Result<Vec<Message>, ApiError> {
    const WHAT: &str = "a list of at least one message";
    let value = value.ok_or_else(|| ApiError::missing("messages", WHAT))?;
    let list = value.as_array().filter(|list| !list.is_empty());
    let list =
        list.ok_or_else(|| ApiError::invalid("messages", format!("'messages' must be {WHAT}, not {}", brief(value))))?;
    let messages =
        list.iter().enumerate().map(|(index, value)| message(index, value)).collect::<Result<Vec<_>, _>>()?;
    answers_follow_calls(&messages)?;
    Ok(messages)
}

/// Refuses answers to calls that nobody made before.
fn answers_follow_calls(messages: &[Message]) -> Result<(), ApiError> {
    let mut made = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        made.extend(message.tool_calls.iter().map(|call| call.id.as_str()));
        if let Some(id) = message.tool_call_id.as_deref().filter(|id| !made.contains(id)) {
            let at = format!("messages[{index}].tool_call_id");
            let message = format!("'{at}' is {:?}, but no message before it makes a call of that id", short(id));
            return Err(ApiError::invalid(at, message));
        }
    }
    Ok(())
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
                format!(
                    "'{}' is {:?}; it must be system, developer, user, assistant or tool",
                    at("role"),
                    short(other)
                ),
            ));
        }
    };
    refuse_unknown(fields, role, &at)?;
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
        Some(value) => content::read(value, role, &at("content"))?,
        None if !tool_calls.is_empty() => Content::None,
        None => return Err(ApiError::missing(at("content"), "a string or a list of text parts")),
    };
    let tool_call_id = text(fields, "tool_call_id", &at)?;
    if role == "tool" && tool_call_id.is_none() {
        return Err(ApiError::missing(at("tool_call_id"), "the id of the call that this message answers"));
    }
    Ok(Message {
        role: role.to_owned(),
        content,
        reasoning: text(fields, "reasoning_content", &at)?,
        name: text(fields, "name", &at)?,
        tool_calls,
        tool_call_id,
    })
}

fn refuse_unknown(fields: &Map<String, Value>, role: &str, at: &dyn Fn(&str) -> String) -> Result<(), ApiError> {
    for (key, _) in fields.iter().filter(|(_, value)| !value.is_null()) {
        match key.as_str() {
            known if KEYS.contains(&known) => {}
            known if role == "assistant" && OF_ANSWERS.contains(&known) => {}
            "audio" => {
                return Err(ApiError::unsupported(
                    at("audio"),
                    format!("'{}' is not supported; leave it out", at(key)),
                ));
            }
            unknown => return Err(ApiError::unknown(at(&short(unknown)))),
        }
    }
    Ok(())
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
            {"role": "assistant", "content": "", "annotations": [], "audio": null, "whatever": null,
                "reasoning_content": "hm", "tool_call_errors": ["x"]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "refusal": "no"},
        ])))
        .unwrap();
        assert_eq!(messages[0].role, "system");
        assert_eq!(messages[0].name.as_deref(), Some("ops"));
        assert_eq!(messages[1].content, Content::Parts(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!((&messages[2].content, messages[2].tool_calls.len()), (&Content::None, 1));
        assert_eq!(messages[3].tool_call_id.as_deref(), Some("1"));
        assert_eq!(messages[4].content, Content::Text(String::new()));
        assert_eq!(messages[4].reasoning.as_deref(), Some("hm"));
        assert_eq!(messages[5].content, Content::Parts(vec!["no".to_owned()]));
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
            (json!([{"role": "tool", "content": "x", "tool_call_id": "1"}]), "messages[0].tool_call_id"),
            (json!([{"role": "user", "content": "x", "tool_calls": []}]), "messages[0].tool_calls"),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}]),
                "messages[0].tool_calls[0].function.arguments",
            ),
            (json!([{"role": "assistant", "content": "x", "function_call": {}}]), "messages[0].function_call"),
            (json!([{"role": "user", "content": "x", "contnet": "y"}]), "messages[0].contnet"),
            (json!([{"role": "user", "content": "x", "refusal": "y"}]), "messages[0].refusal"),
            (json!([{"role": "assistant", "content": "x", "audio": {"id": "1"}}]), "messages[0].audio"),
            (
                json!([{"role": "user", "content": [{"type": "refusal", "refusal": "no"}]}]),
                "messages[0].content[0].type",
            ),
            (
                json!([{"role": "user", "content": [{"type": "text", "text": "x", "txet": 1}]}]),
                "messages[0].content[0].txet",
            ),
        ] {
            let (named, message) = refused(messages.clone());
            assert_eq!(named.as_deref(), Some(param), "{messages}: {message}");
        }
        assert_eq!(read(None).unwrap_err().param.as_deref(), Some("messages"));
    }

    #[test]
    fn what_a_content_part_is_instead_of_an_object_is_said() {
        for (part, at, said) in [
            (json!("text"), "messages[0].content[0]", "must be an object, not \"text\""),
            (json!(null), "messages[0].content[0]", "must be an object, not null"),
            (json!({"type": 3, "text": "x"}), "messages[0].content[0].type", "must be a string, not 3"),
            (json!({"text": "x"}), "messages[0].content[0].type", "is required"),
            (json!({"type": "text", "text": 3}), "messages[0].content[0].text", "must be a string, not 3"),
        ] {
            let (param, message) = refused(json!([{"role": "user", "content": [part]}]));
            assert_eq!(param.as_deref(), Some(at), "{part}: {message}");
            assert!(message.contains(said), "{part}: {message}");
        }
    }

    #[test]
    fn long_names_are_shortened_where_they_are_echoed() {
        let long = "x".repeat(100_000);
        for message in
            [json!({"role": long, "content": "x"}), json!({"role": "user", "content": "x", long.as_str(): 1})]
        {
            let (param, message) = refused(json!([message]));
            assert!(message.len() < 300 && param.is_some_and(|param| param.len() < 150), "{message}");
        }
    }
}
