//! The `content` of a message, and the `output` of a call.

use nala_sdk::chat::Content;
use serde_json::Value;

use crate::brief::short;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::part::Part;

/// Whose content it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    /// The model's, as an earlier answer had it.
    Assistant,
    /// Anybody else's.
    Other,
}

/// Reads a string, or a list of parts. A list of one is as good as a string, which
/// all templates know.
pub(super) fn read(value: &Value, author: Author, at: &str) -> Result<Content, ApiError> {
    let parts = match value {
        Value::String(text) => return Ok(Content::Text(text.clone())),
        Value::Array(parts) => parts,
        other => return Err(Fields::wrong(at, "a string or a list of text parts", other)),
    };
    let read = |(index, value)| part(value, author, format!("{at}[{index}]")).map(str::to_owned);
    let mut texts = parts.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    match (texts.pop(), texts.is_empty()) {
        (None, _) => Ok(Content::Text(String::new())),
        (Some(only), true) => Ok(Content::Text(only)),
        (Some(last), false) => {
            texts.push(last);
            Ok(Content::Parts(texts))
        }
    }
}

fn part(value: &Value, author: Author, at: String) -> Result<&str, ApiError> {
    let part = Part::of(value, &*at)?;
    let kind = part.required("type", "input_text")?;
    // The text's name, and what is there beside it and says nothing to a model.
    let (key, ignored): (&str, &[&str]) = match (kind, author) {
        ("input_text", _) => ("text", &["prompt_cache_breakpoint"]),
        ("output_text", Author::Assistant) => ("text", &["annotations", "logprobs"]),
        ("refusal", Author::Assistant) => ("refusal", &[]),
        ("output_text" | "refusal", Author::Other) => {
            let at = part.at("type");
            let message = format!("'{at}' is {kind}, which only messages of the assistant can have; use input_text");
            return Err(ApiError::invalid(at, message));
        }
        (other, _) => {
            let message =
                format!("is {}; only parts with text are supported: input_text, output_text, refusal", short(other));
            return Err(part.unsupported("type", message));
        }
    };
    let known: Vec<&str> = ["type", key].iter().chain(ignored).copied().collect();
    part.only(&known)?;
    part.required(key, "a string")
}
