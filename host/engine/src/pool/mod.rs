//! Several models in one process: loaded when they are first used, unloaded when
//! their memory is needed or nobody has used them for a while.
//!
//! A [`ModelPool`] knows its models by name. [`ModelPool::acquire`] hands out a
//! [`Lease`] on a started [`Engine`], loading the model first
//! where it must: all who wait for a model share one load, and a load that fails
//! is told to all of them and tried again by whoever asks after a while. A model
//! with a lease is never unloaded. Where all memory is in use, callers wait, but
//! not for ever.
//!
//! The sums that are held against the budget are estimates of the caller's
//! making: see [`ModelSpec::bytes`].

mod error;
mod lease;
mod ledger;
mod metrics;
mod work;

use std::error::Error as StdError;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

pub use self::error::{AcquireError, LoadFailure, PoolError, Waiting};
pub use self::lease::Lease;
pub use self::metrics::{ModelLabel, PoolMetrics};

use self::ledger::{Answer, Index, Kept, Ledger, Place};
use crate::backend::{BackendLimits, LoadedModel};
use crate::config::EngineConfig;
use crate::engine::Engine;
use crate::metrics::EngineMetrics;

/// Loads a model; called on a thread where blocking is fine, once for each load.
pub type Loader = Box<dyn Fn() -> Result<LoadedModel, Box<dyn StdError + Send + Sync>> + Send + Sync>;

/// Whether a model may be unloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residence {
    /// Never, once it is loaded.
    Resident,
    /// When nobody uses it.
    OnDemand,
}

/// Whether a model can be used at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelState {
    /// It is not in memory.
    Unloaded,
    /// It is on its way into memory, or waits for others to be out of it.
    Loading,
    /// It is in memory.
    Loaded,
    /// It is on its way out of memory.
    Unloading,
}

/// A model that a pool may load.
pub struct ModelSpec {
    /// The name that it is served by.
    pub name: String,
    /// Memory that it takes while it is loaded, in bytes: its weights, its KV
    /// cells and what computing needs.
    pub bytes: u64,
    /// Whether it may be unloaded.
    pub residence: Residence,
    /// Settings of its engine.
    pub engine: EngineConfig,
    /// Loads it.
    pub load: Loader,
}

/// Settings of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolConfig {
    /// Bytes that all loaded models may take together.
    pub budget: u64,
    /// How long nobody must have used a model for it to be unloaded. None: only
    /// others that need its room unload it.
    pub idle: Option<Duration>,
    /// How long a caller waits for a model, its load included.
    pub max_wait: Duration,
    /// How long a load that failed is not tried again; callers are told the
    /// failure meanwhile.
    pub retry_after: Duration,
}

impl Default for PoolConfig {
    /// No bound on memory, ten minutes idle, a minute of waiting, five seconds
    /// after a failure.
    fn default() -> Self {
        Self {
            budget: u64::MAX,
            idle: Some(Duration::from_secs(600)),
            max_wait: Duration::from_secs(60),
            retry_after: Duration::from_secs(5),
        }
    }
}

/// Models by name. A cheap handle: clones share the pool.
#[derive(Clone)]
pub struct ModelPool {
    shared: Arc<Shared>,
}

/// One model of a pool, loaded or not. A cheap handle.
#[derive(Clone)]
pub struct PooledModel {
    shared: Arc<Shared>,
    index: Index,
}

struct Shared {
    config: PoolConfig,
    models: Vec<Model>,
    ledger: Mutex<Ledger<Engine>>,
    /// Something has changed that a caller or a load may wait for.
    changed: Notify,
    /// A model has come to be idle, or the pool has ended.
    idle: Arc<Notify>,
    metrics: PoolMetrics,
    runtime: Handle,
}

struct Model {
    name: Arc<str>,
    config: EngineConfig,
    load: Loader,
    /// What its engines count, one after another.
    metrics: EngineMetrics,
    limits: OnceLock<BackendLimits>,
}

impl Kept for Engine {
    fn has_saved(&self) -> bool {
        // Without a lease there is no session that could be parked.
        self.metrics().snapshot_bytes.get() > 0
    }
}

