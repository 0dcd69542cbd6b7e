//! GGUF headers: metadata and tensor table, read without loading the weights.
//!
//! Source: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>,
//! versions 2 and 3, little-endian. The file may come from anywhere, so every
//! count and length is held against the file's size before anything is done
//! for it, and nothing in it can cause a panic or a large allocation.

mod header;
mod kind;
mod memory;
mod reader;
mod summary;
mod value;

pub use header::{Header, HeaderError, Tensor};
pub use kind::TensorKind;
pub use summary::{KindShare, Summary};
pub use value::{Value, ValueKind};
