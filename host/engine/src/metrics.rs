//! What the engine counts. Lock-free: the engine thread adds, scrapes read.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Seconds = Counter<f64, AtomicU64>;

/// The counters of one engine. Cloning shares them.
#[derive(Debug, Clone)]
pub struct EngineMetrics {
    /// Batches decoded.
    pub decode_steps: Counter,
    /// Time spent in the backend's decode, in seconds.
    pub decode_seconds: Seconds,
    /// Sequences in each batch.
    pub batch_sequences: Histogram,
    /// The most sequences one batch ever had.
    pub batch_sequences_max: Gauge,
    /// Prompt tokens computed.
    pub prompt_tokens: Counter,
    /// Prompt tokens whose state the prefix cache had.
    pub cached_tokens: Counter,
    /// Tokens generated.
    pub generated_tokens: Counter,
    /// Tokens of inputs that were embedded.
    pub embedded_tokens: Counter,
    /// Tokens that a grammar left no choice about, and that were not sampled.
    pub forced_tokens: Counter,
    /// Tokens that were guessed ahead.
    pub drafted_tokens: Counter,
    /// Those of them that came true.
    pub accepted_tokens: Counter,
    /// Sessions open now.
    pub sessions: Gauge,
    /// Runs that generate now.
    pub running: Gauge,
    /// Prefills and runs that wait for a sequence or KV cells now.
    pub queued: Gauge,
    /// KV cells that sessions hold now, each counted once.
    pub kv_cells_used: Gauge,
    /// KV cells that only the prefix cache holds now.
    pub kv_cells_cached: Gauge,
    /// Sessions moved out of their KV cells into RAM.
    pub parked: Counter,
    /// Bytes of RAM that parked and saved sessions hold now.
    pub snapshot_bytes: Gauge,
    /// KV cells there are.
    pub kv_cells: Gauge,
    /// Runs and prefills cancelled before their end.
    pub cancelled: Counter,
    /// Runs ended because another needed their KV cells.
    pub preempted: Counter,
    /// Batches that were decoded between the drop of a session and the release
    /// of its sequence.
    pub release_steps: Histogram,
}

impl Default for EngineMetrics {
    fn default() -> Self {
        Self {
            decode_steps: Counter::default(),
            decode_seconds: Seconds::default(),
            batch_sequences: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
            batch_sequences_max: Gauge::default(),
            prompt_tokens: Counter::default(),
            cached_tokens: Counter::default(),
            generated_tokens: Counter::default(),
            embedded_tokens: Counter::default(),
            forced_tokens: Counter::default(),
            drafted_tokens: Counter::default(),
            accepted_tokens: Counter::default(),
            sessions: Gauge::default(),
            running: Gauge::default(),
            queued: Gauge::default(),
            kv_cells_used: Gauge::default(),
            kv_cells_cached: Gauge::default(),
            parked: Counter::default(),
            snapshot_bytes: Gauge::default(),
            kv_cells: Gauge::default(),
            cancelled: Counter::default(),
            preempted: Counter::default(),
            release_steps: Histogram::new([0.0, 1.0, 2.0, 4.0, 8.0]),
        }
    }
}

impl EngineMetrics {
    /// The engine is gone and holds nothing; what was counted stays.
    pub(crate) fn rest(&self) {
        let now = [&self.sessions, &self.running, &self.queued, &self.kv_cells, &self.kv_cells_used];
        for gauge in now.into_iter().chain([&self.kv_cells_cached, &self.snapshot_bytes]) {
            gauge.set(0);
        }
    }

    /// Adds the counters to a registry, as `engine_…` under its prefix.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry.sub_registry_with_prefix("engine");
        r.register("decode_steps", "Batches decoded", self.decode_steps.clone());
        r.register("decode_seconds", "Time in the backend's decode", self.decode_seconds.clone());
        r.register("batch_sequences", "Sequences in each batch", self.batch_sequences.clone());
        r.register("batch_sequences_max", "Most sequences one batch ever had", self.batch_sequences_max.clone());
        r.register("prompt_tokens", "Prompt tokens computed", self.prompt_tokens.clone());
        r.register("cached_tokens", "Prompt tokens found in the prefix cache", self.cached_tokens.clone());
        r.register("generated_tokens", "Tokens generated", self.generated_tokens.clone());
        r.register("embedded_tokens", "Tokens of inputs that were embedded", self.embedded_tokens.clone());
        r.register("forced_tokens", "Tokens that a grammar left no choice about", self.forced_tokens.clone());
        r.register("drafted_tokens", "Tokens guessed ahead", self.drafted_tokens.clone());
        r.register("accepted_tokens", "Tokens guessed ahead that came true", self.accepted_tokens.clone());
        r.register("sessions", "Sessions open now", self.sessions.clone());
        r.register("running", "Runs that generate now", self.running.clone());
        r.register("queued", "Work waiting for a sequence or KV cells now", self.queued.clone());
        r.register("kv_cells_used", "KV cells that sessions hold now", self.kv_cells_used.clone());
        r.register("kv_cells_cached", "KV cells that only the prefix cache holds now", self.kv_cells_cached.clone());
        r.register("parked", "Sessions moved out of their KV cells into RAM", self.parked.clone());
        r.register("snapshot_bytes", "RAM of parked and saved sessions", self.snapshot_bytes.clone());
        r.register("kv_cells", "KV cells there are", self.kv_cells.clone());
        r.register("cancelled", "Runs and prefills cancelled before their end", self.cancelled.clone());
        r.register("preempted", "Runs ended because another needed their KV cells", self.preempted.clone());
        r.register(
            "release_steps",
            "Batches decoded between the drop of a session and the release of its sequence",
            self.release_steps.clone(),
        );
    }
}
