//! Objects of a request and where they stand in it.

use serde_json::{Map, Value};

use crate::brief::short;
use crate::error::ApiError;
use crate::parameters::fields::Fields;

/// An object and its place, for errors about it.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    fields: &'a Map<String, Value>,
    place: String,
}

impl<'a> Part<'a> {
    /// The request itself.
    pub(crate) fn root(fields: &'a Map<String, Value>) -> Self {
        Self { fields, place: String::new() }
    }

    /// The object at a place.
    pub(crate) fn of(value: &'a Value, place: impl Into<String>) -> Result<Self, ApiError> {
        let place = place.into();
        match value {
            Value::Object(fields) => Ok(Self { fields, place }),
            other => Err(Fields::wrong(&place, "an object", other)),
        }
    }

    /// The objects of the list at a place.
    pub(crate) fn list(value: &'a Value, place: &str) -> Result<Vec<Self>, ApiError> {
        let Value::Array(list) = value else { return Err(Fields::wrong(place, "a list of objects", value)) };
        list.iter().enumerate().map(|(index, value)| Self::of(value, format!("{place}[{index}]"))).collect()
    }

    /// Where this stands.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Where a field of it stands.
    pub(crate) fn at(&self, key: &str) -> String {
        match self.place.as_str() {
            "" => key.to_owned(),
            place => format!("{place}.{key}"),
        }
    }

    /// A field that is there and not null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// A field that is an object.
    pub(crate) fn part(&self, key: &str) -> Result<Option<Part<'a>>, ApiError> {
        self.get(key).map(|value| Self::of(value, self.at(key))).transpose()
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, "a string", other)),
        }
    }

    /// A text that has to be there. `what` says what it is.
    pub(crate) fn required(&self, key: &str, what: &str) -> Result<&'a str, ApiError> {
        self.text(key)?.ok_or_else(|| ApiError::missing(self.at(key), what))
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(self.wrong(key, "true or false", other)),
        }
    }

    /// A field that is a list.
    pub(crate) fn items(&self, key: &str) -> Result<Option<&'a Vec<Value>>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(self.wrong(key, "a list", other)),
        }
    }

    /// Refuses fields that are none of `keys`, unless they are null.
    pub(crate) fn only(&self, keys: &[&str]) -> Result<(), ApiError> {
        match self.fields.iter().find(|(key, value)| !value.is_null() && !keys.contains(&key.as_str())) {
            Some((key, _)) => Err(ApiError::unknown(self.at(&short(key)))),
            None => Ok(()),
        }
    }

    /// 400: a field is something else than it must be.
    pub(crate) fn wrong(&self, key: &str, must: &str, value: &Value) -> ApiError {
        Fields::wrong(&self.at(key), must, value)
    }

    /// 400: a field asks for what the API has, and this server has not. `message` goes
    /// on from the field's name.
    pub(crate) fn unsupported(&self, key: &str, message: impl AsRef<str>) -> ApiError {
        let at = self.at(key);
        let message = format!("'{at}' {}", message.as_ref());
        ApiError::unsupported(at, message)
    }
}
