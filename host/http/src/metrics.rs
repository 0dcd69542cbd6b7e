//! What the server counts, for Prometheus.

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The counters of a listener. Clones share them.
#[derive(Clone, Debug)]
pub struct HttpMetrics {
    pub(crate) requests: Family<Class, Counter>,
    pub(crate) in_flight: Gauge,
    pub(crate) duration: Histogram,
    pub(crate) first_byte: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) connections_refused: Counter,
    pub(crate) request_bytes: Counter,
    pub(crate) response_bytes: Counter,
    pub(crate) disconnects: Counter,
    pub(crate) panics: Counter,
}

/// The label of a request count: the class of its status, `2xx` for example.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Class {
    class: &'static str,
}

impl Class {
    pub(crate) fn of(status: StatusCode) -> Self {
        let class = match status.as_u16() {
            100..=199 => "1xx",
            200..=299 => "2xx",
            300..=399 => "3xx",
            400..=499 => "4xx",
            _ => "5xx",
        };
        Self { class }
    }
}

impl Default for HttpMetrics {
    fn default() -> Self {
        // 1 ms to 262 s: a page of text may take minutes on a small machine.
        let seconds = || exponential_buckets(0.001, 4.0, 10);
        Self {
            requests: Family::default(),
            in_flight: Gauge::default(),
            duration: Histogram::new(seconds()),
            first_byte: Histogram::new(seconds()),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            request_bytes: Counter::default(),
            response_bytes: Counter::default(),
            disconnects: Counter::default(),
            panics: Counter::default(),
        }
    }
}

impl HttpMetrics {
    /// Adds the counters to a registry, as `http_…` under its prefix.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("http");
        registry.register("requests", "Requests answered, by class of status", self.requests.clone());
        registry.register("requests_in_flight", "Requests whose response has not ended", self.in_flight.clone());
        registry.register_with_unit(
            "request_duration",
            "From the head of a request to the end of its response",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register_with_unit(
            "first_byte",
            "From the head of a request to the first byte of its response's body",
            Unit::Seconds,
            self.first_byte.clone(),
        );
        registry.register("connections", "Connections open", self.connections.clone());
        registry.register(
            "connections_refused",
            "Connections closed because too many were open",
            self.connections_refused.clone(),
        );
        registry.register_with_unit(
            "request_body",
            "Bytes of request bodies read",
            Unit::Bytes,
            self.request_bytes.clone(),
        );
        registry.register_with_unit(
            "response_body",
            "Bytes of response bodies sent",
            Unit::Bytes,
            self.response_bytes.clone(),
        );
        registry.register(
            "disconnects",
            "Requests whose client left before the end of the response",
            self.disconnects.clone(),
        );
        registry.register("handler_panics", "Handlers that panicked", self.panics.clone());
    }
}
