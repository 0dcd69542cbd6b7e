//! One accepted connection, from its first byte to its last.

use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::activity::{Activity, Verdict};
use crate::config::HttpConfig;
use crate::handler::Handler;
use crate::service::Shared;
use crate::stall::StreamExecutor;
use crate::wire::Wire;

/// Where hyper gives up on a head that does not end. Above the limit that is
/// answered with the host's envelope; hyper's own answer has no body.
const HARD_HEAD_BYTES: usize = 256 * 1024;

/// Headers of a request over HTTP/1 that another server has read: as many as hyper lets
/// that one read, which are 100, and what it adds.
const MAX_HEADERS_BEHIND: usize = 116;

/// How often a silent peer is probed: TCP after a minute, HTTP/2 by pings.
const PROBE_AFTER: Duration = Duration::from_secs(60);
const PING_EVERY: Duration = Duration::from_secs(20);

/// The two ways to end a connection from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) graceful: CancellationToken,
    pub(crate) cut: CancellationToken,
}

/// Who the clients of a server are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clientele {
    /// Anybody who reaches its listener.
    Anybody,
    /// Another server, which has looked at requests already.
    Server,
}

/// Makes hyper's builder for a server.
pub(crate) fn builder(config: &HttpConfig, clientele: Clientele) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(StreamExecutor::new(config.write_timeout));
    // Half-open connections are taken as closed: see the crate's documentation.
    if clientele == Clientele::Server {
        builder.http1().max_headers(MAX_HEADERS_BEHIND);
    }
    builder.http1().half_close(false).max_buf_size(HARD_HEAD_BYTES.max(config.max_header_bytes.saturating_mul(2)));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.max_streams)
        .max_header_list_size(u32::try_from(config.max_header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    builder
}

/// Serves `stream` until it ends, is idle or slow for too long, or is ended.
pub(crate) async fn serve<H, S>(
    shared: Arc<Shared<H>>,
    builder: Arc<auto::Builder<StreamExecutor>>,
    stream: S,
    peer: impl Display,
    ends: Ends,
) where
    H: Handler,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let activity = Activity::new();
    let wire = Wire::new(stream, activity.clone(), shared.config.write_timeout);
    let service = {
        let (shared, activity) = (shared.clone(), activity.clone());
        service_fn(move |request| shared.clone().answer(activity.clone(), request))
    };
    let mut connection = pin!(builder.serve_connection(TokioIo::new(wire), service));
    let mut ending = Ending::Open;
    loop {
        let wake = match activity.verdict(&shared.config) {
            Verdict::LookAt(when) => when,
            Verdict::SlowHead => {
                tracing::debug!(%peer, "the head of a request took too long; connection cut");
                return;
            }
            Verdict::Idle if ending == Ending::Open => {
                ending = Ending::Closing;
                connection.as_mut().graceful_shutdown();
                tokio::time::Instant::now() + shared.config.idle_timeout
            }
            // The last piece of a response may wait for a window that the peer
            // never opens, while it answers pings.
            Verdict::Idle if ending == Ending::Closing && activity.speaks_http2() => {
                tracing::debug!(%peer, "the peer does not take the end of its connection; cut");
                return;
            }
            // Its end is being sent; a peer that takes none of it is cut by the
            // wire.
            Verdict::Idle => tokio::time::Instant::now() + shared.config.idle_timeout,
        };
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%peer, error, "connection ended");
                }
                return;
            }
            () = ends.cut.cancelled() => {
                tracing::debug!(%peer, "connection cut");
                return;
            }
            () = ends.graceful.cancelled(), if ending != Ending::Draining => {
                ending = Ending::Draining;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep_until(wake) => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Open,
    Closing,
    Draining,
}

/// Tokens are small: they must not wait to be sent together. A peer that lost
/// its power must be noticed although nothing is sent to it.
pub(crate) fn prepare(stream: &TcpStream, peer: SocketAddr) {
    let keepalive = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_AFTER / 4);
    let set = stream.set_nodelay(true).and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keepalive));
    if let Err(error) = set {
        tracing::debug!(%peer, %error, "socket options could not be set");
    }
}
