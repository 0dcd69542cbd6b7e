//! The functions that a model may call.

use serde_json::{Map, Value};

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, for the model to read.
    pub description: Option<String>,
    /// JSON schema of its arguments, an object. None: it takes
    /// none, so an empty object.
    pub parameters: Option<Map<String, Value>>,
    /// Whether the arguments are held to the schema.
    pub strict: Strict,
}

/// Whether the arguments of a call are held to their schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strict {
    /// As far as the schema is understood.
    Lenient,
    /// A schema that is not understood in full is refused.
    Enforced,
}

/// Whether the model calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// As it likes.
    Auto,
    /// It does not; the tools are shown to it nevertheless.
    None,
    /// It calls one or more of them.
    Required,
    /// It calls this one.
    Named(String),
    /// It calls one or more of these, of which there is one at the least.
    Among(Vec<String>),
}

/// Whether the model may call several tools in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parallel {
    /// As many as it likes.
    Allowed,
    /// One at the most.
    Single,
}
