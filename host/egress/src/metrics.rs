//! What is counted, for Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::error::{Denial, EgressError, Prohibited};

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Outcome {
    outcome: &'static str,
}

/// Why one was denied.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reason {
    reason: &'static str,
}

/// The counters of a gate. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct EgressMetrics {
    pub(crate) requests: Family<Outcome, Counter>,
    pub(crate) denied: Family<Reason, Counter>,
    pub(crate) connections: Gauge,
    pub(crate) connections_opened: Counter,
    pub(crate) connections_reused: Counter,
    pub(crate) sent: Counter,
    pub(crate) received: Counter,
}

impl EgressMetrics {
    /// Adds the counters to a registry, as `egress_…` under its prefix.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry.sub_registry_with_prefix("egress");
        r.register("requests", "Outgoing requests, by the head of the response or the error", self.requests.clone());
        r.register("denied", "Outgoing requests that were not let out, by reason", self.denied.clone());
        r.register("connections", "Connections to servers outside, idle ones included", self.connections.clone());
        r.register("connections_opened", "Connections made", self.connections_opened.clone());
        r.register(
            "connections_reused",
            "Requests that were sent on a connection that was there",
            self.connections_reused.clone(),
        );
        r.register_with_unit("request_body", "Bytes of request bodies sent", Unit::Bytes, self.sent.clone());
        r.register_with_unit("response_body", "Bytes of response bodies received", Unit::Bytes, self.received.clone());
    }

    /// Counts how a request came to a response's head, or did not.
    pub(crate) fn ended(&self, error: Option<&EgressError>) {
        let outcome = error.map_or("response", EgressError::code);
        self.requests.get_or_create(&Outcome { outcome }).inc();
        let reason = match error {
            Some(EgressError::Denied(denial)) => match denial {
                Denial::Host { .. } => "host",
                Denial::Component { .. } | Denial::Application | Denial::NotOutside => "application",
                Denial::Header { .. } => "header",
            },
            Some(EgressError::AddressProhibited { why, .. }) => match why {
                Prohibited::Special(kind) => kind.name(),
                Prohibited::ByOperator => "operator",
            },
            Some(EgressError::ConnectionLimitReached) => "limit",
            _ => return,
        };
        self.denied.get_or_create(&Reason { reason }).inc();
    }
}
