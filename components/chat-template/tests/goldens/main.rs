//! Seventy real templates and some of ours, beside transformers, with fixing up and
//! with control tokens in everything that a client says.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test, its helpers included")]

mod fitted;
mod golden;
mod injection;
mod reference;
