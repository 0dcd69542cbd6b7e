//! The one table of what a tenant can be limited in. The operator's file, its
//! documentation, errors and `doctor` all read it.

use std::fmt;

use enum_map::{Enum, EnumMap};

/// The value of a limit that does not limit.
pub const UNLIMITED: u64 = u64::MAX;

/// What is held for a while and then given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enum)]
pub enum Stock {
    /// Requests that are being answered.
    Requests,
    /// Requests that wait until one of those is done.
    Queued,
    /// Bytes of linear memories.
    Memory,
    /// Bytes that the host holds for the tenant: tensors, bodies, prompts.
    HostBytes,
    /// Instances of components.
    Instances,
    /// Handles of instances.
    Handles,
    /// Runs of a model.
    Generations,
    /// Runs that wait for their turn.
    QueuedGenerations,
    /// KV cells.
    KvCells,
    /// Sessions that were saved by name.
    SavedSessions,
    /// Bytes of saved sessions.
    SnapshotBytes,
    /// Connections that components opened.
    OutboundConnections,
    /// Bytes of keys and values that are kept.
    KeyValueBytes,
    /// Components that are deployed.
    Components,
}

/// What comes again with every minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enum)]
pub enum Rate {
    /// Requests.
    Requests,
    /// Tokens of prompts that were computed.
    TokensIn,
    /// Tokens that were generated.
    TokensOut,
    /// CPU time of components, in microseconds.
    Cpu,
    /// Bytes that components log.
    LogBytes,
}

/// How large one thing may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enum)]
pub enum Ceiling {
    /// Time to compile a component, in microseconds.
    CompileTime,
    /// Bytes of a component's file.
    ComponentBytes,
}

/// Anything that a tenant can be limited in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enum)]
pub enum Limit {
    /// What is held at a time.
    Stock(Stock),
    /// What is used in a minute.
    Rate(Rate),
    /// The size of one thing.
    Ceiling(Ceiling),
}

impl From<Stock> for Limit {
    fn from(stock: Stock) -> Self {
        Self::Stock(stock)
    }
}

impl From<Rate> for Limit {
    fn from(rate: Rate) -> Self {
        Self::Rate(rate)
    }
}

impl From<Ceiling> for Limit {
    fn from(ceiling: Ceiling) -> Self {
        Self::Ceiling(ceiling)
    }
}

/// What a limit counts, and so how its value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things: a plain number.
    Count,
    /// Bytes: a number with a unit, such as `64MiB`.
    Bytes,
    /// Microseconds: a number with a unit, such as `60s`.
    Time,
}

impl Unit {
    /// A value as it is written in the operator's file.
    #[must_use]
    pub fn show(self, value: u64) -> String {
        const BYTES: &[(u64, &str)] = &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        const TIMES: &[(u64, &str)] = &[(60_000_000, "m"), (1_000_000, "s"), (1_000, "ms")];
        let (units, rest) = match self {
            _ if value == UNLIMITED => return "unlimited".to_owned(),
            _ if value == 0 => return "0".to_owned(),
            Self::Count => return value.to_string(),
            Self::Bytes => (BYTES, "B"),
            Self::Time => (TIMES, "us"),
        };
        match units.iter().find(|(factor, _)| value.is_multiple_of(*factor)) {
            Some((factor, unit)) => format!("{}{unit}", value / factor),
            None => format!("{value}{rest}"),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Count => "number",
            Self::Bytes => "bytes",
            Self::Time => "time",
        })
    }
}

/// Over what a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The sum over all that a tenant runs.
    Tenant,
    /// Each component by itself.
    Component,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tenant => "tenant",
            Self::Component => "component",
        })
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The key in `[tenant.NAME.limits]`.
    pub name: &'static str,
    /// How the value is written.
    pub unit: Unit,
    /// The value of a tenant for which nothing else is said.
    pub default: u64,
    /// Over what it is.
    pub scope: Scope,
    /// What it bounds, as half a sentence.
    pub meaning: &'static str,
}

