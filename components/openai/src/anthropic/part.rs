//! Objects of a request and where they stand in it.

use serde_json::{Map, Value};

use crate::brief::{brief, short};
use crate::error::ApiError;

/// An object and its place, for errors about it.
#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    fields: &'a Map<String, Value>,
    place: String,
}

impl<'a> Part<'a> {
    /// The request itself.
    pub(super) fn root(fields: &'a Map<String, Value>) -> Self {
        Self { fields, place: String::new() }
    }

    /// The object at a place.
    pub(super) fn of(value: &'a Value, place: String) -> Result<Self, ApiError> {
        match value {
            Value::Object(fields) => Ok(Self { fields, place }),
            other => Err(wrong(&place, "an object", other)),
        }
    }

    /// The objects of the list at a place.
    pub(super) fn list(value: &'a Value, place: &str) -> Result<Vec<Self>, ApiError> {
        let Value::Array(list) = value else { return Err(wrong(place, "a list of objects", value)) };
        list.iter().enumerate().map(|(index, value)| Self::of(value, format!("{place}[{index}]"))).collect()
    }

    /// Where this stands.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Where a field of it stands.
    pub(super) fn at(&self, key: &str) -> String {
        match self.place.as_str() {
            "" => key.to_owned(),
            place => format!("{place}.{key}"),
        }
    }

    /// A field that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// A field that is an object.
    pub(super) fn part(&self, key: &str) -> Result<Option<Part<'a>>, ApiError> {
        self.get(key).map(|value| Self::of(value, self.at(key))).transpose()
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, "a string", other)),
        }
    }

    pub(super) fn needed_text(&self, key: &str, what: &str) -> Result<&'a str, ApiError> {
        self.text(key)?.ok_or_else(|| ApiError::missing(self.at(key), what))
    }

    pub(super) fn boolean(&self, key: &str) -> Result<Option<bool>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(self.wrong(key, "true or false", other)),
        }
    }

    /// Refuses fields that are none of `keys`, unless they are null.
    pub(super) fn only(&self, keys: &[&str]) -> Result<(), ApiError> {
        match self.fields.iter().find(|(key, value)| !value.is_null() && !keys.contains(&key.as_str())) {
            Some((key, _)) => Err(ApiError::unknown(self.at(&short(key)))),
            None => Ok(()),
        }
    }

    /// 400: a field is something else than it must be.
    pub(super) fn wrong(&self, key: &str, must: &str, value: &Value) -> ApiError {
        wrong(&self.at(key), must, value)
    }
}

fn wrong(place: &str, must: &str, value: &Value) -> ApiError {
    ApiError::invalid(place, format!("'{place}' must be {must}, not {}", brief(value)))
}
