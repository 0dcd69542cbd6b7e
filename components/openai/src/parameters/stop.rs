//! The `stop` parameter.

use serde_json::Value;

use crate::brief::brief;
use crate::error::ApiError;

/// The most stop texts that are accepted. OpenAI accepts 4.
pub(crate) const MAX_STOP: usize = 16;

/// The longest one that the host looks for, in bytes.
pub(crate) const MAX_BYTES: usize = 1024;

/// Reads a text, or a list of them.
pub(crate) fn read(value: Option<&Value>) -> Result<Vec<String>, ApiError> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() > MAX_STOP => {
            let message = format!("'stop' has {} texts, but at most {MAX_STOP} are allowed", list.len());
            Err(ApiError::invalid("stop", message))
        }
        Some(Value::Array(list)) => {
            list.iter().enumerate().map(|(index, value)| one(value, &format!("stop[{index}]"))).collect()
        }
        Some(value @ Value::String(_)) => Ok(vec![one(value, "stop")?]),
        Some(other) => {
            let message = format!("'stop' must be a string or a list of strings, not {}", brief(other));
            Err(ApiError::invalid("stop", message))
        }
    }
}

fn one(value: &Value, at: &str) -> Result<String, ApiError> {
    let wrong = |what: String| Err(ApiError::invalid("stop", format!("'{at}' {what}")));
    match value {
        Value::String(text) if text.is_empty() => wrong("is empty; it must have at least one character".to_owned()),
        Value::String(text) if text.len() > MAX_BYTES => {
            wrong(format!("has {} bytes, but at most {MAX_BYTES} are allowed", text.len()))
        }
        Value::String(text) => Ok(text.clone()),
        other => wrong(format!("must be a string, not {}", brief(other))),
    }
}
