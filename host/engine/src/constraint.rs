//! Constrained output: what a grammar allows to come next.
//!
//! A [`GrammarSource`] is written by a guest or a client, so it is hostile until
//! proven otherwise. A [`GrammarCompiler`], one a model, turns it into a
//! [`Grammar`] on threads of its own and within [`ConstraintLimits`]. A
//! [`Matcher`] follows one sequence through a grammar: it says which tokens may
//! come next as a [`TokenMask`], takes in what was chosen, and knows when there
//! was no choice. The grammars are those of the `llguidance` crate; this module
//! adds GBNF, the bounds, and the model's own tokenisation.
//!
//! # What can be produced
//! Only text. Control tokens are unknown to every grammar: a grammar cannot name
//! them, and none of them is ever in a mask. The model's end tokens are in the
//! mask where the grammar may end.
//!
//! # JSON
//! JSON Schema is compiled strictly: a keyword that is known and cannot be
//! enforced is an error, one that is not known is a warning
//! ([`Grammar::warnings`]). Whitespace between the parts of a JSON text is
//! optional and bounded (see [`source::GrammarSource::JsonSchema`]), so that a
//! model that likes blanks cannot fill its budget with them.
//!
//! # Forced runs
//! Where a grammar leaves one text only, [`Matcher::forced`] gives the tokens
//! that the model's own tokenizer makes of it, and the mask allows only these:
//! other spellings of the same text would push the model off its distribution.

mod cache;
mod compiler;
mod gbnf;
mod grammar;
mod json;
mod keeper;
mod lark;
mod limits;
mod mask;
mod matcher;
mod regex;
pub mod source;
mod threads;
mod vocabulary;
mod watchdog;
mod workers;

pub use compiler::GrammarCompiler;
pub use grammar::Grammar;
pub use limits::ConstraintLimits;
pub use mask::TokenMask;
pub use matcher::Matcher;
pub use source::GrammarSource;

#[cfg(any(test, feature = "testing"))]
pub(crate) use direct::OneGrammar;

#[cfg(any(test, feature = "testing"))]
mod direct;
#[cfg(test)]
mod tests;

use crate::error::Error;

/// The longest error text that is handed on, in bytes.
const MAX_ERROR: usize = 600;

/// An error of the grammar library, as a guest may see it: without the state
/// dumps and backtraces that the library appends, and not longer than a screen.
fn refused(error: impl std::fmt::Display) -> Error {
    let text = error.to_string();
    let end = ["\n<state>", "\n<non-verbose/>", "\n<backtrace>"].iter().filter_map(|mark| text.find(mark)).min();
    let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default().trim();
    if let Some(inner) = text.strip_prefix("panic: ") {
        return Error::Constraint(format!("this grammar cannot be handled ({}); write it in another way", cut(inner)));
    }
    // The library's word for an empty mask.
    if text == "NoExtensionBias" {
        return Error::Constraint(
            "the grammar matches nothing from here on, or nothing that this model has tokens for".to_owned(),
        );
    }
    Error::Constraint(cut(text).to_owned())
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_ERROR.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}
