//! What a pool counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Which model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ModelLabel {
    /// Its name.
    pub model: String,
}

/// The counters of a pool. Cloning shares them.
#[derive(Debug, Clone)]
pub struct PoolMetrics {
    /// 1 for a model that is loaded now, else 0.
    pub loaded: Family<ModelLabel, Gauge>,
    /// Leases of a model that are held now.
    pub leases: Family<ModelLabel, Gauge>,
    /// Times that a model was loaded.
    pub loads: Family<ModelLabel, Counter>,
    /// Times that a model was unloaded.
    pub unloads: Family<ModelLabel, Counter>,
    /// Times that loading a model failed.
    pub load_failures: Family<ModelLabel, Counter>,
    /// From the start of a load to an engine that serves, in seconds.
    pub load_seconds: Histogram,
    /// Callers that wait for a model now.
    pub waiting: Gauge,
    /// Callers that were told that a model is busy.
    pub busy: Counter,
    /// Bytes that are set aside for models that are loaded, loading or still
    /// unloading.
    pub bytes: Gauge,
    /// Bytes that there are for models.
    pub budget_bytes: Gauge,
}

impl PoolMetrics {
    /// Counters in which each model is named from the start.
    pub(super) fn new<'a>(budget: u64, models: impl Iterator<Item = &'a str>) -> Self {
        let this = Self {
            loaded: Family::default(),
            leases: Family::default(),
            loads: Family::default(),
            unloads: Family::default(),
            load_failures: Family::default(),
            load_seconds: Histogram::new(exponential_buckets(0.05, 2.0, 13)),
            waiting: Gauge::default(),
            busy: Counter::default(),
            bytes: Gauge::default(),
            budget_bytes: Gauge::default(),
        };
        this.budget_bytes.set(gauge(budget));
        for model in models {
            let label = ModelLabel { model: model.to_owned() };
            drop(this.loaded.get_or_create(&label));
            drop(this.leases.get_or_create(&label));
            drop(this.loads.get_or_create(&label));
            drop(this.unloads.get_or_create(&label));
            drop(this.load_failures.get_or_create(&label));
        }
        this
    }

    /// Adds the counters to a registry, as `models_…` under its prefix.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry.sub_registry_with_prefix("models");
        r.register("loaded", "Whether the model is loaded now", self.loaded.clone());
        r.register("leases", "Uses of the model that go on now", self.leases.clone());
        r.register("loads", "Times that the model was loaded", self.loads.clone());
        r.register("unloads", "Times that the model was unloaded", self.unloads.clone());
        r.register("load_failures", "Times that loading the model failed", self.load_failures.clone());
        r.register("load_seconds", "From the start of a load to an engine that serves", self.load_seconds.clone());
        r.register("waiting", "Callers that wait for a model now", self.waiting.clone());
        r.register("busy", "Callers that were told that a model is busy", self.busy.clone());
        r.register("bytes", "Memory set aside for models", self.bytes.clone());
        r.register("budget_bytes", "Memory that there is for models", self.budget_bytes.clone());
    }
}

/// Bytes as a gauge holds them.
pub(super) fn gauge(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
