//! From a model's text to events.

use crate::{Event, Format, Tool};

/// Reads a model's text as it comes.
#[derive(Debug)]
pub struct Parser {
    _format: Format,
}

/// How a model's text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The model ended its turn.
    Complete,
    /// It was cut off, so that a call may be incomplete.
    Cut,
}

impl Parser {
    /// A parser for the answer to a prompt that ends with `prompt_tail` (some
    /// hundred bytes suffice): a template may have begun the answer already, with
    /// `<think>` for example, or [`Forced::prefix`](crate::Forced::prefix) may
    /// stand there.
    #[must_use]
    pub fn new(format: Format, _tools: &[Tool], _prompt_tail: &str) -> Self {
        Self { _format: format }
    }

    /// Takes more text and appends what it turns out to be.
    pub fn push(&mut self, text: &str, events: &mut Vec<Event>) {
        if !text.is_empty() {
            events.push(Event::Content(text.to_owned()));
        }
    }

    /// The text has ended: appends what was held back.
    pub fn finish(&mut self, _ended: Ended, _events: &mut Vec<Event>) {}

    /// Whether what comes next is a thought, as far as is known.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        false
    }
}
