//! What a guest says through `wasi:nn`, and what it is told: which tensors are
//! prompts and options, and how an answer becomes tensors again.
//!
//! `wasi:nn` knows tensors with names and nothing of language models, so the names
//! and the options are a convention. It is LlamaEdge's where that has one: a prompt
//! as bytes, options as JSON with the keys of its metadata, the text and the usage
//! as outputs. [`Request::read`] reads inputs, [`Answer::tensors`] writes outputs,
//! and [`Error`] is told with one of the codes of `wasi:nn`.
//!
//! Nothing is computed here. Two hosts do that by the same words: `nala-wasm` with
//! its own asynchronous bindings, and `nala-nn-backend` for other embedders of
//! wasmtime.

mod answer;
mod error;
mod options;
mod prompt;
mod request;
mod tensor;

pub use answer::{Answer, Ending, embedding};
pub use error::{Code, Error};
pub use options::{MAX_OPTIONS_BYTES, Options, Task};
pub use prompt::{Piece, Prompt, embedding_tokens};
pub use request::{Request, TEXT, USAGE, is_input, unknown};
pub use tensor::{Element, MAX_RANK, Tensor};
