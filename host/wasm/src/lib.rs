//! Runs WebAssembly components that answer HTTP requests, with the model as an
//! import.
//!
//! A [`Runtime`] owns the wasmtime engine. [`Runtime::compile`] compiles a
//! component, [`Runtime::load`] links it with what it is granted ([`Grant`]) into
//! an [`App`], and [`App::handle`] answers one request with a fresh instance, under the
//! component's [`Limits`]. Every limit ends in a typed [`HandleError`] for that
//! request and in nothing for the others.
//!
//! The crate knows neither sockets nor model formats. What a component may
//! import stands in one module for each capability: `llm`, `nn`, `spin_llm`,
//! `chat`, and WASI with nothing granted.

mod body;
mod cache;
mod chat;
mod control;
mod cpu;
mod engine;
mod error;
mod handler;
mod limits;
mod llm;
mod load;
mod memory;
mod metrics;
mod nn;
mod outbound;
mod outcome;
mod spin_llm;
mod stdio;
mod store;
mod tick;

pub use body::{BodyError, ResponseBody};
pub use cache::CompileCache;
pub use chat::renderer::Renderer;
pub use engine::{Runtime, RuntimeConfig, StartError};
pub use error::HandleError;
pub use handler::{App, Instantiation};
pub use limits::{KvLimit, LimitEntry, Limits};
pub use load::{Compiled, Grant, LoadError, MAX_COMPONENT_BYTES, Offered, Source};
pub use metrics::{OutcomeLabel, RuntimeMetrics};
