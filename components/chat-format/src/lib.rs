//! How models write tool calls and thoughts, and how to read them as they are
//! written.
//!
//! Each family of models was trained on a notation of its own. [`Format`] names
//! them; [`Format::of_template`] tells from a chat template which one the model
//! writes. A [`Parser`] takes a model's text in pieces cut anywhere and gives
//! [`Event`]s: plain text, thoughts, and calls with their arguments as JSON.
//! [`force()`] turns "the model must call a tool" into a beginning of its answer
//! and a grammar for the rest.

mod call;
mod elements;
mod event;
mod families;
mod force;
mod format;
mod header;
mod json;
mod literal;
mod named;
mod notation;
mod opening;
mod parser;
mod read;
mod stream;
mod tagged;
mod template;
mod tool;
mod types;

#[cfg(test)]
mod tests;

pub use event::Event;
pub use force::{Forced, Impossible, answer_or, force};
pub use format::Format;
pub use opening::Opening;
pub use parser::{Ended, Parser};
pub use tool::{Choice, Parallel, Strict, Tool};
