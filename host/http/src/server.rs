//! The server: where its connections come from, how they are let in, and the drain.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::HeaderValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;
use tracing::Level;

use crate::clients::Clients;
use crate::config::HttpConfig;
use crate::connection::{self, Clientele, Ends};
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

/// Where connections come from.
#[derive(Debug)]
enum Source {
    Listener { listener: TcpListener, local: SocketAddr },
    Given(mpsc::Receiver<UnixStream>),
}

/// A server with a source of connections, not yet accepting any.
#[derive(Debug)]
pub struct Server {
    source: Source,
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
        Ok(Self::new(Source::Listener { listener, local }, config))
    }

    /// Serves connections that it is given by another server, which stands in front and
    /// has bounded their clients; the number of connections is not bounded here. Where
    /// nobody is left to give any, it goes on until it is told to end.
    #[must_use]
    pub fn behind(connections: mpsc::Receiver<UnixStream>, config: HttpConfig) -> Self {
        Self::new(Source::Given(connections), config)
    }

    fn new(source: Source, config: HttpConfig) -> Self {
        Self {
            source,
            config,
            metrics: HttpMetrics::default(),
            readiness: Readiness::new(Phase::Ready),
            log: Level::INFO,
        }
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

    /// The address really bound, if it has a listener.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.source {
            Source::Listener { local, .. } => Some(*local),
            Source::Given(_) => None,
        }
    }

    /// Serves until `signal` says otherwise and the drain is over.
    ///
    /// Dropping the future closes the listener and lets open connections go
    /// on; use the signal instead.
    pub async fn serve<H: Handler>(self, handler: H, signal: ShutdownSignal) -> DrainReport {
        let local = self.local_addr().and_then(|local| HeaderValue::from_str(&local.to_string()).ok());
        let local = local.unwrap_or_else(|| HeaderValue::from_static("localhost"));
        let clientele = match &self.source {
            Source::Listener { .. } => Clientele::Anybody,
            Source::Given(_) => Clientele::Server,
        };
        let accepting = Accepting {
            builder: Arc::new(connection::builder(&self.config, clientele)),
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
        accepting.run(self.source, signal).await
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
    async fn run(self, mut source: Source, signal: ShutdownSignal) -> DrainReport {
        tokio::select! {
            () = self.accept(&mut source) => {}
            () = signal.drain.cancelled() => {}
        }
        self.shared.readiness.set(Phase::Draining);
        tokio::select! {
            () = self.accept(&mut source) => {}
            () = tokio::time::sleep(self.shared.config.lame_duck) => {}
            () = signal.cut.cancelled() => {}
        }
        drop(source);
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
    async fn accept(&self, source: &mut Source) {
        loop {
            match source {
                Source::Listener { listener, .. } => match listener.accept().await {
                    Ok((stream, peer)) => self.admit(stream, peer),
                    Err(error) if is_about_one_connection(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept connections; trying again");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Source::Given(connections) => match connections.recv().await {
                    Some(stream) => self.open(stream, "the server in front", ()),
                    None => std::future::pending().await,
                },
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
        connection::prepare(&stream, peer);
        self.open(stream, peer, slot);
    }

    /// Serves a connection, with the place that it takes.
    fn open<S>(&self, stream: S, peer: impl Display + Send + 'static, place: impl Send + 'static)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let open = OpenConnection::new(self.shared.metrics.clone());
        let (shared, builder, ends) = (self.shared.clone(), self.builder.clone(), self.ends.clone());
        self.tasks.spawn(async move {
            connection::serve(shared, builder, stream, peer, ends).await;
            drop((open, place));
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
