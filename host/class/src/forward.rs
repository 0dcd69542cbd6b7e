//! One request, answered by another process.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;

use crate::process::{Away, Door, Process};

/// What belongs to a connection and not to what is sent over it (RFC 9110, section
/// 7.6.1). What `Connection` names besides stays: it decides nothing here, and a client
/// must not be able to have another header taken away.
const OF_A_CONNECTION: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers of an answer: as many as there can be in what a component may send.
const MAX_HEADERS: usize = 16 << 10;
/// Bytes of them.
const MAX_HEADER_BYTES: u32 = 1 << 20;

/// Why a request has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It was not sent: asking again does nothing twice.
    #[error(transparent)]
    Away(#[from] Away),
    /// It was sent, and the process ended, or what it sent is no answer.
    #[error("the process gave no answer")]
    Broken,
}

/// What moves bytes between a connection and the futures that wait for it.
type Carrier = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of an answer, with the connection that it comes over: when it is dropped,
/// the connection is closed, and the other process sees that its client has left.
pub struct Forwarded {
    body: Incoming,
    carrier: Option<Carrier>,
}

impl Process {
    /// Has a request answered, over a connection of its own.
    ///
    /// It is sent as it came, in the version of HTTP in which it came, so that what
    /// differs between versions (trailers, for one) is as without another process.
    /// Dropping the future or the body of the answer closes the connection at once.
    ///
    /// # Errors
    /// See [`NoAnswer`].
    pub async fn forward<B>(&self, door: Door, mut request: Request<B>) -> Result<Response<Forwarded>, NoAnswer>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let stream = self.connect(door).await?;
        without_connection(request.headers_mut());
        // A request of HTTP/2 that names its host by a header only has no other form.
        let answered = match request.version() == Version::HTTP_2 && request.uri().authority().is_some() {
            true => by_http2(stream, request).await,
            false => by_http1(stream, request).await,
        };
        let (mut response, carrier) = answered.map_err(|error| {
            tracing::debug!(%error, "a class's process gave no answer");
            NoAnswer::Broken
        })?;
        without_connection(response.headers_mut());
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(|body| Forwarded { body, carrier }))
    }
}

fn without_connection(headers: &mut HeaderMap) {
    for name in &OF_A_CONNECTION {
        headers.remove(name);
    }
}

type Answered = Result<(Response<Incoming>, Option<Carrier>), hyper::Error>;

async fn by_http1<B>(stream: UnixStream, mut request: Request<B>) -> Answered
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    *request.version_mut() = Version::HTTP_11;
    let mut builder = http1::Builder::new();
    builder.max_headers(MAX_HEADERS);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    carried(sender.send_request(request), async move { drop(connection.await) }).await
}

async fn by_http2<B>(stream: UnixStream, request: Request<B>) -> Answered
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.max_header_list_size(MAX_HEADER_BYTES);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    carried(sender.send_request(request), async move { drop(connection.await) }).await
}

/// Waits for an answer while its connection is kept going.
async fn carried(
    answer: impl Future<Output = Result<Response<Incoming>, hyper::Error>>,
    connection: impl Future<Output = ()> + Send + 'static,
) -> Answered {
    let mut answer = std::pin::pin!(answer);
    let mut carrier: Option<Carrier> = Some(Box::pin(connection));
    let response = std::future::poll_fn(|cx| {
        carry(&mut carrier, cx);
        answer.as_mut().poll(cx)
    })
    .await?;
    Ok((response, carrier))
}

fn carry(carrier: &mut Option<Carrier>, cx: &mut Context<'_>) {
    if carrier.as_mut().is_some_and(|carrier| carrier.as_mut().poll(cx).is_ready()) {
        *carrier = None;
    }
}

impl Body for Forwarded {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        carry(&mut self.carrier, cx);
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl std::fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarded").field("body", &self.body).finish_non_exhaustive()
    }
}