impl ModelPool {
    /// A pool that has loaded nothing yet. Its work is done on `runtime`.
    ///
    /// # Errors
    /// [`PoolError`] for two models of one name, and where the budget does not
    /// suffice for the resident models and any one of the others.
    pub fn new(config: PoolConfig, models: Vec<ModelSpec>, runtime: Handle) -> Result<Self, PoolError> {
        check(config.budget, &models)?;
        let entries = models.iter().map(|model| (model.name.as_str().into(), model.bytes, model.residence));
        let ledger = Ledger::new(config.budget, config.retry_after, entries);
        let metrics = PoolMetrics::new(config.budget, models.iter().map(|model| model.name.as_str()));
        let any_on_demand = models.iter().any(|model| model.residence == Residence::OnDemand);
        let models = models.into_iter().map(|spec| Model {
            name: spec.name.into(),
            config: spec.engine,
            load: spec.load,
            metrics: EngineMetrics::default(),
            limits: OnceLock::new(),
        });
        let shared = Arc::new(Shared {
            config,
            models: models.collect(),
            ledger: Mutex::new(ledger),
            changed: Notify::new(),
            idle: Arc::default(),
            metrics,
            runtime,
        });
        if let (Some(idle), true) = (config.idle, any_on_demand) {
            work::watch_idle(&shared, idle);
        }
        Ok(Self { shared })
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> PoolConfig {
        self.shared.config
    }

    /// What the pool counts.
    #[must_use]
    pub fn metrics(&self) -> &PoolMetrics {
        &self.shared.metrics
    }

    /// All models, in the order in which they were named.
    pub fn models(&self) -> impl Iterator<Item = PooledModel> {
        (0..self.shared.models.len()).map(|index| PooledModel { shared: Arc::clone(&self.shared), index })
    }

    /// The model of a name.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<PooledModel> {
        self.models().find(|model| model.name() == name)
    }

    /// The model of a name, loaded. See [`PooledModel::acquire`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self, name: &str) -> Result<Lease, AcquireError> {
        match self.model(name) {
            Some(model) => model.acquire().await,
            None => {
                let known = self.models().map(|model| model.name().to_owned()).collect();
                Err(AcquireError::Unknown { name: name.to_owned(), known })
            }
        }
    }

    /// The name of a model whose engine has ended unasked.
    #[must_use]
    pub fn lost(&self) -> Option<String> {
        let ledger = self.shared.ledger();
        ledger.loaded().find(|(_, engine)| !engine.is_alive()).map(|(name, _)| name.to_owned())
    }

    /// Ends all engines, those in use too, and waits for them. Whoever waits for
    /// a model is told; nothing is loaded any more.
    pub async fn shutdown(&self) {
        let engines = self.shared.ledger().shut_down();
        self.shared.tell();
        for (index, engine) in engines {
            work::end(&self.shared, index, engine).await;
        }
        // Those that were on their way before, out or in.
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if !self.shared.ledger().moves() {
                return;
            }
            changed.await;
        }
    }
}

fn check(budget: u64, models: &[ModelSpec]) -> Result<(), PoolError> {
    for (at, model) in models.iter().enumerate() {
        if models.iter().take(at).any(|other| other.name == model.name) {
            return Err(PoolError::Twice { name: model.name.clone() });
        }
    }
    let resident = models.iter().filter(|model| model.residence == Residence::Resident);
    let needed = resident.fold(0_u64, |sum, model| sum.saturating_add(model.bytes));
    let Some(room) = budget.checked_sub(needed) else { return Err(PoolError::Residents { needed, budget }) };
    let on_demand = models.iter().filter(|model| model.residence == Residence::OnDemand);
    match on_demand.max_by_key(|model| model.bytes) {
        Some(model) if model.bytes > room => {
            Err(PoolError::TooLarge { name: model.name.clone(), needed: model.bytes, room })
        }
        _ => Ok(()),
    }
}

impl PooledModel {
    /// The name that it is served by.
    #[must_use]
    pub fn name(&self) -> &str {
        self.shared.models.get(self.index).map_or("", |model| &model.name)
    }

    /// What its engines count, also while it is not loaded.
    #[must_use]
    pub fn metrics(&self) -> EngineMetrics {
        self.shared.models.get(self.index).map(|model| model.metrics.clone()).unwrap_or_default()
    }

