//! What an operator decides about outgoing HTTP.

use std::time::Duration;

use crate::networks::Networks;
use crate::tls::TrustRoots;

/// What an operator decides about outgoing HTTP, for all components.
#[derive(Clone, Debug, Default)]
pub struct GateConfig {
    /// What is granted and refused by address.
    pub networks: Networks,
    /// Whose certificates are trusted.
    pub roots: TrustRoots,
    /// The longest times, which are those of a request that asks for none.
    pub timeouts: Timeouts,
    /// How long an exchange may take from beginning to end.
    pub whole: Whole,
    /// How many bytes heads may have.
    pub sizes: Sizes,
    /// What is kept of connections that nobody uses.
    pub idle: Idle,
}

/// How long an exchange may take from beginning to end, body included: no
/// timeout between two parts of one bounds it, since a server can send a byte
/// just before each ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole(pub Duration);

impl Default for Whole {
    fn default() -> Self {
        Self(Duration::from_secs(900))
    }
}

/// How long the parts of an exchange may take. What a request asks for counts
/// as far as it is not longer than what the operator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Up to a connection that can be used: a place, DNS, TCP and TLS.
    pub connect: Duration,
    /// From there to the head of the response. The request is sent within.
    pub first_byte: Duration,
    /// Between two parts of the response's body, while somebody waits for it.
    pub between_bytes: Duration,
}

impl Default for Timeouts {
    /// What fits a large model that is asked far away.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            between_bytes: Duration::from_secs(120),
        }
    }
}

impl Timeouts {
    /// None of them: whatever the operator has.
    pub const UNSET: Self = Self { connect: Duration::MAX, first_byte: Duration::MAX, between_bytes: Duration::MAX };

    /// The shorter of each.
    pub(crate) fn within(self, most: Self) -> Self {
        Self {
            connect: self.connect.min(most.connect),
            first_byte: self.first_byte.min(most.first_byte),
            between_bytes: self.between_bytes.min(most.between_bytes),
        }
    }
}

/// How many bytes heads may have. Bodies are not bounded here: they are
/// streamed, and who reads one bounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Names and values of a request's headers.
    pub request_headers: usize,
    /// A response's head. At least 8 KiB, which HTTP/1.1 is read by.
    pub response_headers: usize,
    /// A URL.
    pub url: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { request_headers: 64 << 10, response_headers: 64 << 10, url: 16 << 10 }
    }
}

/// What is kept of connections that nobody uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// How long one is kept.
    pub time: Duration,
    /// How old one may be when a request begins on it, so that a change in DNS
    /// is followed.
    pub age: Duration,
    /// How many are kept of a tenant.
    pub each: usize,
    /// How many are kept in all.
    pub all: usize,
}

impl Default for Idle {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), age: Duration::from_secs(300), each: 16, all: 256 }
    }
}