impl Limit {
    /// All of them, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        EnumMap::<Self, ()>::default().into_iter().map(|(each, ())| each)
    }

    /// The limit with this key.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|limit| limit.row().name == name)
    }

    /// What the table says of it.
    #[must_use]
    pub const fn row(self) -> Row {
        match self {
            Self::Stock(stock) => stock.row(),
            Self::Rate(rate) => rate.row(),
            Self::Ceiling(ceiling) => ceiling.row(),
        }
    }
}

const fn row(name: &'static str, unit: Unit, default: u64, meaning: &'static str) -> Row {
    Row { name, unit, default, scope: Scope::Tenant, meaning }
}

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000;

impl Stock {
    const fn row(self) -> Row {
        use Unit::{Bytes, Count};
        match self {
            Self::Requests => row("requests", Count, 32, "requests that are answered at a time"),
            Self::Queued => row("queued", Count, 64, "requests that wait for one of those to end"),
            Self::Memory => row("memory", Bytes, 512 * MIB, "linear memories of all instances together"),
            Self::HostBytes => row("host_bytes", Bytes, 128 * MIB, "tensors, bodies and prompts that the host holds"),
            Self::Instances => row("instances", Count, 64, "instances of components at a time"),
            Self::Handles => row("handles", Count, 65_536, "handles of all instances together"),
            Self::Generations => row("generations", Count, 16, "runs of models at a time"),
            Self::QueuedGenerations => row("queued_generations", Count, 64, "runs that wait for their turn"),
            Self::KvCells => row("kv_cells", Count, 65_536, "KV cells of all sessions together"),
            Self::SavedSessions => row("saved_sessions", Count, 64, "sessions that are saved by name"),
            Self::SnapshotBytes => row("snapshot_bytes", Bytes, 256 * MIB, "what saved sessions take"),
            Self::OutboundConnections => {
                row("outbound_connections", Count, 32, "connections that components have opened at a time")
            }
            Self::KeyValueBytes => row("key_value_bytes", Bytes, 64 * MIB, "keys and values in all stores together"),
            Self::Components => row("components", Count, 100, "components that are deployed"),
        }
    }
}

impl Rate {
    const fn row(self) -> Row {
        use Unit::{Bytes, Count, Time};
        match self {
            Self::Requests => row("requests_per_minute", Count, 6_000, "requests"),
            Self::TokensIn => row("tokens_in_per_minute", Count, 100_000, "tokens of prompts that are computed"),
            Self::TokensOut => row("tokens_out_per_minute", Count, 100_000, "tokens that are generated"),
            Self::Cpu => row("cpu_per_minute", Time, 60 * SECOND, "CPU time of components"),
            Self::LogBytes => row("log_bytes_per_minute", Bytes, 4 * MIB, "what components log"),
        }
    }
}

impl Ceiling {
    const fn row(self) -> Row {
        let row = match self {
            Self::CompileTime => row("compile_time", Unit::Time, 60 * SECOND, "time to compile a component"),
            Self::ComponentBytes => row("component_bytes", Unit::Bytes, 64 * MIB, "the file of a component"),
        };
        Row { scope: Scope::Component, ..row }
    }
}

/// A value for each limit.
#[derive(Clone, PartialEq, Eq)]
pub struct Limits(EnumMap<Limit, u64>);

impl Default for Limits {
    /// The defaults of the table.
    fn default() -> Self {
        Self(EnumMap::from_fn(|limit: Limit| limit.row().default))
    }
}

impl Limits {
    /// No limit at all, for the one owner of a machine.
    #[must_use]
    pub fn unlimited() -> Self {
        Self(EnumMap::from_fn(|_| UNLIMITED))
    }

    /// The value of a limit, in bytes, microseconds or things.
    #[must_use]
    pub fn get(&self, limit: impl Into<Limit>) -> u64 {
        self.0[limit.into()]
    }

    /// Sets a value. 0 allows nothing, [`UNLIMITED`] everything.
    pub fn set(&mut self, limit: impl Into<Limit>, value: u64) {
        self.0[limit.into()] = value;
    }

