//! Sequences, batching, sampling and usage over a model [`Backend`].

pub mod backend;
pub mod error;
pub mod options;
pub mod tokenizer;

pub use backend::{
    Backend, BackendLimits, BatchEntry, DecodeError, LoadedModel, ModelInfo, SeqId, StateKind, Token,
};
pub use error::Error;
pub use options::{
    Alternative, Chunk, Finish, GenerateOptions, MAX_LOGPROBS, PrefillInfo, Sampled, Sampling,
};
pub use tokenizer::Tokenizer;
