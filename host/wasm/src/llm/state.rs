//! What a store knows of its models, and what it has used of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nala_engine::Engine;
use tokio::sync::Semaphore;

use crate::limits::{KvLimit, Limits};

/// The models of a component, the default one first.
#[derive(Clone)]
pub(crate) struct Models {
    granted: Arc<[Granted]>,
    withheld: Arc<[String]>,
    /// Turns at work on long texts, shared by all components.
    pub(crate) turns: Arc<Semaphore>,
}

/// A model that a component may open.
#[derive(Clone)]
pub(crate) struct Granted {
    pub(crate) engine: Engine,
    /// The longest text that may fit into its context, in bytes.
    pub(crate) longest_text: usize,
}

/// Bytes of text that one token is taken to stand for at the most, where the
/// vocabulary has no longer one. It is more than most do, because a vocabulary
/// may shorten a text, as its white space, before it cuts it into tokens.
const TOKEN_TEXT: usize = 128;

impl Granted {
    fn new(engine: Engine) -> Self {
        let tokenizer = engine.tokenizer();
        let mut piece = Vec::new();
        let mut longest = TOKEN_TEXT;
        for token in 0..tokenizer.vocab() {
            piece.clear();
            if tokenizer.piece(token, true, &mut piece).is_ok() {
                longest = longest.max(piece.len());
            }
        }
        let longest_text = longest.saturating_mul(engine.limits().sequence_tokens as usize);
        Self { engine, longest_text }
    }
}

impl Models {
    pub(crate) fn new(granted: Vec<Engine>, withheld: Vec<String>, turns: Arc<Semaphore>) -> Self {
        Self { granted: granted.into_iter().map(Granted::new).collect(), withheld: withheld.into(), turns }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Granted> {
        self.granted.iter().find(|model| model.engine.name() == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.granted.iter().map(|model| model.engine.name())
    }

    pub(crate) fn is_withheld(&self, name: &str) -> bool {
        self.withheld.iter().any(|withheld| withheld == name)
    }

    /// Cells that a share of one part in `part` comes to.
    fn share(&self, part: u32) -> u64 {
        let share = |model: &Granted| {
            let limits = model.engine.limits();
            (limits.kv_cells / part.max(1)).max(limits.sequence_tokens)
        };
        self.granted.iter().map(share).max().unwrap_or(0).into()
    }
}

/// What a store has used, and how much of it it holds.
pub(crate) struct LlmState {
    pub(crate) models: Models,
    /// Who shares beginnings and saved sessions: the component, by its name.
    pub(crate) scope: Arc<str>,
    pub(crate) sessions: u32,
    /// Runs and steps started so far, which numbers them.
    pub(crate) works: u64,
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
    /// Bytes of the grammars that handles and sessions hold.
    pub(crate) grammar_bytes: AtomicU64,
}

impl Usage {
    pub(crate) fn queued(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.queue_us.fetch_add(micros, Ordering::Relaxed);
    }
}

impl LlmState {
    pub(crate) fn new(models: Models, scope: Arc<str>, limits: &Limits) -> Self {
        let max_kv_cells = match limits.kv_cells {
            KvLimit::Cells(cells) => cells,
            KvLimit::Share(part) => models.share(part),
        };
        Self { models, scope, sessions: 0, works: 0, max_kv_cells, usage: Arc::default() }
    }
}
