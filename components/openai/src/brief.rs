//! What a client sent, in short, for messages to people.

use std::borrow::Cow;

use serde_json::Value;

/// The most characters of a name that an error echoes.
const NAME: usize = 80;

/// The most characters of a text that an error shows.
const TEXT: usize = 40;

/// A name, cut where it is longer than a message should be.
pub(crate) fn short(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => Cow::Owned(format!("{}…", name.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}

/// A value.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.chars().count() <= TEXT => format!("{text:?}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
