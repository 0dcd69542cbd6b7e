//! The parameter `text`: what the answer has to be.

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::parameters::output::{Output, Unknown};
use crate::part::Part;

const FORMAT: &str = "text.format";
const SCHEMA: &str = "text.format.schema";
const TYPES: &str = "\"text\", \"json_object\" or \"json_schema\"";
/// The longest name of a schema, as at OpenAI, in characters.
const MAX_NAME: usize = 64;

/// What was asked for.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) output: Output,
    /// What the answer repeats of `text`.
    pub(super) echo: Value,
}

pub(super) fn read(value: Option<&Value>) -> Result<Format, ApiError> {
    let mut format = None;
    if let Some(value) = value {
        let text = Part::of(value, "text")?;
        text.only(&["format", "verbosity"])?;
        format = text.get("format");
        match text.text("verbosity")? {
            None | Some("medium") => {}
            Some("low" | "high") => {
                let message = "is not supported; leave it out or send \"medium\", and tell the model in words";
                return Err(text.unsupported("verbosity", message));
            }
            Some(other) => return Err(text.wrong("verbosity", "\"medium\"", &Value::from(other))),
        }
    }
    let (output, format) = match format {
        None => (Output::Free, json!({"type": "text"})),
        Some(value) => one(&Part::of(value, FORMAT)?)?,
    };
    Ok(Format { output, echo: json!({"format": format, "verbosity": "medium"}) })
}

fn one(format: &Part<'_>) -> Result<(Output, Value), ApiError> {
    match format.required("type", TYPES)? {
        "text" => {
            format.only(&["type"])?;
            Ok((Output::Free, json!({"type": "text"})))
        }
        "json_object" => {
            format.only(&["type"])?;
            let schema = r#"{"type":"object"}"#.to_owned();
            Ok((Output::Json { schema, unknown: Unknown::Ignored, param: FORMAT }, json!({"type": "json_object"})))
        }
        "json_schema" => named_schema(format),
        other => Err(format.wrong("type", TYPES, &Value::from(other))),
    }
}

fn named_schema(format: &Part<'_>) -> Result<(Output, Value), ApiError> {
    if format.get("json_schema").is_some() {
        let message = "is how chat completions have it; here 'name', 'schema' and 'strict' stand beside 'type'";
        return Err(format.unsupported("json_schema", message));
    }
    format.only(&["type", "name", "description", "schema", "strict"])?;
    let name = format.required("name", "a name for the schema")?;
    if !(1..=MAX_NAME).contains(&name.chars().count()) {
        return Err(format.wrong("name", "a string of 1 to 64 characters", &Value::from(name)));
    }
    let description = format.text("description")?;
    let strict = format.boolean("strict")?.unwrap_or(false);
    let schema = match format.get("schema") {
        None => return Err(ApiError::missing(SCHEMA, "the JSON schema of the answer")),
        Some(schema @ Value::Object(_)) => schema,
        Some(other) => return Err(Fields::wrong(SCHEMA, "an object, a JSON schema", other)),
    };
    let unknown = if strict { Unknown::Refused } else { Unknown::Ignored };
    let echo = json!({
        "type": "json_schema", "name": name, "description": description, "schema": schema, "strict": strict,
    });
    Ok((Output::Json { schema: schema.to_string(), unknown, param: SCHEMA }, echo))
}
