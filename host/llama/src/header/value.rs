//! The values of a header that checks look at.

use std::collections::BTreeMap;

/// A value; what no check looks at is walked over and not kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Short(u16),
    Unsigned(u32),
    Float(f32),
    Bool(bool),
    Text(Vec<u8>),
    LongText,
    Numbers(Vec<u32>),
    Floats(Vec<f32>),
    /// One of another GGUF type.
    Other(u32),
}

impl Value {
    /// Whether it is a text.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::LongText)
    }
}

/// All values of a header, by key.
#[derive(Debug, Default)]
pub(super) struct Values(BTreeMap<String, Value>);

impl Values {
    /// Adds a value. False where the key is there already.
    pub(super) fn insert(&mut self, key: String, value: Value) -> bool {
        self.0.insert(key, value).is_none()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// All keys that begin with the name of an architecture and a dot, without
    /// both.
    pub(super) fn of<'a>(&'a self, arch: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0.iter().filter_map(move |(key, value)| {
            let name = key.strip_prefix(arch)?.strip_prefix('.')?;
            Some((name, value))
        })
    }
}
