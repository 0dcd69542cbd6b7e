//! `nala-engine` behind the backend traits of wasmtime-wasi-nn 48: models for the
//! guests of any embedder of wasmtime.
//!
//! ```
//! use nala_engine::Engine;
//! use nala_nn_backend::{Caller, Models, Nala};
//! use wasmtime_wasi_nn::wit::WasiNnCtx;
//! use wasmtime_wasi_nn::{Backend, Registry};
//!
//! /// What `wasi:nn` gives the guest of one store, for whoever the store works for.
//! fn context(engines: &[Engine], caller: &Caller) -> WasiNnCtx {
//!     let models = Models::new(engines.iter().cloned(), caller);
//!     WasiNnCtx::new([Backend::from(Nala)], Registry::from(models))
//! }
//! ```
//!
//! Guests open models by name; tensors and options are those of [`nala_nn`]. Models
//! are not taken from guests: loading bytes fails.
//!
//! # Blocking
//!
//! The traits are synchronous, so [`compute`] holds its thread until the answer is
//! there. Call guests on threads that may block, one a guest, and **never on a
//! worker of an asynchronous runtime**: a few guests would hold all of them, and
//! neither timers nor epochs stop a guest meanwhile. What several threads compute at
//! a time is still one batch. `nala-wasm` binds the same interface asynchronously
//! and with limits on what a guest may hold; where that can be used, use that.
//!
//! [`compute`]: wasmtime_wasi_nn::backend::BackendExecutionContext::compute

mod context;
mod convert;

use std::collections::HashMap;
use std::sync::Arc;

use nala_engine::{Engine, Tenant};
use wasmtime_wasi_nn::backend::{BackendError, BackendFromDir, BackendGraph, BackendInner};
use wasmtime_wasi_nn::wit::{ExecutionTarget, GraphEncoding};
use wasmtime_wasi_nn::{ExecutionContext, Graph, GraphRegistry};

use context::Context;

/// The backend for guests that would load models themselves, which is refused. It
/// stands for the encoding `ggml`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nala;

impl BackendInner for Nala {
    fn encoding(&self) -> GraphEncoding {
        GraphEncoding::Ggml
    }

    fn load(&mut self, _builders: &[&[u8]], _target: ExecutionTarget) -> Result<Graph, BackendError> {
        let text = "models are not taken from guests; ask for one by its name, with load-by-name";
        Err(BackendError::BackendAccess(wasmtime::Error::msg(text)))
    }

    fn as_dir_loadable(&mut self) -> Option<&mut dyn BackendFromDir> {
        None
    }
}

/// Whom a store works for. To be chosen by the host, and never by the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Who finds whose beginnings in the prefix cache, see
    /// [`scope`](nala_engine::SessionOptions::scope).
    pub scope: Arc<str>,
    /// Who shares the engine's time with whom.
    pub tenant: Tenant,
    /// The most tokens that prompt and answer of one call have together. None: as
    /// many as the context has.
    pub max_tokens: Option<u32>,
}

/// Models by the names of their engines.
#[derive(Clone)]
pub struct Models(HashMap<String, Graph>);

impl Models {
    /// The models that a store may open. Cheap: engines are handles.
    pub fn new(engines: impl IntoIterator<Item = Engine>, caller: &Caller) -> Self {
        let graph = |engine: Engine| {
            let name = engine.name().to_owned();
            let model: Box<dyn BackendGraph> = Box::new(Model { engine, caller: caller.clone() });
            (name, Graph::from(model))
        };
        Self(engines.into_iter().map(graph).collect())
    }
}

impl GraphRegistry for Models {
    fn get(&self, name: &str) -> Option<&Graph> {
        self.0.get(name)
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Graph> {
        self.0.get_mut(name)
    }
}

/// A model as a graph.
struct Model {
    engine: Engine,
    caller: Caller,
}

impl BackendGraph for Model {
    fn init_execution_context(&self) -> Result<ExecutionContext, BackendError> {
        let context: Box<dyn wasmtime_wasi_nn::backend::BackendExecutionContext> =
            Box::new(Context::new(self.engine.clone(), self.caller.clone()));
        Ok(context.into())
    }
}
