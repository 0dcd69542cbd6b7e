//! What the answer has to be: `response_format`, and the extensions `grammar` and
//! `json_schema`.

use serde_json::Value;

use super::fields::Fields;
use crate::error::ApiError;
use crate::part::Part;

/// What the answer has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Any text.
    Free,
    /// A JSON text that is valid under a schema.
    Json {
        /// The schema, as JSON.
        schema: String,
        /// What to do with what the host does not understand in it.
        unknown: Unknown,
        /// The parameter that it came by.
        param: &'static str,
    },
    /// A text of a grammar in llama.cpp's GBNF.
    Gbnf(String),
}

/// What to do with what the host does not understand in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Refuse the request: the answer could be freer than was meant.
    Refused,
    /// Leave it out, as the API does without `strict`.
    Ignored,
}

const FORMAT: &str = "response_format";
const SCHEMA: &str = "response_format.json_schema.schema";
/// The longest name of a schema, as at OpenAI.
const MAX_NAME: usize = 64;

/// Reads the three parameters, of which one at the most may be given.
pub(super) fn read(fields: &Fields<'_>) -> Result<Output, ApiError> {
    let format = match fields.0.get(FORMAT) {
        None => Output::Free,
        Some(value) => response_format(value)?,
    };
    let grammar = fields.text("grammar")?.map(Output::Gbnf);
    let schema = fields.0.get("json_schema").map(|value| schema(value, "json_schema", Unknown::Ignored)).transpose()?;
    let mut given = [("response_format", Some(format).filter(|format| *format != Output::Free))]
        .into_iter()
        .chain([("grammar", grammar), ("json_schema", schema)])
        .filter_map(|(name, output)| Some((name, output?)));
    let (first, second) = (given.next(), given.next());
    match (first, second) {
        (Some((one, _)), Some((other, _))) => {
            Err(ApiError::invalid(other, format!("'{other}' contradicts '{one}'; send one of them")))
        }
        (Some((_, output)), None) => Ok(output),
        (None, _) => Ok(Output::Free),
    }
}

fn response_format(value: &Value) -> Result<Output, ApiError> {
    let format = Part::of(value, FORMAT)?;
    let kind = value.get("type").ok_or_else(|| ApiError::missing(format.at("type"), TYPES))?;
    match kind.as_str() {
        Some("text") => {
            format.only(&["type"])?;
            Ok(Output::Free)
        }
        Some("json_object") => {
            // llama.cpp's server takes a schema here.
            format.only(&["type", "schema"])?;
            match format.get("schema") {
                Some(value) => schema(value, "response_format.schema", Unknown::Ignored),
                None => Ok(Output::Json {
                    schema: r#"{"type":"object"}"#.to_owned(),
                    unknown: Unknown::Ignored,
                    param: FORMAT,
                }),
            }
        }
        Some("json_schema") => {
            format.only(&["type", "json_schema"])?;
            match format.part("json_schema")? {
                Some(inner) => named_schema(&inner),
                None => Err(ApiError::missing(format.at("json_schema"), "an object with a 'name' and a 'schema'")),
            }
        }
        _ => Err(format.wrong("type", TYPES, kind)),
    }
}

const TYPES: &str = "\"text\", \"json_object\" or \"json_schema\"";

fn named_schema(inner: &Part<'_>) -> Result<Output, ApiError> {
    inner.only(&["name", "description", "schema", "strict"])?;
    match inner.get("name") {
        None => return Err(ApiError::missing(inner.at("name"), "a name for the schema")),
        Some(Value::String(name)) if (1..=MAX_NAME).contains(&name.chars().count()) => {}
        Some(other) => return Err(inner.wrong("name", "a string of 1 to 64 characters", other)),
    }
    inner.text("description")?;
    let unknown = match inner.boolean("strict")? {
        Some(true) => Unknown::Refused,
        _ => Unknown::Ignored,
    };
    match inner.get("schema") {
        None => Err(ApiError::missing(SCHEMA, "the JSON schema of the answer")),
        Some(value) => schema(value, SCHEMA, unknown),
    }
}

fn schema(value: &Value, param: &'static str, unknown: Unknown) -> Result<Output, ApiError> {
    match value {
        Value::Object(_) => Ok(Output::Json { schema: value.to_string(), unknown, param }),
        other => Err(Fields::wrong(param, "an object, a JSON schema", other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn output(more: Value) -> Result<Output, ApiError> {
        read(&Fields(more.as_object().unwrap()))
    }

    fn json(schema: &str, unknown: Unknown, param: &'static str) -> Output {
        Output::Json { schema: schema.to_owned(), unknown, param }
    }

    #[test]
    fn each_format_becomes_its_grammar() {
        let format = |format: Value| output(json!({"response_format": format})).unwrap();
        assert_eq!(output(json!({})).unwrap(), Output::Free);
        assert_eq!(format(json!({"type": "text"})), Output::Free);
        assert_eq!(
            format(json!({"type": "json_object"})),
            json(r#"{"type":"object"}"#, Unknown::Ignored, "response_format")
        );
        let named = |strict: Value| {
            format(json!({"type": "json_schema", "json_schema": {
                "name": "n", "strict": strict, "schema": {"type": "object", "properties": {"z": true, "a": true}},
            }}))
        };
        // In the client's order.
        let text = r#"{"type":"object","properties":{"z":true,"a":true}}"#;
        assert_eq!(named(json!(true)), json(text, Unknown::Refused, SCHEMA));
        assert_eq!(named(json!(null)), json(text, Unknown::Ignored, SCHEMA));
        assert_eq!(output(json!({"grammar": "root ::= \"a\""})).unwrap(), Output::Gbnf("root ::= \"a\"".to_owned()));
        assert_eq!(output(json!({"json_schema": {}})).unwrap(), json("{}", Unknown::Ignored, "json_schema"));
        assert!(output(json!({"json_schema": {}, "response_format": {"type": "text"}})).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let schema = |inner: Value| json!({"response_format": {"type": "json_schema", "json_schema": inner}});
        for (more, param) in [
            (json!({"response_format": "json"}), "response_format"),
            (json!({"response_format": {}}), "response_format.type"),
            (json!({"response_format": {"type": "xml"}}), "response_format.type"),
            (json!({"response_format": {"type": "json_object", "strict": true}}), "response_format.strict"),
            (json!({"response_format": {"type": "json_schema"}}), "response_format.json_schema"),
            (schema(json!(1)), "response_format.json_schema"),
            (schema(json!({"schema": {}})), "response_format.json_schema.name"),
            (schema(json!({"name": "", "schema": {}})), "response_format.json_schema.name"),
            (schema(json!({"name": "n"})), "response_format.json_schema.schema"),
            (schema(json!({"name": "n", "schema": []})), "response_format.json_schema.schema"),
            (schema(json!({"name": "n", "schema": {}, "strict": 1})), "response_format.json_schema.strict"),
            (schema(json!({"name": "n", "schema": {}, "x": 1})), "response_format.json_schema.x"),
            (json!({"grammar": 1}), "grammar"),
            (json!({"json_schema": true}), "json_schema"),
            (json!({"json_schema": {}, "grammar": "root ::= \"a\""}), "json_schema"),
            (json!({"response_format": {"type": "json_object"}, "grammar": "root ::= \"a\""}), "grammar"),
        ] {
            let error = output(more.clone()).expect_err(&more.to_string());
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{more}: {}", error.message);
            assert!(error.message.contains(param), "{more}: {}", error.message);
        }
    }
}
