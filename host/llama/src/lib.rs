//! The llama.cpp backend of `nala-engine`.
//!
//! [`load`] reads a GGUF file and hands out what `Engine::start` takes. Here
//! stands **all** `unsafe` code of the project: `llama-cpp-2` covers the model,
//! its vocabulary and its metadata; contexts are our own thin layer over
//! `llama-cpp-sys-2`, since the safe crate hides what later work needs of them
//! (threadpools, abort callback, adapters). llama.cpp answers wrong calls by
//! aborting the process, so everything is checked on this side before it is
//! called.

#![allow(unsafe_code, reason = "the one crate of the project that calls C; each block says why it is sound")]

mod backend;
pub mod bare;
mod context;
mod error;
mod header;
mod load;
mod log;
mod model;
mod options;
mod spelling;
mod stack;
mod system;
mod threads;
mod tokenizer;

pub use error::LoadError;
pub use load::load;
pub use options::{FlashAttention, LoadOptions};
pub use system::{Version, system_info, version};