    /// Sets a value, for writing limits in one expression.
    #[must_use]
    pub fn with(mut self, limit: impl Into<Limit>, value: u64) -> Self {
        self.set(limit, value);
        self
    }

    /// All limits and their values, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> + '_ {
        self.0.iter().map(|(limit, value)| (limit, *value))
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(limit, value)| (limit.row().name, limit.row().unit.show(value))))
            .finish()
    }
}

/// As `doctor` prints them: name, value, scope and meaning, a line each.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (limit, value) in self.iter() {
            let Row { name, unit, scope, meaning, default: _ } = limit.row();
            writeln!(f, "{name:<22} {:<10} {scope:<10} {meaning}", unit.show(value))?;
        }
        Ok(())
    }
}

/// The table for a document: the name, the default and the meaning of each
/// limit, in Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut text = "| key | default | written as | over | bounds |\n|---|---|---|---|---|\n".to_owned();
    for Row { name, unit, default, scope, meaning } in Limit::all().map(Limit::row) {
        text.push_str(&format!("| `{name}` | `{}` | {unit} | {scope} | {meaning} |\n", unit.show(default)));
    }
    text
}

/// A limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limit `{}` of {} is reached: {}{}", .limit.row().name, .limit.row().unit.show(*.value), .limit.row().meaning, advice(*.retry_after))]
pub struct Exceeded {
    /// Which one.
    pub limit: Limit,
    /// Its value, in the limit's unit.
    pub value: u64,
    /// When it is worth to try again, for `Retry-After`. None where waiting
    /// does not help, because more was asked for than the limit ever allows.
    pub retry_after: Option<std::time::Duration>,
}

fn advice(retry_after: Option<std::time::Duration>) -> String {
    match retry_after {
        // Whole seconds, as `Retry-After` has them.
        Some(after) => format!("; try again in {} s", after.as_secs() + u64::from(after.subsec_nanos() > 0)),
        None => "; this asks for more than it ever allows".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_keys() {
        let names: BTreeSet<&str> = Limit::all().map(|limit| limit.row().name).collect();
        assert_eq!(names.len(), Limit::all().count());
        assert_eq!(names.len(), 21);
        for limit in Limit::all() {
            assert_eq!(Limit::by_name(limit.row().name), Some(limit));
            assert!(limit.row().name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        }
        assert_eq!(Limit::by_name("request"), None);
    }

    #[test]
    fn values_are_shown_as_they_are_written() {
        assert_eq!(Unit::Bytes.show(512 << 20), "512MiB");
        assert_eq!(Unit::Bytes.show(1000), "1000B");
        assert_eq!(Unit::Time.show(60_000_000), "1m");
        assert_eq!(Unit::Time.show(1_500_000), "1500ms");
        assert_eq!(Unit::Count.show(7), "7");
        assert_eq!(Unit::Bytes.show(UNLIMITED), "unlimited");
        assert_eq!(Unit::Bytes.show(0), "0");
    }

    #[test]
    fn what_is_exceeded_names_the_key_the_value_and_the_way_out() {
        let retry_after = Some(std::time::Duration::from_millis(1_200));
        let error = Exceeded { limit: Stock::Memory.into(), value: 64 << 20, retry_after };
        assert_eq!(
            error.to_string(),
            "the limit `memory` of 64MiB is reached: linear memories of all instances together; try again in 2 s"
        );
        let never = Exceeded { retry_after: None, ..error };
        assert!(never.to_string().ends_with("more than it ever allows"), "{never}");
    }

    #[test]
    fn the_document_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tenants.md");
        let document = std::fs::read_to_string(path).unwrap();
        assert!(document.contains(&markdown()), "put this into docs/tenants.md:\n{}", markdown());
    }

    #[test]
    fn every_limit_is_printed() {
        let text = Limits::default().with(Rate::Requests, 9).to_string();
        assert_eq!(text.lines().count(), Limit::all().count());
        assert!(text.contains("requests_per_minute    9          tenant     requests\n"), "{text}");
    }
}
