//! Grammars that output is kept within.

use std::rc::Rc;

use super::{Error, Model};
use crate::bindings::nala::llm::constraint;

/// A compiled grammar of one model, for [`Session::constrain`]. Clones share it.
///
/// The host keeps those that were used last, so a handler can compile its grammar
/// with every request.
///
/// ```
/// use nala_sdk::llm::{GenerateOptions, Grammar, Model, Session};
///
/// fn colour(model: &Model, session: &Session) -> Result<String, nala_sdk::llm::Error> {
///     let grammar = Grammar::json_schema(
///         model,
///         r#"{
///             "type": "object",
///             "properties": {"colour": {"enum": ["red", "green", "blue"]}},
///             "required": ["colour"],
///             "additionalProperties": false
///         }"#,
///     )?;
///     session.constrain(&grammar)?;
///     let mut json = String::new();
///     for chunk in session.generate(&GenerateOptions::greedy(64))? {
///         json.push_str(&chunk?.text);
///     }
///     Ok(json)
/// }
/// ```
///
/// [`Session::constrain`]: super::Session::constrain
#[derive(Debug, Clone)]
pub struct Grammar(pub(super) Rc<constraint::Grammar>);

impl Grammar {
    /// Output that is JSON and valid under a schema (2020-12 and the older drafts).
    /// Its properties come in the schema's order.
    ///
    /// # Errors
    /// [`Error::Constraint`] for a text that is wrong, asks for what cannot be
    /// enforced, matches nothing or is too much work; it says which.
    /// [`Error::Busy`] when too many are being compiled, [`Error::Quota`] when the
    /// component holds too many bytes of grammars.
    pub fn json_schema(model: &Model, schema: &str) -> Result<Self, Error> {
        Self::compile(model, constraint::Source::JsonSchema(schema.to_owned()))
    }

    /// Output that is any JSON value. For any JSON object use
    /// [`Grammar::json_schema`] with `{"type":"object"}`.
    ///
    /// # Errors
    /// As [`Grammar::json_schema`].
    pub fn any_json(model: &Model) -> Result<Self, Error> {
        Self::compile(model, constraint::Source::AnyJson)
    }

    /// Output that a regular expression matches as a whole, in the syntax of the
    /// crate `regex`, without look-around and word boundaries.
    ///
    /// # Errors
    /// As [`Grammar::json_schema`].
    pub fn regex(model: &Model, pattern: &str) -> Result<Self, Error> {
        Self::compile(model, constraint::Source::Regex(pattern.to_owned()))
    }

    /// Output of a grammar in llguidance's dialect of Lark, whose start rule is
    /// `start`.
    ///
    /// # Errors
    /// As [`Grammar::json_schema`].
    pub fn lark(model: &Model, text: &str) -> Result<Self, Error> {
        Self::compile(model, constraint::Source::Lark(text.to_owned()))
    }

    /// Output of a grammar in llama.cpp's GBNF, whose start rule is `root`.
    ///
    /// # Errors
    /// As [`Grammar::json_schema`].
    pub fn gbnf(model: &Model, text: &str) -> Result<Self, Error> {
        Self::compile(model, constraint::Source::Gbnf(text.to_owned()))
    }

    fn compile(model: &Model, source: constraint::Source) -> Result<Self, Error> {
        constraint::Grammar::compile(&model.0, &source).map(|grammar| Self(Rc::new(grammar)))
    }

    /// What was not understood in the text, for people. Where there is something,
    /// the output may be freer than the text meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }
}
