//! The parameters of a request for vectors.

use nala_sdk::llm::Token;
use serde_json::Value;

use super::Request;
use crate::brief::brief;
use crate::completions;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::parameters::policy::{self, Names, Policy};

/// The most texts of a request, as at OpenAI.
pub const MAX_INPUTS: usize = 2048;

/// The parameters that are read.
pub const READ: Names = &[&["model", "input", "encoding_format", "dimensions"]];

/// Those that are accepted and change nothing about the answer.
pub const OTHER: &[(&str, Policy)] = &[("user", Policy::Harmless)];

/// How numbers are written (`encoding_format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a list of numbers.
    Numbers,
    /// As their bytes, four a number and the lowest first, in base64. What the official
    /// clients ask for.
    Base64,
}

/// What a vector is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    Text(String),
    Tokens(Vec<Token>),
}

const WHAT: &str = "a string, a list of strings, a list of token ids or a list of lists of token ids";

pub(super) fn read(body: &[u8]) -> Result<Request, ApiError> {
    let map = policy::given(body, READ, OTHER)?;
    let fields = Fields(&map);
    let form = match fields.text("encoding_format")?.as_deref() {
        None | Some("float") => Form::Numbers,
        Some("base64") => Form::Base64,
        Some(_) => {
            let value = map.get("encoding_format").unwrap_or(&Value::Null);
            return Err(Fields::wrong("encoding_format", "\"float\" or \"base64\"", value));
        }
    };
    let dimensions = fields.integer("dimensions", 1, u32::MAX.into())?;
    Ok(Request {
        inputs: inputs(map.get("input"))?,
        form,
        dimensions: dimensions.and_then(|count| u32::try_from(count).ok()),
        model: fields.text("model")?.ok_or_else(|| ApiError::missing("model", "the name of a model"))?,
    })
}

fn inputs(value: Option<&Value>) -> Result<Vec<Input>, ApiError> {
    let value = value.ok_or_else(|| ApiError::missing("input", WHAT))?;
    let list = match value {
        Value::String(_) => return Ok(vec![one(value, "input")?]),
        Value::Array(list) => list,
        other => return Err(Fields::wrong("input", WHAT, other)),
    };
    match list.first() {
        None => Err(ApiError::invalid("input", "'input' is an empty list; send at least one text")),
        Some(Value::Number(_)) => Ok(vec![one(value, "input")?]),
        Some(_) if list.len() > MAX_INPUTS => {
            let message = format!("'input' has {} texts, but at most {MAX_INPUTS} are allowed", list.len());
            Err(ApiError::invalid("input", message))
        }
        Some(_) => list.iter().enumerate().map(|(index, value)| one(value, &format!("input[{index}]"))).collect(),
    }
}

fn one(value: &Value, at: &str) -> Result<Input, ApiError> {
    match value {
        Value::String(text) if text.is_empty() => {
            Err(ApiError::invalid(at, format!("'{at}' is empty; there is no vector of nothing")))
        }
        Value::String(text) => Ok(Input::Text(text.clone())),
        Value::Array(list) if !list.is_empty() => Ok(Input::Tokens(completions::tokens(list, at)?)),
        other => {
            let message = format!("'{at}' must be a string or a list of token ids, not {}", brief(other));
            Err(ApiError::invalid(at, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(more: Value) -> Result<Request, ApiError> {
        let mut body = json!({"model": "m"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(body.to_string().as_bytes())
    }

    #[test]
    fn inputs_are_read_in_every_form() {
        let text = |text: &str| Input::Text(text.to_owned());
        for (input, expected) in [
            (json!("a"), vec![text("a")]),
            (json!(["a", "b"]), vec![text("a"), text("b")]),
            (json!([1, 2]), vec![Input::Tokens(vec![1, 2])]),
            (json!([[1], [2, 3]]), vec![Input::Tokens(vec![1]), Input::Tokens(vec![2, 3])]),
        ] {
            assert_eq!(request(json!({"input": input})).unwrap().inputs, expected);
        }
        assert_eq!(request(json!({"input": "a"})).unwrap().form, Form::Numbers);
        let read = request(json!({"input": "a", "encoding_format": "base64", "user": "u"})).unwrap();
        assert_eq!(read.form, Form::Base64);
        assert!(request(json!({"input": vec!["a"; 2048]})).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, param) in [
            (json!({}), "input"),
            (json!({"input": ""}), "input"),
            (json!({"input": []}), "input"),
            (json!({"input": 1}), "input"),
            (json!({"input": ["a", ""]}), "input[1]"),
            (json!({"input": [[1], []]}), "input[1]"),
            (json!({"input": [1, "a"]}), "input[1]"),
            (json!({"input": ["a", 1]}), "input[1]"),
            (json!({"input": vec!["a"; 2049]}), "input"),
            (json!({"input": "a", "encoding_format": "int8"}), "encoding_format"),
            (json!({"input": "a", "dimensions": 0}), "dimensions"),
            (json!({"input": "a", "model": null}), "model"),
            (json!({"input": "a", "truncate": true}), "truncate"),
        ] {
            let error = request(more.clone()).expect_err(param);
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{}", error.message);
        }
    }
}