    /// What its backend can hold, once it has been loaded.
    #[must_use]
    pub fn limits(&self) -> Option<BackendLimits> {
        self.shared.models.get(self.index)?.limits.get().copied()
    }

    /// Whether it can be used at once.
    #[must_use]
    pub fn state(&self) -> ModelState {
        self.shared.ledger().state(self.index)
    }

    /// A lease, if it is loaded now.
    #[must_use]
    pub fn loaded(&self) -> Option<Lease> {
        let engine = self.shared.ledger().lease(self.index)?;
        Some(Lease::new(engine, self.index, Arc::clone(&self.shared)))
    }

    /// A lease. Where the model is not loaded, it is loaded first, and others
    /// that nobody uses are unloaded for it; that goes on where the caller does
    /// not wait for it any more. Cancel safe.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] after [`PoolConfig::max_wait`],
    /// [`AcquireError::Failed`] if it cannot be loaded, and
    /// [`AcquireError::ShutDown`].
    pub async fn acquire(&self) -> Result<Lease, AcquireError> {
        if let Some(lease) = self.loaded() {
            return Ok(lease);
        }
        let begin = Instant::now();
        let deadline = begin + self.shared.config.max_wait;
        let mut turn = Turn::take(&self.shared, self.index, deadline);
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            let answer = turn.ask();
            match answer {
                Answer::Leased(engine) => return Ok(Lease::new(engine, self.index, Arc::clone(&self.shared))),
                Answer::Load(victims) => {
                    work::load(&self.shared, self.index, victims);
                    continue;
                }
                Answer::Failed(failure) => {
                    return Err(AcquireError::Failed { name: self.name().to_owned(), failure });
                }
                Answer::ShutDown => return Err(AcquireError::ShutDown),
                Answer::Wait => {}
            }
            if timeout_at(deadline, changed).await.is_err() {
                self.shared.metrics.busy.inc();
                let why = self.shared.ledger().waits_for(self.index, begin.elapsed());
                return Err(AcquireError::Busy { name: self.name().to_owned(), why });
            }
        }
    }

    /// Loads it on this thread, where blocking must be fine, and into memory that
    /// is free: for the time before anything is served.
    ///
    /// # Errors
    /// What kept it from being loaded.
    pub fn preload(&self) -> Result<Lease, Arc<LoadFailure>> {
        if let Some(lease) = self.loaded() {
            return Ok(lease);
        }
        if !self.shared.ledger().claim_free(self.index) {
            return Err(Arc::new(LoadFailure::NoRoom));
        }
        work::load_here(&self.shared, self.index);
        match self.loaded() {
            Some(lease) => Ok(lease),
            None => {
                let failure = self.shared.ledger().failure(self.index);
                Err(failure.unwrap_or_else(|| Arc::new(LoadFailure::ShutDown)))
            }
        }
    }
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger<Engine>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn label(&self, index: Index) -> ModelLabel {
        ModelLabel { model: self.models.get(index).map(|model| model.name.to_string()).unwrap_or_default() }
    }

    /// Has everybody who waits look again.
    fn tell(&self) {
        {
            let ledger = self.ledger();
            self.metrics.bytes.set(metrics::gauge(ledger.held()));
            self.metrics.waiting.set(i64::try_from(ledger.waiting()).unwrap_or(i64::MAX));
        }
        self.changed.notify_waiters();
        self.idle.notify_one();
    }

    fn release(&self, index: Index) {
        self.ledger().release(index, Instant::now());
        self.tell();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Nobody may watch a pool that is gone.
        self.idle.notify_one();
    }
}

/// A caller's turn, given up when it is dropped.
struct Turn {
    place: Place,
    shared: Arc<Shared>,
}

impl Turn {
    fn take(shared: &Arc<Shared>, index: Index, until: Instant) -> Self {
        let place = shared.ledger().queue(index, until);
        shared.metrics.waiting.inc();
        Self { place, shared: Arc::clone(shared) }
    }

    fn ask(&mut self) -> Answer<Engine> {
        self.shared.ledger().ask(&mut self.place, Instant::now())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.shared.ledger().leave(&self.place);
        // Someone else may be the first now, or a model idle.
        self.shared.tell();
    }
}

#[cfg(test)]
mod tests;
