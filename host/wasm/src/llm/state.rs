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

    /// Cells that a share of one part in `part` comes to.
    fn share(&self, part: u32) -> u64 {
        let share = |engine: &Engine| {
            let limits = engine.limits();
            (limits.kv_cells / part.max(1)).max(limits.sequence_tokens)
        };
        self.granted.iter().map(share).max().unwrap_or(0).into()
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
            KvLimit::Share(part) => models.share(part),
        };
        Self { models, sessions: 0, max_kv_cells, usage: Arc::default() }
    }
}
