//! Sequences, continuous batching, sampling and usage over a model backend.
//!
//! [`Engine::start`] takes a loaded model and runs it on one thread that owns
//! the backend. Everybody else holds handles: a [`Session`] is a sequence of
//! tokens with the model's state after it, a [`Generation`] is a run of the
//! decode loop whose text arrives in chunks. All sessions share one batch.
//! A [`ModelPool`] keeps several models by name, loads them when they are first
//! used and unloads idle ones when their memory is needed.
//!
//! The crate knows neither Wasm nor HTTP nor llama.cpp: what computes logits
//! stands behind [`Backend`], which the deterministic `fake` (feature
//! `testing`) implements as well.

mod affinity;
pub mod backend;
mod clock;
mod command;
pub mod config;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod constraint;
pub mod engine;
pub mod error;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod metrics;
pub mod options;
mod outbox;
pub mod pool;
mod sampling;
mod scheduler;
mod text;
mod thread;
pub mod tokenizer;
mod validate;

pub use backend::{
    Abilities, Backend, BackendLimits, BatchEntry, DecodeError, Embedding, EmbeddingInfo, LoadedModel, ModelInfo,
    Pooling, RankingInfo, Rewind, SeqId, StateKind, Token,
};
pub use config::{CompanyConfig, EngineConfig};
pub use constraint::{ConstraintLimits, Grammar, GrammarCompiler, GrammarSource, Matcher, TokenMask};
pub use engine::{
    EmbedOptions, Engine, Generation, MAX_EMBEDDING_INPUTS, Readiness, Session, SessionOptions, StartError, Step,
    Submitted, submit,
};
pub use error::Error;
pub use metrics::EngineMetrics;
pub use options::{
    Alternative, Chunk, Dry, DynamicTemperature, Finish, GenerateOptions, MAX_DRY_WINDOW, MAX_LOGPROBS,
    MAX_READOUT_TOKENS, Mirostat, MirostatVersion, PrefillInfo, Priority, Reading, Readout, Sampled, Sampling, Tenant,
    Xtc,
};
pub use pool::{Lease, ModelPool, ModelSpec, ModelState, PoolConfig, PooledModel, Residence};
pub use scheduler::CACHE_BLOCK;
pub use tokenizer::Tokenizer;
