//! What a store knows of its models, and what it has used of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nala_engine::Engine;

use crate::limits::{KvLimit, Limits};

/// The models of a component, the default one first.
#[derive(Clone)]
pub(crate) struct Models {
    granted: Arc<[Engine]>,
    withheld: Arc<[String]>,
}

impl Models {
    pub(crate) fn new(granted: Vec<Engine>, withheld: Vec<String>) -> Self {
        Self { granted: granted.into(), withheld: withheld.into() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Engine> {
        self.granted.iter().find(|engine| engine.name() == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.granted.iter().map(Engine::name)
    }

    pub(crate) fn is_withheld(&self, name: &str) -> bool {
        self.withheld.iter().any(|withheld| withheld == name)
    }

    /// Cells of the largest model.
    fn kv_cells(&self) -> u64 {
        self.granted.iter().map(|engine| u64::from(engine.limits().kv_cells)).max().unwrap_or(0)
    }
}

/// What a store has used, and how much of it it holds.
pub(crate) struct LlmState {
    pub(crate) models: Models,
    pub(crate) sessions: u32,
    pub(crate) max_kv_cells: u64,
    pub(crate) usage: Arc<Usage>,
}

/// Counters that the store's sessions and generations share.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) cached_tokens: AtomicU64,
    pub(crate) new_tokens: AtomicU64,
    pub(crate) queue_us: AtomicU64,
    /// KV cells set aside for sessions.
    pub(crate) kv_cells: AtomicU64,
}

impl Usage {
    pub(crate) fn queued(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.queue_us.fetch_add(micros, Ordering::Relaxed);
    }
}

impl LlmState {
    pub(crate) fn new(models: Models, limits: &Limits) -> Self {
        let max_kv_cells = match limits.kv_cells {
            KvLimit::Cells(cells) => cells,
            KvLimit::Share(part) => models.kv_cells() / u64::from(part.max(1)),
        };
        Self { models, sessions: 0, max_kv_cells, usage: Arc::default() }
    }
}
