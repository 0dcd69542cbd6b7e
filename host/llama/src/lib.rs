//! The llama.cpp backend of `nala-engine`.
//!
//! [`load()`] reads a GGUF file and hands out what `Engine::start` takes. Here
//! stands **all** `unsafe` code of the project: `llama-cpp-2` covers the model,
//! its vocabulary and its metadata; contexts are our own thin layer over
//! `llama-cpp-sys-2`, since the safe crate hides what later work needs of them
//! (threadpools, abort callback, adapters). llama.cpp answers wrong calls by
//! aborting the process, so everything is checked on this side before it is
//! called.
//!
//! # What a batch changes
//!
//! A sequence's logits do not depend on what its neighbours say, but their last
//! bits depend on how many rows are computed at once, since llama.cpp picks
//! kernels by that: its fused attention of the CPU takes a tiled path from 64
//! rows on (f32 sums instead of f16), and splits the cells over the threads for
//! a lone row over 512 cells or more; products with Q8_0, F16 and F32 weights
//! take another path from two rows on. Greedy texts are therefore the same alone
//! and beside others unless two tokens are about as likely, and exactly the same
//! where the same kernels run.

#![allow(unsafe_code, reason = "the one crate of the project that calls C; each block says why it is sound")]

mod abort;
mod adapter;
mod backend;
pub mod bare;
mod batch;
mod context;
mod embed;
mod error;
mod header;
mod holdings;
mod load;
mod log;
mod model;
mod options;
mod pages;
mod prefix;
mod spelling;
mod stack;
mod system;
mod threads;
mod tokenizer;

pub use error::LoadError;
pub use load::{check, load};
pub use options::{AdapterFile, FlashAttention, KvType, LoadOptions, Pinning};
pub use system::{Version, system_info, version};
