//! The right to use a model.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::Shared;
use super::ledger::Index;
use crate::engine::Engine;

/// The right to use a model of a [`ModelPool`](super::ModelPool): while there is
/// one, the model stays loaded. Clones share it.
///
/// It is to be kept beside every session, run and tokenizer of its engine, and
/// dropped after them: the engine ends when the model is unloaded, whoever still
/// holds a handle of it.
#[derive(Clone)]
pub struct Lease(Arc<Held>);

struct Held {
    // Before the release: once that is told, nobody may hold the weights.
    engine: Engine,
    _release: Release,
}

/// Tells the pool when it is dropped.
struct Release {
    index: Index,
    pool: Arc<Shared>,
}

impl Lease {
    /// Of a model that the ledger has counted as leased.
    pub(super) fn new(engine: Engine, index: Index, pool: Arc<Shared>) -> Self {
        pool.metrics.leases.get_or_create(&pool.label(index)).inc();
        Self(Arc::new(Held { engine, _release: Release { index, pool } }))
    }

    /// The model's engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }
}

impl Deref for Lease {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.engine()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.engine().name()).finish()
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        self.pool.metrics.leases.get_or_create(&self.pool.label(self.index)).dec();
        self.pool.release(self.index);
    }
}
