//! The wasmtime engine that all components share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nala_tenant::Tenant;
use thiserror::Error;
use tokio::sync::Semaphore;
use wasmtime::{Cache, Config, Enabled, Engine, PoolingAllocationConfig};

use crate::cache::CompileCache;
use crate::metrics::RuntimeMetrics;
use crate::relay::Relay;
use crate::telemetry::Readings;
use crate::threads::GuestThreads;
use crate::tick::Ticker;
use crate::turns::Turns;

/// Settings of a [`Runtime`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// Where compiled code is kept.
    pub cache: CompileCache,
    /// How often running guests look up: the grain of CPU limits and of turns
    /// between guests.
    pub tick: Duration,
    /// The most instances at a time.
    pub instances: u32,
    /// The most memory that any component may be given, in bytes.
    pub max_memory_bytes: usize,
    /// How long a request waits for one of the instances before it is refused.
    pub admission_wait: Duration,
    /// The most long texts that are tokenised at a time, over all guests. More
    /// of them wait their turn.
    pub tokenisers: usize,
    /// Threads that run guests which compute for long. All but one may be taken by
    /// guests that compute without end.
    pub guest_threads: usize,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            cache: CompileCache::Off,
            tick: Duration::from_millis(10),
            instances: 500,
            max_memory_bytes: 1 << 30,
            admission_wait: Duration::from_millis(500),
            tokenisers: std::thread::available_parallelism().map_or(1, usize::from),
            guest_threads: std::thread::available_parallelism().map_or(2, usize::from).max(2),
        }
    }
}

/// Why there is no runtime.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The folder for compiled code cannot be used.
    #[error(
        "compiled code cannot be kept in {}: {reason}; name another folder with --cache-dir, or use --no-cache",
        path.display()
    )]
    Cache {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// wasmtime refused its configuration on this machine.
    #[error("the WebAssembly engine cannot be set up: {0}")]
    Engine(String),
    /// The operating system gave no thread.
    #[error("no thread for guests or their clock: {0}")]
    Thread(#[from] std::io::Error),
}

/// Compiles and runs components. A cheap handle: clones share the engine.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) config: Arc<RuntimeConfig>,
    pub(crate) metrics: RuntimeMetrics,
    pub(crate) room: Arc<Semaphore>,
    /// The same for calls of tools: whoever makes one has a place already, and is not to
    /// wait for another one of the same kind.
    pub(crate) tool_room: Arc<Semaphore>,
    /// Turns at computing, and at work on long texts.
    pub(crate) tokenisers: Arc<Turns>,
    /// Where guests run.
    pub(crate) threads: Arc<GuestThreads>,
    /// For whom a component works that is loaded for no other tenant.
    pub(crate) owner: Arc<Tenant>,
    pub(crate) relay: Arc<Relay>,
    /// What the machine does, for those who may know.
    pub(crate) readings: Arc<Readings>,
    cache: Option<Cache>,
    pub(crate) ticker: Arc<Ticker>,
}

impl Runtime {
    /// Sets the engine up.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(config: RuntimeConfig) -> Result<Self, StartError> {
        let cache = config.cache.open().map_err(|(path, reason)| StartError::Cache { path, reason })?;
        let engine = engine(&config, cache.as_ref()).map_err(|e| StartError::Engine(format!("{e:#}")))?;
        let ticker = Arc::new(Ticker::start(&engine, config.tick)?);
        let room = Arc::new(Semaphore::new(config.instances as usize));
        let tool_room = Arc::new(Semaphore::new(config.instances as usize));
        let threads = Arc::new(GuestThreads::start(config.guest_threads)?);
        let (turns, guest) = (config.guest_threads.saturating_sub(1), threads.entrance());
        let tokenisers = Arc::new(Turns::new(turns, config.tokenisers, guest));
        let metrics = RuntimeMetrics::default();
        let owner = Tenant::sole();
        let relay = Relay::new().ok_or_else(|| StartError::Engine("the system has no random numbers".into()))?;
        Ok(Self {
            engine,
            config: Arc::new(config),
            metrics,
            room,
            tool_room,
            tokenisers,
            threads,
            owner,
            relay: Arc::new(relay),
            readings: Arc::default(),
            cache,
            ticker,
        })
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> &RuntimeConfig {
        &self.config
    }

