//! How text is generated, and in which shape.

use serde_json::{Map, Value};

use super::Thoughts;
use crate::ask::Options;
use crate::brief::short;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::parameters::output::{Output, Unknown};
use crate::parameters::stop::{MAX_BYTES, MAX_STOP};
use crate::parameters::{AtEnd, sampling};
use crate::part::Part;

/// Reads everything about the text. `fields` are those of `root`.
pub(super) fn read(root: &Part<'_>, fields: &Map<String, Value>, max_tokens: Option<u32>) -> Result<Options, ApiError> {
    let fields = Fields(fields);
    Ok(Options {
        sampler: sampling::sampler(&fields)?,
        dry_breakers: sampling::dry_breakers(&fields)?,
        at_end: AtEnd::Stop,
        output: output(root)?,
        choices: 1,
        max_tokens,
        stop: stop_sequences(root)?,
        bias: Vec::new(),
        top_logprobs: None,
    })
}

/// Reads `max_tokens`, which has to be there.
pub(super) fn max_tokens(root: &Part<'_>) -> Result<u32, ApiError> {
    const NAME: &str = "max_tokens";
    let Some(value) = root.get(NAME) else {
        return Err(ApiError::missing(NAME, "the most tokens to generate"));
    };
    match value.as_u64() {
        Some(0) => {
            let message = "'max_tokens' is 0, which would only fill the prompt cache; that is not supported, since every \
                           prompt is cached: send at least 1";
            Err(ApiError::unsupported(NAME, message))
        }
        // More than fits is cut at the end of the context anyway.
        Some(tokens) => Ok(u32::try_from(tokens).unwrap_or(u32::MAX)),
        None => Err(root.wrong(NAME, "an integer from 1", value)),
    }
}

fn stop_sequences(root: &Part<'_>) -> Result<Vec<String>, ApiError> {
    const NAME: &str = "stop_sequences";
    let Some(value) = root.get(NAME) else { return Ok(Vec::new()) };
    let Value::Array(list) = value else { return Err(root.wrong(NAME, "a list of strings", value)) };
    if list.len() > MAX_STOP {
        let message = format!("'{NAME}' has {} texts, but at most {MAX_STOP} are allowed", list.len());
        return Err(ApiError::invalid(NAME, message));
    }
    let one = |(index, value): (usize, &Value)| match value {
        Value::String(text) if (1..=MAX_BYTES).contains(&text.len()) => Ok(text.clone()),
        Value::String(text) => {
            let at = format!("{NAME}[{index}]");
            let message = format!("'{at}' must have 1 to {MAX_BYTES} bytes, not {}", text.len());
            Err(ApiError::invalid(at, message))
        }
        other => Err(root.wrong(&format!("{NAME}[{index}]"), "a string", other)),
    };
    list.iter().enumerate().map(one).collect()
}

/// What the answer has to be: `output_config.format`, or `output_format` by its name
/// of before.
fn output(root: &Part<'_>) -> Result<Output, ApiError> {
    let config = root.part("output_config")?;
    if let Some(config) = &config {
        config.only(&["effort", "format"])?;
    }
    let new = config.map(|config| config.part("format")).transpose()?.flatten();
    match (new, root.part("output_format")?) {
        (None, None) => Ok(Output::Free),
        (Some(format), None) => schema(&format, "output_config.format.schema"),
        (None, Some(format)) => schema(&format, "output_format.schema"),
        (Some(_), Some(_)) => {
            let message = "'output_format' contradicts 'output_config.format'; send one of them";
            Err(ApiError::invalid("output_format", message))
        }
    }
}

fn schema(format: &Part<'_>, param: &'static str) -> Result<Output, ApiError> {
    match format.required("type", "json_schema")? {
        "json_schema" => {}
        other => {
            let at = format.at("type");
            let message = format!("'{at}' is {:?}; it must be json_schema", short(other));
            return Err(ApiError::invalid(at, message));
        }
    }
    // Older clients name their schemas.
    format.only(&["type", "schema", "name"])?;
    match format.get("schema") {
        // The API promises an answer that is valid.
        Some(schema @ Value::Object(_)) => {
            Ok(Output::Json { schema: schema.to_string(), unknown: Unknown::Refused, param })
        }
        Some(other) => Err(format.wrong("schema", "an object, a JSON schema", other)),
        None => Err(ApiError::missing(param, "the JSON schema of the answer")),
    }
}

/// The template's variables: `enable_thinking` by `thinking`, and `reasoning_effort`
/// by `output_config.effort`. Templates that know them call them so; what is not
/// given is left to them.
pub(super) fn variables(root: &Part<'_>) -> Result<Map<String, Value>, ApiError> {
    let mut variables = Map::new();
    if let Some(thinks) = thinking(root)? {
        crate::ask::thinks(thinks, &mut variables);
    }
    let effort = match root.part("output_config")? {
        Some(config) => config.text("effort")?,
        None => None,
    };
    match effort {
        None => {}
        Some(effort @ ("low" | "medium" | "high" | "xhigh" | "max")) => {
            variables.insert("reasoning_effort".to_owned(), effort.into());
        }
        Some(other) => {
            let at = "output_config.effort";
            let message = format!("'{at}' is {:?}; it must be low, medium, high, xhigh or max", short(other));
            return Err(ApiError::invalid(at, message));
        }
    }
    Ok(variables)
}

/// Whether the model is to think, where the client says so.
fn thinking(root: &Part<'_>) -> Result<Option<bool>, ApiError> {
    let Some(part) = root.part("thinking")? else { return Ok(None) };
    match part.required("type", "enabled, adaptive or disabled")? {
        "enabled" => {
            part.only(&["type", "budget_tokens", "display"])?;
            match part.get("budget_tokens") {
                Some(value) if value.as_u64().is_some_and(|tokens| tokens > 0) => Ok(Some(true)),
                Some(other) => Err(part.wrong("budget_tokens", "an integer from 1", other)),
                None => Err(ApiError::missing(part.at("budget_tokens"), "about how many tokens to think")),
            }
        }
        "adaptive" => {
            part.only(&["type", "display"])?;
            Ok(Some(true))
        }
        "disabled" => {
            part.only(&["type"])?;
            Ok(Some(false))
        }
        other => {
            let at = part.at("type");
            let message = format!("'{at}' is {:?}; only enabled, adaptive and disabled are supported", short(other));
            Err(ApiError::unsupported(at, message))
        }
    }
}

/// Reads `thinking.display`.
pub(super) fn thoughts(root: &Part<'_>) -> Result<Thoughts, ApiError> {
    let Some(part) = root.part("thinking")? else { return Ok(Thoughts::Shown) };
    match part.text("display")? {
        // The model's own thoughts are all there is: nobody summarises them.
        None | Some("summarized") => Ok(Thoughts::Shown),
        Some("omitted") => Ok(Thoughts::Omitted),
        Some(other) => {
            let at = part.at("display");
            let message = format!("'{at}' is {:?}; it must be summarized or omitted", short(other));
            Err(ApiError::invalid(at, message))
        }
    }
}
