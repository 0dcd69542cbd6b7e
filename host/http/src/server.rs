//! The listener: binds, accepts, and drains.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Level;

use crate::clients::Clients;
use crate::config::HttpConfig;
use crate::connection::{self, Ends};
use crate::error::{BindError, HostError};
use crate::handler::Handler;
use crate::lifecycle::{Phase, Readiness, ShutdownSignal};
use crate::metrics::HttpMetrics;
use crate::service::Shared;
use crate::stall::StreamExecutor;

/// Pause after the system could not accept, for lack of file handles mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Refused connections that are told why at the same time; more are just
/// closed.
const REFUSALS: usize = 64;

/// How long a refused connection is kept for its answer to arrive.
const REFUSAL_TIME: Duration = Duration::from_millis(500);

/// A bound listener, not yet accepting.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    local: SocketAddr,
    config: HttpConfig,
    metrics: HttpMetrics,
    readiness: Readiness,
    log: Level,
}

/// How a drain went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainReport {
    /// Connections whose responses were cut off.
    pub cut: usize,
}

impl Server {
    /// Opens a listener on `addr`; port 0 lets the system choose.
    ///
    /// # Errors
    /// [`BindError`], with what to do about it.
    pub async fn bind(addr: SocketAddr, config: HttpConfig) -> Result<Self, BindError> {
        let listener = TcpListener::bind(addr).await.map_err(|source| BindError::new(addr, source))?;
        let local = listener.local_addr().map_err(|source| BindError::new(addr, source))?;
        Ok(Self {
            listener,
            local,
            config,
            metrics: HttpMetrics::default(),
            readiness: Readiness::new(Phase::Ready),
            log: Level::INFO,
        })
    }

    /// Counts into `metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: HttpMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Says `readiness` at the health endpoint, and sets it to
    /// [`Phase::Draining`] when a drain begins.
    #[must_use]
    pub fn with_readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = readiness;
        self
    }

    /// Logs each request at `level`: info, the default, or debug for a listener
    /// that machines ask all the time.
    #[must_use]
    pub fn with_access_log(mut self, level: Level) -> Self {
        self.log = level;
        self
    }

    /// The address really bound.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `signal` says otherwise and the drain is over.
    ///
    /// Dropping the future closes the listener and lets open connections go
    /// on; use the signal instead.
    pub async fn serve<H: Handler>(self, handler: H, signal: ShutdownSignal) -> DrainReport {
        let local =
            HeaderValue::from_str(&self.local.to_string()).unwrap_or_else(|_| HeaderValue::from_static("localhost"));
        let accepting = Accepting {
            builder: Arc::new(connection::builder(&self.config)),
            // More than a semaphore can count is as good as no limit.
            slots: Arc::new(Semaphore::new(self.config.max_connections.min(Semaphore::MAX_PERMITS))),
            clients: Clients::default(),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
            tasks: TaskTracker::new(),
            ends: Ends::default(),
            shared: Arc::new(Shared {
                handler,
                config: self.config,
                metrics: self.metrics,
                readiness: self.readiness,
                log: self.log,
                local,
            }),
        };
        accepting.run(self.listener, signal).await
    }
}

struct Accepting<H> {
    shared: Arc<Shared<H>>,
    builder: Arc<hyper_util::server::conn::auto::Builder<StreamExecutor>>,
    slots: Arc<Semaphore>,
    clients: Clients,
    refusals: Arc<Semaphore>,
    tasks: TaskTracker,
    ends: Ends,
}

impl<H: Handler> Accepting<H> {
    async fn run(self, listener: TcpListener, signal: ShutdownSignal) -> DrainReport {
        tokio::select! {
            () = self.accept(&listener) => {}
            () = signal.drain.cancelled() => {}
        }
        self.shared.readiness.set(Phase::Draining);
        tokio::select! {
            () = self.accept(&listener) => {}
            () = tokio::time::sleep(self.shared.config.lame_duck) => {}
            () = signal.cut.cancelled() => {}
        }
        drop(listener);
        self.ends.graceful.cancel();
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            () = tokio::time::sleep(self.shared.config.drain_deadline) => {}
            () = signal.cut.cancelled() => {}
        }
        let cut = self.tasks.len();
        self.ends.cut.cancel();
        self.tasks.wait().await;
        DrainReport { cut }
    }

    /// Accepts for ever.
    async fn accept(&self, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        let most = self.shared.config.connections_of_one();
        let of_client = self.clients.enter(peer.ip(), most);
        let slot = of_client.and_then(|one| Some((one, self.slots.clone().try_acquire_owned().ok()?)));
        let Some(slot) = slot else {
            self.shared.metrics.connections_refused.inc();
            tracing::debug!(%peer, "too many connections; refused");
            if let Ok(refusal) = self.refusals.clone().try_acquire_owned() {
                self.tasks.spawn(async move {
                    let _late = tokio::time::timeout(REFUSAL_TIME, refuse(stream)).await;
                    drop(refusal);
                });
            }
            return;
        };
        let open = OpenConnection::new(self.shared.metrics.clone());
        let (shared, builder, ends) = (self.shared.clone(), self.builder.clone(), self.ends.clone());
        self.tasks.spawn(async move {
            connection::serve(shared, builder, stream, peer, ends).await;
            drop((open, slot));
        });
    }
}

/// Keeps the gauge of open connections, however a connection ends.
struct OpenConnection(HttpMetrics);

impl OpenConnection {
    fn new(metrics: HttpMetrics) -> Self {
        metrics.connections.inc();
        Self(metrics)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}

/// Errors that concern the connection that was being accepted and nothing else
/// (accept(2), "Error handling").
fn is_about_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Tells a client that there are too many, in HTTP/1, and reads what it sends
/// so that the answer is not lost to a reset.
async fn refuse(mut stream: TcpStream) {
    let body = HostError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too_many_connections",
        "Too many connections are open; try again shortly.",
    )
    .to_json();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    if stream.write_all(answer.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        let mut sink = [0_u8; 4096];
        while matches!(stream.read(&mut sink).await, Ok(n) if n > 0) {}
    }
}
