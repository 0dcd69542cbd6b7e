//! The ways to show a conversation to a template, of which a template may know
//! only one.

use serde_json::{Map, Value};

/// How a conversation is shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manner {
    pub(crate) arguments: Arguments,
    pub(crate) silence: Silence,
    pub(crate) prose: Prose,
    pub(crate) no_tools: NoTools,
    /// Further variables, from outside.
    pub(crate) more: Map<String, Value>,
}

/// How the arguments of a call are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// As an object.
    #[default]
    Object,
    /// As JSON text, as in OpenAI's API.
    Text,
}

/// How a message with calls and without content is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Without the key, as in transformers 5.
    #[default]
    Missing,
    /// With an empty text.
    Empty,
}

/// How text is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Prose {
    /// As a string.
    #[default]
    Text,
    /// As a list of one part.
    Parts,
}

/// How it is shown that there are no tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum NoTools {
    /// By `none`, as in transformers.
    #[default]
    Null,
    /// By an empty list.
    Empty,
}

impl NoTools {
    pub(crate) fn is_null(self) -> bool {
        self == Self::Null
    }
}
