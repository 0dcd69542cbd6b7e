//! What would have to be stored, and is not.

use serde_json::{Map, Value};

use crate::brief::short;
use crate::error::ApiError;
use crate::parameters::fields::Fields;

/// Refuses parameters that name what was said before.
pub(super) fn refuse(fields: &Map<String, Value>) -> Result<(), ApiError> {
    if let Some(value) = fields.get("previous_response_id") {
        let id = value.as_str().ok_or_else(|| Fields::wrong("previous_response_id", "a string", value))?;
        let message = format!(
            "the response '{}' is not known, since responses are not stored; leave out 'previous_response_id' and send \
             in 'input' the items of the conversation so far, those of 'output' included",
            short(id)
        );
        // The status and code that OpenAI answers an unknown id with.
        return Err(unknown(400, "previous_response_not_found", "previous_response_id", message));
    }
    if let Some(value) = fields.get("conversation") {
        let id = value.as_str().or_else(|| value.get("id").and_then(Value::as_str));
        let id = id.ok_or_else(|| Fields::wrong("conversation", "an id or an object with one", value))?;
        let message = format!(
            "the conversation '{}' is not known, since conversations are not stored; leave out 'conversation' and send \
             its items in 'input'",
            short(id)
        );
        return Err(unknown(404, "conversation_not_found", "conversation", message));
    }
    Ok(())
}

/// An item is named instead of sent.
pub(super) fn reference(id: &str, at: String) -> ApiError {
    let message = format!(
        "'{at}' refers to the item '{}', but items are not stored; send the item itself, as it stood in 'output'",
        short(id)
    );
    unknown(404, "item_not_found", at, message)
}

fn unknown(status: u16, code: &'static str, param: impl Into<String>, message: String) -> ApiError {
    ApiError { status, message, param: Some(param.into()), code: Some(code), allow: None }
}
