//! Why a request's instance ended, as far as the host had a hand in it.
//!
//! A guest that the host stops looks to wasmtime like one that trapped or was
//! dropped. Whoever stops it writes the reason here first, and whoever answers
//! the client reads it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use nala_tenant::Exceeded;

/// Which limit stopped the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// CPU time.
    Cpu,
    /// Wall time.
    Wall,
}

/// Shared by a store and by whoever waits for its response.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    stopped: Mutex<Option<Stopped>>,
    memory_refused: AtomicBool,
    /// The tenant's limit, where that was the reason.
    of_tenant: OnceLock<Exceeded>,
}

impl Outcome {
    /// Notes why the guest is being stopped; the first reason stays.
    pub(crate) fn stop(&self, reason: Stopped) {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }

    pub(crate) fn stopped(&self) -> Option<Stopped> {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a memory or table was not allowed to grow. The guest may
    /// survive that; if it dies, this is likely why.
    pub(crate) fn refuse_memory(&self) {
        self.memory_refused.store(true, Ordering::Release);
    }

    /// The same, for what the tenant holds in all.
    pub(crate) fn refuse_memory_of_tenant(&self, exceeded: Exceeded) {
        // All of them are of one limit.
        let _ = self.of_tenant.set(exceeded);
        self.refuse_memory();
    }

    /// The tenant's limit for which memory was refused, if it was one.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.of_tenant.get().copied()
    }

    pub(crate) fn memory_refused(&self) -> bool {
        self.memory_refused.load(Ordering::Acquire)
    }
}
