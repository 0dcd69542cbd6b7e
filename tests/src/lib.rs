//! What the end-to-end tests and the benchmarks share: the real binary as a
//! child process, a client that sees what is on the wire, guests built from
//! their sources, and the model.
//!
//! Nothing here is skipped when something is missing: it panics with the
//! command that provides it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "test support: a failure here is a failed test, and its message is the documentation"
)]

pub mod api;
pub mod chat;
pub mod guests;
pub mod host;
pub mod hostile;
pub mod keys;
pub mod metrics;
pub mod paths;
pub mod raw;
pub mod scripts;
pub mod soak;
