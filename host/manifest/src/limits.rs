//! `limits` under `tool.nala`: what a component may use.

use std::time::Duration;

use crate::quantity;
use crate::reader::{Node, Table};

/// Declares [`Limits`]: for each limit the field, its type, the key in the
/// manifest and how its value is read.
macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident: $kind:ty = $read:ident($key:literal),)*) => {
        /// `[….tool.nala.limits]`. None means the host's default.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Limits {
            $($(#[$doc])* pub $field: Option<$kind>,)*
        }

        impl Limits {
            /// These, and where they set none, those of `defaults`.
            #[must_use]
            pub fn or(self, defaults: Self) -> Self {
                Self { $($field: self.$field.or(defaults.$field),)* }
            }

            fn of(table: &Table<'_>) -> Self {
                Self { $($field: table.get($key).and_then($read),)* }
            }
        }
    };
}

limits! {
    /// Memory of one instance, in bytes (`memory = "64MiB"`).
    memory_bytes: u64 = size("memory"),
    /// Time of one request on the CPU (`cpu = "1s"`).
    cpu: Duration = time("cpu"),
    /// Time that passes in one request (`wall = "120s"`).
    wall: Duration = time("wall"),
    /// Sessions of one instance that are open at a time (`sessions = 16`).
    sessions: u32 = count_or_none("sessions"),
    /// KV cells of one instance's sessions together (`kv_cells = 8192`).
    kv_cells: u64 = large_count("kv_cells"),
    /// Instances that run at a time (`instances = 64`).
    instances: u32 = count("instances"),
    /// Requests that wait for an instance (`queued = 128`).
    queued: u32 = count_or_none("queued"),
    /// Generations that run at a time (`generations = 4`).
    generations: u32 = count("generations"),
    /// Generations that wait to run (`queued_generations = 16`).
    queued_generations: u32 = count_or_none("queued_generations"),
    /// Handles and streams of one instance that are open at a time
    /// (`handles = 1024`).
    handles: u32 = count("handles"),
    /// What an instance may hand to the host in one call, in bytes
    /// (`call_bytes = "16MiB"`).
    call_bytes: u32 = small_size("call_bytes"),
    /// Compiled grammars that an instance holds, in bytes
    /// (`grammar_bytes = "64MiB"`).
    grammar_bytes: u64 = size("grammar_bytes"),
    /// Tensors of `wasi:nn` that the host holds for an instance, in bytes
    /// (`tensor_bytes = "32MiB"`).
    tensor_bytes: u64 = size("tensor_bytes"),
    /// Headers of one message, in bytes (`header_bytes = "128KiB"`).
    header_bytes: u32 = small_size("header_bytes"),
    /// What of one instance's standard output and error is logged, in bytes
    /// (`log_bytes = "64KiB"`).
    log_bytes: u32 = small_size("log_bytes"),
    /// What the host keeps for all instances together, in bytes
    /// (`host_bytes = "64MiB"`).
    host_bytes: u64 = size("host_bytes"),
    /// Tokens that are evaluated in a minute (`tokens_in_per_minute = 100000`).
    tokens_in_per_minute: u64 = large_count("tokens_in_per_minute"),
    /// Tokens that are generated in a minute (`tokens_out_per_minute = 20000`).
    tokens_out_per_minute: u64 = large_count("tokens_out_per_minute"),
    /// Sessions that are kept from one request to another
    /// (`saved_sessions = 32`).
    saved_sessions: u32 = count_or_none("saved_sessions"),
    /// Connections of one instance to others that are open at a time
    /// (`outbound_connections = 16`).
    outbound_connections: u32 = count_or_none("outbound_connections"),
    /// Keys and values that a request reads from stores and writes to them, in bytes
    /// (`key_value_bytes = "16MiB"`).
    key_value_bytes: u64 = size("key_value_bytes"),
    /// Elements of one instance's tables together (`table_elements = 100000`).
    table_elements: u32 = count("table_elements"),
    /// Core instances that one instance is made of (`core_instances = 64`).
    core_instances: u32 = count("core_instances"),
}

/// Reads `limits`.
pub(crate) fn read(node: Option<Node<'_>>) -> Limits {
    let Some(table) = node.and_then(|node| node.table("`limits`")) else { return Limits::default() };
    let limits = Limits::of(&table);
    table.close();
    limits
}

fn size(node: Node<'_>) -> Option<u64> {
    let help = "write for example \"64MiB\"; zero is not allowed";
    if !node.is_text() {
        return node.fail(format!("`{}` must be a size with its unit, as a string", node.key), help);
    }
    let text = node.text()?;
    quantity::bytes(text).or_else(|| node.fail(format!("`{text}` is no size"), help))
}

fn small_size(node: Node<'_>) -> Option<u32> {
    let bytes = size(node)?;
    let help = "write a smaller one, such as \"64MiB\"";
    u32::try_from(bytes).ok().or_else(|| node.fail(format!("`{}` must be below 4GiB", node.key), help))
}

fn time(node: Node<'_>) -> Option<Duration> {
    let help = "write for example \"500ms\", \"2s\" or \"1m\"; zero is not allowed";
    if !node.is_text() {
        return node.fail(format!("`{}` must be a duration with its unit, as a string", node.key), help);
    }
    let text = node.text()?;
    quantity::duration(text).or_else(|| node.fail(format!("`{text}` is no duration"), help))
}

fn count(node: Node<'_>) -> Option<u32> {
    at_least(node, 1)
}

/// A limit that may be zero: the component has none of it.
fn count_or_none(node: Node<'_>) -> Option<u32> {
    at_least(node, 0)
}

fn large_count(node: Node<'_>) -> Option<u64> {
    at_least(node, 1)
}

fn at_least<N: TryFrom<i64>>(node: Node<'_>, least: i64) -> Option<N> {
    let number = node.integer()?;
    N::try_from(number).ok().filter(|_| number >= least).or_else(|| {
        let help = format!("write an integer from {least}, or remove it for the default");
        node.fail(format!("`{}` cannot be {number}", node.key), help)
    })
}
