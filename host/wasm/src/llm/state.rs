//! What a store knows of its models, and what it has used of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nala_engine::pool::AcquireError;
use nala_engine::{BackendLimits, Engine, Lease, PooledModel};
use nala_tenant::{Rate, Stock};

use super::bindings::nala::llm::types::{Error, QuotaKind};
use crate::account::{Account, Holding};
use crate::limits::{KvLimit, Limits};
use crate::turns::Turns;

/// The models of a component, the default one first.
#[derive(Clone)]
pub(crate) struct Models {
    granted: Arc<[Granted]>,
    withheld: Arc<[String]>,
    /// Turns at computing and at work on long texts, shared by all components.
    pub(crate) turns: Arc<Turns>,
}

/// A model that a component may open, loaded or not.
pub(crate) struct Granted {
    model: PooledModel,
    /// The longest text that may fit into its context, in bytes, once that was
    /// looked up in its vocabulary.
    longest_text: OnceLock<usize>,
}

/// Bytes of text that one token is taken to stand for at the most, where the
/// vocabulary has no longer one. It is more than most do, because a vocabulary
/// may shorten a text, as its white space, before it cuts it into tokens.
const TOKEN_TEXT: usize = 128;

/// The longest text that may fit into a model's context, in bytes.
fn longest_text(engine: &Engine) -> usize {
    let tokenizer = engine.tokenizer();
    let mut piece = Vec::new();
    let mut longest = TOKEN_TEXT;
    for token in 0..tokenizer.vocab() {
        piece.clear();
        if tokenizer.piece(token, true, &mut piece).is_ok() {
            longest = longest.max(piece.len());
        }
    }
    longest.saturating_mul(engine.limits().sequence_tokens as usize)
}

impl Granted {
    fn new(model: PooledModel) -> Self {
        // What is loaded now need not be looked up for the first guest.
        let longest = model.loaded().map(|lease| longest_text(&lease));
        Self { model, longest_text: longest.map(OnceLock::from).unwrap_or_default() }
    }

    /// The model, loaded, and the longest text that may fit into its context, in
    /// bytes. May wait for other guests, and for the disk.
    pub(crate) async fn open(&self) -> Result<(Lease, usize), AcquireError> {
        let lease = self.model.acquire().await?;
        let longest = match self.longest_text.get() {
            Some(longest) => *longest,
            None => {
                let looking = lease.clone();
                match tokio::task::spawn_blocking(move || longest_text(&looking)).await {
                    Ok(longest) => *self.longest_text.get_or_init(|| longest),
                    Err(_ending) => TOKEN_TEXT.saturating_mul(lease.limits().sequence_tokens as usize),
                }
            }
        };
        Ok((lease, longest))
    }
}

impl Models {
    pub(crate) fn new(granted: Vec<PooledModel>, withheld: Vec<String>, turns: Arc<Turns>) -> Self {
        Self { granted: granted.into_iter().map(Granted::new).collect(), withheld: withheld.into(), turns }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Granted> {
        self.granted.iter().find(|granted| granted.model.name() == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.granted.iter().map(|granted| granted.model.name())
    }

    pub(crate) fn is_withheld(&self, name: &str) -> bool {
        self.withheld.iter().any(|withheld| withheld == name)
    }

    /// What the backends of the granted models can hold, as far as they have
    /// been loaded.
    fn limits(&self) -> impl Iterator<Item = BackendLimits> {
        self.granted.iter().filter_map(|granted| granted.model.limits())
    }
}

impl KvLimit {
    /// Cells that it comes to for a model, of what its backend can hold.
    fn cells(self, model: BackendLimits) -> u64 {
        match self {
            Self::Cells(cells) => cells,
            Self::Share(part) => (model.kv_cells / part.max(1)).max(model.sequence_tokens).into(),
        }
    }
}

/// What a store has used, and how much of it it holds.
pub(crate) struct LlmState {
    pub(crate) models: Models,
    /// Whom the store works for.
    pub(crate) account: Arc<Account>,
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
    pub(crate) fn new(models: Models, account: Arc<Account>, limits: &Limits) -> Self {
        let known = models.limits().map(|model| limits.kv_cells.cells(model)).max();
        let max_kv_cells = match limits.kv_cells {
            KvLimit::Cells(cells) => cells,
            KvLimit::Share(_) => known.unwrap_or(0),
        };
        Self { models, account, sessions: 0, works: 0, max_kv_cells, usage: Arc::default() }
    }

    /// Whether a prompt may be computed: how much of it is known already, and so what it
    /// costs, is said only afterwards.
    pub(super) fn may_read(&self) -> Result<(), Error> {
        self.account.check(Rate::TokensIn).map_err(|_exceeded| Error::Quota(QuotaKind::Tokens))
    }

    /// Whether a run may begin, and its place among the tenant's runs. The engine has
    /// those wait that are beyond what the tenant may have at a time.
    pub(super) fn may_write(&self) -> Result<Holding, Error> {
        let account = &self.account;
        account.check(Rate::TokensOut).map_err(|_exceeded| Error::Quota(QuotaKind::Tokens))?;
        let at_once = account.hold(Stock::Generations, 1);
        at_once.or_else(|_| account.hold(Stock::QueuedGenerations, 1)).map_err(|_exceeded| Error::Busy)
    }

    /// A model was opened, of which nothing may have been known before.
    pub(crate) fn opened(&mut self, limits: &Limits, model: BackendLimits) {
        self.max_kv_cells = self.max_kv_cells.max(limits.kv_cells.cells(model));
    }
}
