//! What every backend must do, as checks that a backend's tests call.
//!
//! [`run`] takes a way to load the model, small (256 to 1,024 KV cells, batches
//! of 32 to 64 tokens, 4 to 16 sequences), and panics with what is wrong. The
//! fake and the real backend pass the same checks.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests, in a module only so that several crates can run them"
)]

mod adapters;
mod backend;
pub mod constraint;
mod drafts;
mod embeddings;
mod engine;
mod programs;
mod sessions;
mod state;
mod tokenizer;

use crate::backend::{LoadedModel, Token};
use crate::tokenizer::Tokenizer;

/// A text as the model expects one to begin: without their first token, models
/// that were trained with one are undecided about everything.
fn begun(tokenizer: &dyn Tokenizer, text: &str) -> Vec<Token> {
    let begin = tokenizer.bos().filter(|_| tokenizer.adds_bos());
    begin.into_iter().chain(tokenizer.encode(text, false).unwrap()).collect()
}

/// Runs every check.
///
/// # Panics
/// On the first check that does not hold.
pub fn run(load: &dyn Fn() -> LoadedModel) {
    backend::run(load);
    state::run(load);
    drafts::run(load);
    adapters::run(load);
    embeddings::run(load);
    tokenizer::run(load);
    constraint::run(&load().tokenizer);
    engine::run(load);
    sessions::run(load);
    programs::run(load);
}
