//! What an answer repeats of its request.

use serde_json::{Map, Value, json};

use super::format::Format;
use super::reasoning::Reasoning;
use super::tools::Tools;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::responses::assembly::Logprobs;

/// The most pairs in `metadata`, and the longest key and value, in characters, as
/// at OpenAI.
const MAX_PAIRS: usize = 16;
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 512;

/// As the official clients have them.
const TIERS: [&str; 7] = ["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"];

/// The fields of an answer that are the same in all its objects, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Echo {
    /// Without the braces around them.
    fields: String,
    logprobs: Logprobs,
}

impl Echo {
    pub(in crate::responses) fn fields(&self) -> &str {
        &self.fields
    }

    pub(in crate::responses) fn logprobs(&self) -> Logprobs {
        self.logprobs
    }
}

/// Checks what is repeated and nothing else, and writes all of it.
pub(super) fn of(
    given: &Fields<'_>,
    tools: &Tools,
    format: &Format,
    reasoning: &Reasoning,
    top_logprobs: Option<u32>,
) -> Result<Echo, ApiError> {
    let max_tool_calls = given.integer("max_tool_calls", 1, u64::MAX)?;
    let parallel = given.boolean("parallel_tool_calls")?.unwrap_or(true);
    if let Some(tier) = given.text("service_tier")?
        && !TIERS.contains(&tier.as_str())
    {
        return Err(Fields::wrong("service_tier", &format!("one of {}", TIERS.join(", ")), &Value::from(tier)));
    }
    // What the client wrote: a number that went through the sampler has lost digits.
    let number = |name: &str, default: f64| given.0.get(name).cloned().unwrap_or(json!(default));
    let fields = json!({
        "background": false,
        "frequency_penalty": number("frequency_penalty", 0.0),
        "instructions": given.text("instructions")?,
        "max_output_tokens": given.0.get("max_output_tokens"),
        // Only calls of the server's tools are counted.
        "max_tool_calls": max_tool_calls,
        "metadata": metadata(given.0.get("metadata"))?,
        "parallel_tool_calls": parallel,
        "presence_penalty": number("presence_penalty", 0.0),
        "previous_response_id": null,
        "prompt_cache_key": given.text("prompt_cache_key")?,
        "reasoning": reasoning.echo(),
        "safety_identifier": given.text("safety_identifier")?,
        // The only one there is: what an answer names is what it was served by.
        "service_tier": "default",
        "store": false,
        "temperature": number("temperature", 1.0),
        "text": format.echo,
        "tool_choice": tools.choice_echo,
        "tools": tools.echo,
        "top_logprobs": top_logprobs.unwrap_or(0),
        "top_p": number("top_p", 1.0),
        "truncation": "disabled",
        "user": given.text("user")?,
    })
    .to_string();
    let inner = fields.strip_prefix('{').and_then(|fields| fields.strip_suffix('}'));
    let fields = inner.unwrap_or_default().to_owned();
    let logprobs = if top_logprobs.is_some() { Logprobs::Reported } else { Logprobs::LeftOut };
    Ok(Echo { fields, logprobs })
}

fn metadata(value: Option<&Value>) -> Result<Map<String, Value>, ApiError> {
    const NAME: &str = "metadata";
    let pairs = match value {
        None => return Ok(Map::new()),
        Some(Value::Object(pairs)) => pairs,
        Some(other) => return Err(Fields::wrong(NAME, "an object with strings", other)),
    };
    if pairs.len() > MAX_PAIRS {
        let message = format!("'{NAME}' has {} pairs, but at most {MAX_PAIRS} are allowed", pairs.len());
        return Err(ApiError::invalid(NAME, message));
    }
    for (key, value) in pairs {
        if key.chars().count() > MAX_KEY {
            let message =
                format!("'{NAME}' has a key of {} characters, but at most {MAX_KEY} are allowed", key.chars().count());
            return Err(ApiError::invalid(NAME, message));
        }
        let at = format!("{NAME}.{key}");
        match value {
            Value::String(text) if text.chars().count() <= MAX_VALUE => {}
            Value::String(text) => {
                let length = text.chars().count();
                let message = format!("'{at}' has {length} characters, but at most {MAX_VALUE} are allowed");
                return Err(ApiError::invalid(at, message));
            }
            other => return Err(Fields::wrong(&at, "a string", other)),
        }
    }
    Ok(pairs.clone())
}
