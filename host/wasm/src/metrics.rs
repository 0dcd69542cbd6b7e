//! What the runtime counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    /// `response`, or [`crate::HandleError::kind`].
    pub outcome: &'static str,
}

/// The counters of a runtime. Cloning shares them.
#[derive(Debug, Clone)]
pub struct RuntimeMetrics {
    /// Requests by how they ended.
    pub requests: Family<OutcomeLabel, Counter>,
    /// Instances made, those that render prompts among them.
    pub instances_created: Counter,
    /// Instances alive now.
    pub instances: Gauge,
    /// Making a store and an instance, in seconds.
    pub instantiate_seconds: Histogram,
    /// Prompts rendered.
    pub renders: Counter,
    /// Components that came out of the compile cache.
    pub compile_cache_hits: Counter,
    /// Components that had to be compiled.
    pub compile_cache_misses: Counter,
}

impl Default for RuntimeMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            instances_created: Counter::default(),
            instances: Gauge::default(),
            instantiate_seconds: Histogram::new(exponential_buckets(4e-6, 2.0, 14)),
            renders: Counter::default(),
            compile_cache_hits: Counter::default(),
            compile_cache_misses: Counter::default(),
        }
    }
}

impl RuntimeMetrics {
    /// Adds the counters to a registry, as `wasm_…` under its prefix.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry.sub_registry_with_prefix("wasm");
        r.register("requests", "Requests by how they ended", self.requests.clone());
        r.register("instances_created", "Instances made", self.instances_created.clone());
        r.register("instances", "Instances alive now", self.instances.clone());
        r.register("instantiate_seconds", "Making a store and an instance", self.instantiate_seconds.clone());
        r.register("renders", "Prompts rendered", self.renders.clone());
        r.register(
            "compile_cache_hits",
            "Components that came out of the compile cache",
            self.compile_cache_hits.clone(),
        );
        r.register("compile_cache_misses", "Components that had to be compiled", self.compile_cache_misses.clone());
    }

    /// Counts an instance, as alive until what is returned is dropped.
    pub(crate) fn instance(&self) -> Alive {
        self.instances_created.inc();
        self.instances.inc();
        Alive(self.instances.clone())
    }

    pub(crate) fn ended(&self, outcome: &'static str) {
        self.requests.get_or_create(&OutcomeLabel { outcome }).inc();
    }
}

/// An instance that is alive.
#[derive(Debug)]
pub(crate) struct Alive(Gauge);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.dec();
    }
}
