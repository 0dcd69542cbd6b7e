//! Limits that a manifest sets, as those who keep them know them.

use nala_manifest::Limits as Set;
use nala_tenant::{Limits as Sums, Rate, Stock};
use nala_wasm::{KvLimit, Limits, SharedLimits};

/// What one request may use: what is set, over `defaults`.
pub(crate) fn of_request(defaults: Limits, set: &Set) -> Limits {
    Limits {
        memory_bytes: set.memory_bytes.unwrap_or(defaults.memory_bytes),
        cpu: set.cpu.unwrap_or(defaults.cpu),
        wall: set.wall.unwrap_or(defaults.wall),
        sessions: set.sessions.unwrap_or(defaults.sessions),
        kv_cells: set.kv_cells.map_or(defaults.kv_cells, KvLimit::Cells),
        table_elements: set.table_elements.unwrap_or(defaults.table_elements),
        core_instances: set.core_instances.unwrap_or(defaults.core_instances),
        handles: set.handles.unwrap_or(defaults.handles),
        call_bytes: set.call_bytes.unwrap_or(defaults.call_bytes),
        grammar_bytes: set.grammar_bytes.unwrap_or(defaults.grammar_bytes),
        tensor_bytes: set.tensor_bytes.unwrap_or(defaults.tensor_bytes),
        header_bytes: set.header_bytes.unwrap_or(defaults.header_bytes),
        log_bytes: set.log_bytes.unwrap_or(defaults.log_bytes),
        outbound_connections: set.outbound_connections.unwrap_or(defaults.outbound_connections),
        key_value_bytes: set.key_value_bytes.unwrap_or(defaults.key_value_bytes),
    }
}

/// What all requests of a component may use together.
pub(super) fn of_component(set: &Set) -> SharedLimits {
    let mut sums = Sums::unlimited();
    let stocks = [
        // A request has one instance, and waits for it in the queue of requests.
        (Stock::Requests, set.instances),
        (Stock::Queued, set.queued),
        (Stock::Generations, set.generations),
        (Stock::QueuedGenerations, set.queued_generations),
        (Stock::SavedSessions, set.saved_sessions),
    ];
    for (stock, value) in stocks {
        if let Some(value) = value {
            sums.set(stock, value.into());
        }
    }
    if let Some(bytes) = set.host_bytes {
        sums.set(Stock::HostBytes, bytes);
    }
    for (rate, value) in [(Rate::TokensIn, set.tokens_in_per_minute), (Rate::TokensOut, set.tokens_out_per_minute)] {
        if let Some(value) = value {
            sums.set(rate, value);
        }
    }
    SharedLimits::new(sums)
}
