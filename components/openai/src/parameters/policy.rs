//! Which parameters an API has, and what is done with each.

use serde_json::{Map, Value};

use super::object;
use crate::brief::short;
use crate::error::ApiError;

/// Names of parameters that are read, in groups that several APIs share.
pub type Names = &'static [&'static [&'static str]];

/// What is done with a parameter that is not read.
#[derive(Debug, Clone, Copy)]
pub enum Policy {
    /// Accepted: it changes nothing about the answer.
    Harmless,
    /// Accepted with a value that asks for nothing, refused otherwise.
    Only(fn(&Value) -> bool, &'static str),
    /// The same, for what may come.
    OnlyYet(fn(&Value) -> bool, &'static str),
}

/// Reads the body of a request: the parameters that are not null.
///
/// # Errors
/// 400, with the position where it does not parse, or for a parameter that stands
/// neither in `read` nor in `other`, or there with a value that is not accepted.
pub(crate) fn given(body: &[u8], read: Names, other: &[(&str, Policy)]) -> Result<Map<String, Value>, ApiError> {
    given_of(object::read(body)?, read, other)
}

/// The same, for a body that has been read as an object.
///
/// # Errors
/// As [`given`].
pub(crate) fn given_of(
    mut fields: Map<String, Value>,
    read: Names,
    other: &[(&str, Policy)],
) -> Result<Map<String, Value>, ApiError> {
    fields.retain(|_, value| !value.is_null());
    for (name, value) in &fields {
        if read.iter().any(|group| group.contains(&name.as_str())) {
            continue;
        }
        let policy = other.iter().find(|(known, _)| known == name).map(|(_, policy)| *policy);
        let (accepts, lacking, instead) = match policy {
            None => return Err(ApiError::unknown(short(name))),
            Some(Policy::Harmless) => continue,
            Some(Policy::Only(accepts, instead)) => (accepts, "is not supported", instead),
            Some(Policy::OnlyYet(accepts, instead)) => (accepts, "is not supported yet", instead),
        };
        if !accepts(value) {
            return Err(ApiError::unsupported(name, format!("'{name}' {lacking}; {instead}")));
        }
    }
    Ok(fields)
}

/// Accepts no value.
pub(crate) fn never(_: &Value) -> bool {
    false
}

/// Accepts a list without anything in it.
pub(crate) fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}