    /// What the runtime counts.
    #[must_use]
    pub fn metrics(&self) -> &RuntimeMetrics {
        &self.metrics
    }

    /// How many components came out of the cache, and how many were compiled.
    #[must_use]
    pub fn cache_use(&self) -> (usize, usize) {
        self.cache.as_ref().map_or((0, 0), |cache| (cache.cache_hits(), cache.cache_misses()))
    }
}

/// Opens the map of this process's pages for wasmtime, which needs it to see which were
/// written. To be called before the process gives up the right to; without it, or on a
/// kernel before 6.7, instances take longer.
pub fn open_pagemap() {
    let mut pool = PoolingAllocationConfig::new();
    pool.pagemap_scan(Enabled::Yes)
        .total_component_instances(1)
        .total_core_instances(1)
        .total_memories(1)
        .total_tables(1)
        .total_stacks(1)
        .max_memory_size(1 << 16);
    // It is kept for the process when the first engine asks for it.
    if let Err(error) = Engine::new(Config::new().memory_reservation(1 << 16).allocation_strategy(pool)) {
        tracing::debug!(error = format!("{error:#}"), "pages that were written cannot be told apart");
    }
}

fn engine(config: &RuntimeConfig, cache: Option<&Cache>) -> wasmtime::Result<Engine> {
    let mut common = Config::new();
    common.epoch_interruption(true).memory_init_cow(true).cache(cache.cloned());
    common.max_wasm_stack(DEEPEST);
    let pooled = |pool| Engine::new(common.clone().allocation_strategy(pool));
    let mut scanned = pool(config);
    scanned.pagemap_scan(Enabled::Yes).linear_memory_keep_resident(KEPT).table_keep_resident(KEPT);
    // Linux knows since 6.7 which pages were written.
    match pooled(scanned).or_else(|_| pooled(pool(config))) {
        Ok(engine) => Ok(engine),
        // Some aarch64 kernels have 39 bits of addresses, too few for the pool.
        Err(error) => {
            tracing::warn!(
                error = format!("{error:#}"),
                "no room for an instance pool: instances are made on demand, which is slower"
            );
            Engine::new(&common)
        }
    }
}

/// Bytes of a stack that a guest may use: twice what wasmtime gives. Interpreters of other
/// languages stop their own recursion only beyond that.
const DEEPEST: usize = 1 << 20;

/// Bytes of a memory or a table that is free which stay resident: the pages of them that
/// were written are written over. Else they are given back to the system, which costs a
/// page fault each the next time, and interrupts all cores to forget them.
const KEPT: usize = 256 << 10;

/// Instances are laid out ahead of time. A component made with wasm32-wasip2
/// has three core instances and two tables, so those pools are larger.
fn pool(config: &RuntimeConfig) -> PoolingAllocationConfig {
    // As many again for the renderers that handlers call, and for their tools.
    let n = config.instances.saturating_mul(3);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(n)
        .total_core_instances(n.saturating_mul(8))
        .total_memories(n.saturating_mul(2))
        .total_tables(n.saturating_mul(4))
        .total_stacks(n.saturating_mul(2))
        .max_core_instances_per_component(64)
        // One memory and two tables for each part of a composed component, and a memory
        // for what denies a part something.
        .max_memories_per_component(16)
        .max_tables_per_component(32)
        .table_elements(100_000)
        .max_component_instance_size(4 << 20)
        .max_core_instance_size(1 << 20)
        .max_memory_size(config.max_memory_bytes);
    pool
}
