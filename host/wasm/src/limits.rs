//! What one request may use, and the defaults in force.

use std::fmt;
use std::time::Duration;

/// KV cells that the sessions of one instance may hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvLimit {
    /// One part in so many of the cells of the largest granted model, and at
    /// least one sequence of full length: whoever may use a model may use its
    /// context. A model that was never loaded counts from when it is opened.
    Share(u32),
    /// So many cells.
    Cells(u64),
}

impl fmt::Display for KvLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(part) => write!(f, "1/{part}, or one full context"),
            Self::Cells(cells) => write!(f, "{cells}"),
        }
    }
}

/// What one instance, and so one request, may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all linear memories together.
    pub memory_bytes: u64,
    /// CPU time of the guest, the host's work inside its calls included.
    pub cpu: Duration,
    /// From the request's arrival to the last byte of the response.
    pub wall: Duration,
    /// Open sessions.
    pub sessions: u32,
    /// KV cells over all sessions.
    pub kv_cells: KvLimit,
    /// Elements of all tables together.
    pub table_elements: u32,
    /// Core instances of the component.
    pub core_instances: u32,
    /// Handles and streams that are open at a time, on either side.
    pub handles: u32,
    /// Bytes that the guest may hand to the host in one call.
    pub call_bytes: u32,
    /// Bytes of compiled grammars that handles and sessions hold together.
    pub grammar_bytes: u64,
    /// Bytes of tensors that the host holds.
    pub tensor_bytes: u64,
    /// Bytes of the headers of one message.
    pub header_bytes: u32,
    /// Bytes of standard output, standard error and log records that are logged.
    pub log_bytes: u32,
    /// Bytes of keys and values read from and written to key-value stores.
    pub key_value_bytes: u64,
    /// Requests to others that are in progress at a time, until their responses
    /// are read or dropped.
    pub outbound_connections: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            cpu: Duration::from_secs(1),
            wall: Duration::from_secs(120),
            sessions: 16,
            kv_cells: KvLimit::Share(8),
            table_elements: 100_000,
            core_instances: 64,
            handles: 1024,
            call_bytes: 16 << 20,
            grammar_bytes: 64 << 20,
            tensor_bytes: 32 << 20,
            header_bytes: 128 << 10,
            log_bytes: 64 << 10,
            key_value_bytes: 64 << 20,
            outbound_connections: 16,
        }
    }
}

impl Limits {
    /// The defaults for a component that renders chat templates.
    #[must_use]
    pub fn renderer() -> Self {
        Self { cpu: Duration::from_millis(250), wall: Duration::from_secs(5), sessions: 0, ..Self::default() }
    }

    /// The defaults for a call of a tool. What it answers goes through whoever called, so
    /// it is no more than a model could read.
    #[must_use]
    pub fn tool() -> Self {
        Self { wall: Duration::from_secs(30), call_bytes: 1 << 20, ..Self::default() }
    }
}

/// A limit, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitEntry {
    /// Its name, as the field of [`Limits`] is called.
    pub name: &'static str,
    /// Its value with the unit.
    pub value: String,
    /// What it bounds.
    pub meaning: &'static str,
}

impl Limits {
    /// All limits, in the order of the fields.
    pub fn entries(&self) -> impl Iterator<Item = LimitEntry> + use<> {
        let entry = |name, value, meaning| LimitEntry { name, value, meaning };
        [
            entry("memory_bytes", bytes(self.memory_bytes), "all linear memories of a request together"),
            entry("cpu", seconds(self.cpu), "CPU time of a request"),
            entry("wall", seconds(self.wall), "wall time of a request, its response included"),
            entry("sessions", self.sessions.to_string(), "open sessions of a request"),
            entry("kv_cells", self.kv_cells.to_string(), "KV cells over all sessions of a request"),
            entry("table_elements", self.table_elements.to_string(), "elements of all tables together"),
            entry("core_instances", self.core_instances.to_string(), "core instances of the component"),
            entry("handles", self.handles.to_string(), "handles and streams open at a time"),
            entry("call_bytes", bytes(self.call_bytes.into()), "handed to the host in one call"),
            entry("grammar_bytes", bytes(self.grammar_bytes), "compiled grammars that handles and sessions hold"),
            entry("tensor_bytes", bytes(self.tensor_bytes), "tensors of wasi:nn that the host holds"),
            entry("header_bytes", bytes(self.header_bytes.into()), "headers of one message"),
            entry("log_bytes", bytes(self.log_bytes.into()), "printed and log records that are logged"),
            entry("key_value_bytes", bytes(self.key_value_bytes), "read from and written to key-value stores"),
            entry("outbound_connections", self.outbound_connections.to_string(), "requests to others at a time"),
        ]
        .into_iter()
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for LimitEntry { name, value, meaning } in self.entries() {
            writeln!(f, "{name:<20} {value:<22} {meaning}")?;
        }
        Ok(())
    }
}

pub(crate) fn bytes(n: u64) -> String {
    match n {
        _ if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        _ if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        _ => format!("{n} bytes"),
    }
}

pub(crate) fn seconds(d: Duration) -> String {
    if d.subsec_nanos() == 0 { format!("{} s", d.as_secs()) } else { format!("{} ms", d.as_millis()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_listed_with_its_unit() {
        let text = Limits::default().to_string();
        assert_eq!(text.lines().count(), 15);
        assert!(
            text.contains("64 MiB") && text.contains("1/8, or one full context") && text.contains("120 s"),
            "{text}"
        );
        assert_eq!(seconds(Limits::renderer().cpu), "250 ms");
        assert_eq!(bytes(1025), "1025 bytes");
    }
}
