//! The functions that the model may call: `tools` and `tool_choice`.

use std::collections::HashSet;

use chat_format::{Choice, Parallel, Strict, Tool};
use serde_json::Value;

use crate::brief::short;
use crate::error::ApiError;
use crate::part::Part;

/// The longest name of a tool, as at Anthropic.
const MAX_NAME: usize = 128;

const KEYS: [&str; 10] = [
    "type",
    "name",
    "description",
    "input_schema",
    "strict",
    "cache_control",
    "input_examples",
    // Arguments are always sent as they come.
    "eager_input_streaming",
    "defer_loading",
    "allowed_callers",
];

/// Reads `tools`.
pub(super) fn read(root: &Part<'_>) -> Result<Vec<Tool>, ApiError> {
    let Some(value) = root.get("tools") else { return Ok(Vec::new()) };
    let (mut tools, mut names) = (Vec::new(), HashSet::new());
    for part in Part::list(value, "tools")? {
        let tool = one(&part)?;
        if !names.insert(tool.name.clone()) {
            let at = part.at("name");
            let message = format!("'{at}' is {:?}, as another tool's; each needs its own", tool.name);
            return Err(ApiError::invalid(at, message));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn one(part: &Part<'_>) -> Result<Tool, ApiError> {
    match part.text("type")? {
        None | Some("custom") => {}
        // Anthropic's own tools run on its servers, or have a schema that only its
        // models know.
        Some(other) => {
            let at = part.at("type");
            let message =
                format!("'{at}' is {:?}; only tools of type custom, with an input_schema, are supported", short(other));
            return Err(ApiError::unsupported(at, message));
        }
    }
    part.only(&KEYS)?;
    part.boolean("eager_input_streaming")?;
    if part.boolean("defer_loading")?.unwrap_or(false) {
        let at = part.at("defer_loading");
        let message = format!("'{at}' is not supported, since there is no search for tools; leave it out");
        return Err(ApiError::unsupported(at, message));
    }
    direct(part)?;
    let strict = if part.boolean("strict")?.unwrap_or(false) { Strict::Enforced } else { Strict::Lenient };
    let parameters = match part.get("input_schema") {
        Some(Value::Object(schema)) => schema.clone(),
        Some(other) => return Err(part.wrong("input_schema", "an object, a JSON schema", other)),
        None => return Err(ApiError::missing(part.at("input_schema"), "the JSON schema of the tool's arguments")),
    };
    if let Some(kind) = parameters.get("type").filter(|kind| *kind != "object") {
        return Err(part.wrong("input_schema.type", "\"object\"", kind));
    }
    Ok(Tool { name: name(part, "name")?, description: description(part)?, parameters: Some(parameters), strict })
}

/// Only the model itself calls tools here, no code that it has written.
fn direct(part: &Part<'_>) -> Result<(), ApiError> {
    match part.get("allowed_callers") {
        None => Ok(()),
        Some(Value::Array(callers)) if callers.iter().any(|caller| caller == "direct") => Ok(()),
        Some(_) => {
            let at = part.at("allowed_callers");
            let message = format!("'{at}' must allow \"direct\", the only way that tools are called; leave it out");
            Err(ApiError::unsupported(at, message))
        }
    }
}

fn name(part: &Part<'_>, key: &str) -> Result<String, ApiError> {
    let name = part.required(key, "the name of a tool")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(name.to_owned());
    }
    let at = part.at(key);
    let message = format!("'{at}' is {:?}; it must have 1 to {MAX_NAME} letters, digits, '_' or '-'", short(name));
    Err(ApiError::invalid(at, message))
}

/// What the tool does, and how it is called: a schema has no place for examples
/// that templates would show.
fn description(part: &Part<'_>) -> Result<Option<String>, ApiError> {
    let description = part.text("description")?;
    let examples = match part.get("input_examples") {
        None => return Ok(description.map(str::to_owned)),
        Some(Value::Array(examples)) if examples.iter().all(Value::is_object) => examples,
        Some(other) => return Err(part.wrong("input_examples", "a list of objects", other)),
    };
    let lines = description.map(str::to_owned).into_iter().chain(examples.iter().map(|one| format!("Example: {one}")));
    Ok(Some(lines.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty()))
}

/// Reads `tool_choice`.
pub(super) fn choice(root: &Part<'_>, tools: &[Tool]) -> Result<(Choice, Parallel), ApiError> {
    let Some(part) = root.part("tool_choice")? else { return Ok((Choice::Auto, Parallel::Allowed)) };
    let kind = part.required("type", "auto, any, tool or none")?;
    let choice = match kind {
        "auto" => Choice::Auto,
        "any" => Choice::Required,
        "none" => Choice::None,
        "tool" => Choice::Named(part.required("name", "the name of the tool to call")?.to_owned()),
        other => {
            let message = format!("'tool_choice.type' is {:?}; it must be auto, any, tool or none", short(other));
            return Err(ApiError::invalid("tool_choice.type", message));
        }
    };
    match kind {
        "tool" => part.only(&["type", "name", "disable_parallel_tool_use"])?,
        "none" => part.only(&["type"])?,
        _ => part.only(&["type", "disable_parallel_tool_use"])?,
    }
    match &choice {
        Choice::Required if tools.is_empty() => {
            let message = "'tool_choice' is any, but there are no tools to call; send 'tools'";
            return Err(ApiError::invalid("tool_choice", message));
        }
        Choice::Named(name) if !tools.iter().any(|tool| tool.name == *name) => {
            let message = format!("'tool_choice.name' is {:?}, but no tool in 'tools' has that name", short(name));
            return Err(ApiError::invalid("tool_choice.name", message));
        }
        _ => {}
    }
    let single = part.boolean("disable_parallel_tool_use")?.unwrap_or(false);
    Ok((choice, if single { Parallel::Single } else { Parallel::Allowed }))
}
