//! The `content` of a message.

use nala_sdk::chat::Content;
use serde_json::Value;

use crate::brief::{brief, short};
use crate::error::ApiError;

/// Reads a string, or a list of parts.
pub(super) fn read(value: &Value, role: &str, at: &str) -> Result<Content, ApiError> {
    let parts = match value {
        Value::String(text) => return Ok(Content::Text(text.clone())),
        Value::Array(parts) => parts,
        other => {
            return Err(ApiError::invalid(
                at,
                format!("'{at}' must be a string or a list of text parts, not {}", brief(other)),
            ));
        }
    };
    let texts: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(index, value)| part(value, role, &format!("{at}[{index}]")).map(str::to_owned))
        .collect::<Result<_, _>>()?;
    Ok(Content::Parts(texts))
}

fn part<'a>(value: &'a Value, role: &str, at: &str) -> Result<&'a str, ApiError> {
    let fields = value
        .as_object()
        .ok_or_else(|| ApiError::invalid(at, format!("'{at}' must be an object, not {}", brief(value))))?;
    let kind_at = format!("{at}.type");
    // The text stands under the name of its type.
    let key = match fields.get("type") {
        None => return Err(ApiError::missing(kind_at, "text")),
        Some(Value::String(kind)) => match kind.as_str() {
            "text" => "text",
            "refusal" if role == "assistant" => "refusal",
            "refusal" => {
                let message = format!("'{kind_at}' is refusal, which only messages of the assistant can have");
                return Err(ApiError::invalid(kind_at, message));
            }
            other => {
                let message = format!("'{kind_at}' is {}; only parts of type text are supported", short(other));
                return Err(ApiError::unsupported(kind_at, message));
            }
        },
        Some(other) => {
            let message = format!("'{kind_at}' must be a string, not {}", brief(other));
            return Err(ApiError::invalid(kind_at, message));
        }
    };
    let unknown = fields.iter().find(|(name, value)| *name != "type" && *name != key && !value.is_null());
    if let Some((name, _)) = unknown {
        return Err(ApiError::unknown(format!("{at}.{}", short(name))));
    }
    let text_at = || format!("{at}.{key}");
    match fields.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => {
            let message = format!("'{}' must be a string, not {}", text_at(), brief(other));
            Err(ApiError::invalid(text_at(), message))
        }
        None => Err(ApiError::missing(text_at(), "a string")),
    }
}
