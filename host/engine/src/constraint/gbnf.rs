//! GBNF, the grammar format of llama.cpp, turned into Lark.
//!
//! GBNF has no lexer: its terminals are single characters. llguidance has one,
//! which takes the longest terminal that fits. So every terminal becomes one
//! character long, which keeps the meaning whatever the grammar; and runs of one
//! class (`[^"]*`) become one terminal where that provably changes nothing
//! ([`runs`]), since a run character by character costs a parser step for each
//! byte of each token of the vocabulary.
//!
//! Differences to llama.cpp: left recursion is allowed; a rule that is defined
//! twice, an empty class, and rules about tokens (`<…>`) are refused; a
//! repetition's bounds may be up to [`MAX_REPETITION`].

mod characters;
mod lark;
mod parser;
mod rules;
mod runs;

use super::limits::ConstraintLimits;
use crate::error::Error;

/// The largest bound of a repetition.
const MAX_REPETITION: u32 = 1_000_000;

/// The same grammar in Lark.
pub(super) fn to_lark(text: &str, limits: &ConstraintLimits) -> Result<String, Error> {
    let mut rules = parser::parse(text, limits.nesting)?;
    runs::join(&mut rules);
    Ok(lark::write(&rules))
}

#[cfg(test)]
mod tests;
