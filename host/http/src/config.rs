//! The limits of a listener, with their defaults in one place.

use std::time::Duration;

/// What a listener allows. [`HttpConfig::default`] is what the host runs with
/// when nothing else is said; `nala-host doctor` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Largest request body, in bytes. More is answered with 413.
    pub max_body_bytes: u64,
    /// Largest sum of header names and values of a request, in bytes. More is
    /// answered with 431.
    pub max_header_bytes: usize,
    /// Connections open at once. One more is told 503 and closed, and so is one of a
    /// client that has three quarters of them already: an IPv4 address, or a /64 of
    /// IPv6. (A proxy in front is one client.)
    pub max_connections: usize,
    /// Requests running at once on one HTTP/2 connection.
    pub max_streams: u32,
    /// From the first byte of a request (or from accepting a connection) to
    /// the end of its head. Slower connections are closed.
    pub header_timeout: Duration,
    /// Longest silence while a request body is being waited for. Longer is
    /// answered with 408.
    pub body_timeout: Duration,
    /// Bytes of a request body that are to come for each second that its client is
    /// waited for, after the first `body_timeout`. Slower ones are answered with 408:
    /// a body that comes drop by drop holds an instance all the while. Zero: any pace.
    pub body_rate: u64,
    /// How long a connection without a request is kept.
    pub idle_timeout: Duration,
    /// How long a client may leave a write without any progress before it is
    /// cut off. Over HTTP/2 this counts for each response: one that could go on
    /// and is not taken is reset.
    pub write_timeout: Duration,
    /// How long a drain waits for running responses before it cuts them.
    pub drain_deadline: Duration,
    /// How long a drain goes on accepting connections while the probes already
    /// say 503, so that load balancers can turn away first. Zero closes the
    /// listener at once.
    pub lame_duck: Duration,
}

impl HttpConfig {
    /// Connections that one client may have open.
    pub(crate) fn connections_of_one(&self) -> usize {
        self.max_connections - self.max_connections / 4
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            max_body_bytes: 10 * 1024 * 1024,
            max_header_bytes: 32 * 1024,
            max_connections: 1024,
            max_streams: 128,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            body_rate: 500,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            drain_deadline: Duration::from_secs(30),
            lame_duck: Duration::ZERO,
        }
    }
}
