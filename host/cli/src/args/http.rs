//! What the listener allows.

use std::time::Duration;

use clap::Args;
use nala_http::HttpConfig;

use super::parsers::within;

/// No system has handles for more connections.
const MAX_CONNECTIONS: usize = 1_000_000;

/// 1 TiB: no request is larger.
const MAX_BODY_BYTES: u64 = 1 << 40;

/// A day: nobody waits longer for a host to end.
const MAX_SECONDS: u64 = 24 * 60 * 60;

/// What the listener allows.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpArgs {
    /// Largest request body, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = HttpConfig::default().max_body_bytes,
        env = "NALA_MAX_BODY_BYTES",
        value_parser = within(1..=MAX_BODY_BYTES),
        allow_negative_numbers = true
    )]
    pub(crate) max_body_bytes: u64,

    /// Connections open at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = HttpConfig::default().max_connections,
        env = "NALA_MAX_CONNECTIONS",
        value_parser = within(1..=MAX_CONNECTIONS),
        allow_negative_numbers = true
    )]
    pub(crate) max_connections: usize,

    /// After SIGTERM, seconds that running responses may still take
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = HttpConfig::default().drain_deadline.as_secs(),
        env = "NALA_DRAIN_DEADLINE",
        value_parser = within(0..=MAX_SECONDS),
        allow_negative_numbers = true
    )]
    pub(crate) drain_deadline: u64,

    /// After SIGTERM, seconds to go on accepting while the probes say 503, so
    /// that load balancers turn away first
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = HttpConfig::default().lame_duck.as_secs(),
        env = "NALA_LAME_DUCK",
        value_parser = within(0..=MAX_SECONDS),
        allow_negative_numbers = true
    )]
    pub(crate) lame_duck: u64,
}

impl HttpArgs {
    pub(crate) fn config(&self) -> HttpConfig {
        HttpConfig {
            max_body_bytes: self.max_body_bytes,
            max_connections: self.max_connections,
            drain_deadline: Duration::from_secs(self.drain_deadline),
            lame_duck: Duration::from_secs(self.lame_duck),
            ..HttpConfig::default()
        }
    }
}
