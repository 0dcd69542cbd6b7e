//! What belongs to a conversation beside its messages.

use serde_json::{Map, Value};

use super::fields::Fields;
use super::tools;
use crate::ask::{Conversation, EFFORTS, Last};
use crate::brief::short;
use crate::chat::Thoughts;
use crate::error::ApiError;
use crate::messages;

/// Reads `messages` and what says how they are to be understood.
pub(super) fn read(fields: &Fields<'_>) -> Result<Conversation, ApiError> {
    let tools::Offer { tools, choice, parallel } = tools::read(fields)?;
    let messages = messages::read(fields.0.get("messages"))?;
    let last = match fields.boolean("continue_final_message")? {
        Some(true) if messages.last().is_some_and(|last| last.role == "assistant") => Last::Continued,
        Some(true) => {
            let param = "continue_final_message";
            return Err(ApiError::invalid(param, format!("'{param}' needs a last message of the assistant")));
        }
        _ => Last::Answered,
    };
    agrees_with_start(last, fields)?;
    Ok(Conversation { messages, tools, choice, parallel, last, variables: variables(fields)? })
}

/// What clients of vLLM and transformers say beside `continue_final_message`, which has
/// one meaning here: whether the assistant's turn is begun. Refuses what contradicts it.
fn agrees_with_start(last: Last, fields: &Fields<'_>) -> Result<(), ApiError> {
    let param = "add_generation_prompt";
    match (last, fields.boolean(param)?) {
        (Last::Continued, Some(true)) => {
            let message = format!("'{param}' contradicts 'continue_final_message'; send one of them as true");
            Err(ApiError::invalid(param, message))
        }
        (Last::Answered, Some(false)) => {
            let message = format!(
                "'{param}' can only be false with 'continue_final_message': without the beginning of its turn the model \
                 would not answer"
            );
            Err(ApiError::unsupported(param, message))
        }
        _ => Ok(()),
    }
}

/// The variables of the template: `chat_template_kwargs`, as at vLLM and llama.cpp's
/// server, and what `reasoning_effort` means to templates.
fn variables(fields: &Fields<'_>) -> Result<Map<String, Value>, ApiError> {
    const KWARGS: &str = "chat_template_kwargs";
    let mut variables = Map::new();
    if let Some(effort) = fields.text("reasoning_effort")? {
        if !EFFORTS.contains(&effort.as_str()) {
            let message = format!("'reasoning_effort' is {:?}; it must be {}", short(&effort), EFFORTS.join(", "));
            return Err(ApiError::invalid("reasoning_effort", message));
        }
        crate::ask::effort(&effort, &mut variables);
    }
    match fields.0.get(KWARGS) {
        None => {}
        Some(Value::Object(given)) => {
            if let Some(name) = given.keys().find(|name| OURS.contains(&name.as_str())) {
                let message = format!("'{KWARGS}' cannot set {name:?}, which other parameters decide");
                return Err(ApiError::invalid(KWARGS, message));
            }
            variables.extend(given.clone());
        }
        Some(other) => return Err(Fields::wrong(KWARGS, "an object", other)),
    }
    Ok(variables)
}

/// Variables that `chat_template_kwargs` cannot set.
const OURS: [&str; 5] = ["messages", "tools", "add_generation_prompt", "bos_token", "eos_token"];

/// Where thoughts go: `reasoning_format`, as at llama.cpp's server.
pub(super) fn thoughts(fields: &Fields<'_>) -> Result<Thoughts, ApiError> {
    match fields.text("reasoning_format")?.as_deref() {
        None | Some("auto" | "deepseek") => Ok(Thoughts::Apart),
        Some("hidden") => Ok(Thoughts::Hidden),
        Some(other) => {
            let param = "reasoning_format";
            let message = format!("'{param}' is {:?}; it must be auto, deepseek or hidden", short(other));
            Err(ApiError::invalid(param, message))
        }
    }
}
