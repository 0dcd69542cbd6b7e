//! Objects inside a request, and errors that say where in it they are.

use serde_json::{Map, Value};

use crate::brief::{brief, short};
use crate::error::ApiError;

/// An object and the path to it, `input[3].content[0]` for example.
pub(super) struct Shape<'a> {
    fields: &'a Map<String, Value>,
    at: String,
}

impl<'a> Shape<'a> {
    pub(super) fn of(value: &'a Value, at: impl Into<String>) -> Result<Self, ApiError> {
        let at = at.into();
        match value {
            Value::Object(fields) => Ok(Self { fields, at }),
            other => Err(wrong(&at, "an object", other)),
        }
    }

    /// The path to one of its keys.
    pub(super) fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.at)
    }

    /// A value that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// Refuses keys that are not in a list.
    pub(super) fn only(&self, keys: &[&str]) -> Result<(), ApiError> {
        match self.fields.iter().find(|(key, value)| !value.is_null() && !keys.contains(&key.as_str())) {
            Some((key, _)) => Err(ApiError::unknown(self.at(&short(key)))),
            None => Ok(()),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(&self.at(key), "a string", other)),
        }
    }

    /// A text that has to be there. `what` says what it is.
    pub(super) fn required(&self, key: &str, what: &str) -> Result<&'a str, ApiError> {
        self.text(key)?.ok_or_else(|| ApiError::missing(self.at(key), what))
    }

    pub(super) fn boolean(&self, key: &str) -> Result<Option<bool>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(wrong(&self.at(key), "true or false", other)),
        }
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<&'a Vec<Value>>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(wrong(&self.at(key), "a list", other)),
        }
    }
}

/// A value is not what it must be.
pub(super) fn wrong(at: &str, must: &str, value: &Value) -> ApiError {
    ApiError::invalid(at, format!("'{at}' must be {must}, not {}", brief(value)))
}

/// The API has what is asked for, and this server has not.
pub(super) fn unsupported(at: &str, message: impl AsRef<str>) -> ApiError {
    ApiError::unsupported(at, format!("'{at}' {}", message.as_ref()))
}
