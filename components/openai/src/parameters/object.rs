//! The body as one JSON object.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::brief::{brief, short};
use crate::error::ApiError;

/// Reads a body whose keys stand there once each.
///
/// # Errors
/// 400, with the place where it does not parse, or the name that comes twice:
/// which of the two was meant cannot be known.
pub(crate) fn read(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_slice::<Object>(body) {
        Ok(Object { twice: Some(name), .. }) => {
            let name = short(&name);
            Err(ApiError::invalid(&*name, format!("'{name}' is there twice; send it once")))
        }
        Ok(Object { fields, .. }) => Ok(fields),
        Err(_) => Err(match serde_json::from_slice::<Value>(body) {
            Ok(other) => ApiError::malformed(format!("the request body must be a JSON object, not {}", brief(&other))),
            Err(error) => ApiError::malformed(format!("the request body is not valid JSON: {error}")),
        }),
    }
}

struct Object {
    fields: Map<String, Value>,
    /// The first name that came again.
    twice: Option<String>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Names)
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut object = Object { fields: Map::new(), twice: None };
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if object.fields.contains_key(&name) {
                object.twice.get_or_insert(name);
            } else {
                object.fields.insert(name, value);
            }
        }
        Ok(object)
    }
}
