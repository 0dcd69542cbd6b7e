//! A server on a free port, and a client that sends raw bytes.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use nala_http::{BoxError, DrainReport, Handler, HttpConfig, HttpMetrics, Phase, Readiness};
use nala_http::{ResponseBody, Server, Shutdown};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Long enough for a loaded machine; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Running {
    pub(crate) addr: SocketAddr,
    pub(crate) shutdown: Shutdown,
    pub(crate) metrics: HttpMetrics,
    pub(crate) readiness: Readiness,
    pub(crate) task: JoinHandle<DrainReport>,
}

pub(crate) async fn start(config: HttpConfig, handler: impl Handler) -> Running {
    let metrics = HttpMetrics::default();
    let readiness = Readiness::new(Phase::Ready);
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), config)
        .await
        .unwrap()
        .with_metrics(metrics.clone())
        .with_readiness(readiness.clone());
    let addr = server.local_addr().unwrap();
    let shutdown = Shutdown::new();
    let task = tokio::spawn(server.serve(handler, shutdown.signal()));
    Running { addr, shutdown, metrics, readiness, task }
}

/// The metrics as text, to read single values from.
pub(crate) fn metrics_text(metrics: &HttpMetrics) -> String {
    let mut registry = prometheus_client::registry::Registry::with_prefix("nala");
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text
}

pub(crate) fn text(body: &'static str) -> Response<ResponseBody> {
    Response::new(ResponseBody::full(body))
}

/// A body that yields what is sent into the channel.
pub(crate) fn channel() -> (mpsc::UnboundedSender<&'static str>, ResponseBody) {
    let (sender, receiver) = mpsc::unbounded_channel::<&'static str>();
    let stream = futures::stream::unfold(receiver, |mut receiver| async move {
        let text = receiver.recv().await?;
        let frame = Frame::data(Bytes::from_static(text.as_bytes()));
        Some((Ok::<_, BoxError>(frame), receiver))
    });
    (sender, ResponseBody::new(StreamBody::new(stream)))
}

pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        Self(TcpStream::connect(addr).await.unwrap())
    }

    /// From another address of this machine.
    pub(crate) async fn connect_from(from: std::net::IpAddr, addr: SocketAddr) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from, 0)).unwrap();
        Self(socket.connect(addr).await.unwrap())
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn get(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n")).await;
    }

    /// Reads until what was read contains `needle`.
    pub(crate) async fn until(&mut self, needle: &str) -> String {
        let mut all = Vec::new();
        let read = async {
            loop {
                let mut buf = [0_u8; 1024];
                let n = self.0.read(&mut buf).await.unwrap();
                all.extend_from_slice(&buf[..n]);
                if String::from_utf8_lossy(&all).contains(needle) {
                    return;
                }
                assert!(n > 0, "closed before {needle:?}: {}", String::from_utf8_lossy(&all));
            }
        };
        let done = tokio::time::timeout(PATIENCE, read).await;
        let all = String::from_utf8_lossy(&all).into_owned();
        assert!(done.is_ok(), "no {needle:?} in {all:?}");
        all
    }

    /// Reads to the end of the connection, however it comes.
    pub(crate) async fn rest(&mut self) -> String {
        let mut all = Vec::new();
        let read = self.0.read_to_end(&mut all);
        let done = tokio::time::timeout(PATIENCE, read).await;
        let all = String::from_utf8_lossy(&all).into_owned();
        assert!(done.is_ok(), "still open after {all:?}");
        all
    }
}
