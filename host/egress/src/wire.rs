//! HTTP over a connection, whatever its version.

use http::{HeaderValue, Request, Response, Version, header};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::{Read, Write};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::body::OutgoingBody;
use crate::error::EgressError;
use crate::head::Address;

/// What HTTP/2 may hold of responses that nobody reads yet: of one, and of all
/// on a connection, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// The least that hyper reads HTTP/1.1 with, in bytes.
const LEAST_BUFFER: usize = 8 << 10;

/// Ends a connection of HTTP/1.1 with what it belongs to.
#[derive(Debug)]
pub(crate) struct Ends(Option<AbortHandle>);

impl Ends {
    pub(crate) fn new(driver: AbortHandle) -> Self {
        Self(Some(driver))
    }

    /// Leaves the connection to end by itself.
    pub(crate) fn leave(&mut self) {
        self.0 = None;
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(driver) = &self.0 {
            driver.abort();
        }
    }
}

/// A connection to send requests on.
#[derive(Debug)]
pub(crate) enum Wire {
    /// One request after the other.
    One(http1::SendRequest<OutgoingBody>, Ends),
    /// As many at once as the server wants.
    Two(http2::SendRequest<OutgoingBody>),
}

/// Why there is no response.
pub(crate) enum Unanswered {
    /// The connection had ended before anything of the request was sent.
    Unsent(Request<OutgoingBody>),
    Failed(EgressError),
}

impl Wire {
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::One(sender, _) => sender.is_closed(),
            Self::Two(sender) => sender.is_closed(),
        }
    }

    /// Sends a request and waits for the response's head.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<OutgoingBody>,
        address: &Address,
        head: usize,
    ) -> Result<Response<Incoming>, Unanswered> {
        let sent = match self {
            Self::One(sender, _) => {
                *request.uri_mut() = address.path.clone();
                *request.version_mut() = Version::HTTP_11;
                request.headers_mut().insert(header::HOST, HeaderValue::clone(&address.host));
                sender.try_send_request(request).await
            }
            Self::Two(sender) => {
                *request.uri_mut() = address.whole.clone();
                *request.version_mut() = Version::HTTP_2;
                request.headers_mut().remove(header::HOST);
                sender.try_send_request(request).await
            }
        };
        sent.map_err(|mut error: TrySendError<_>| match error.take_message() {
            Some(request) => Unanswered::Unsent(request),
            None => Unanswered::Failed(EgressError::of_hyper(error.error(), head)),
        })
    }

    /// Waits until a connection of HTTP/1.1 can take another request. Fails if
    /// it never will, or not by then.
    pub(crate) async fn free(&mut self, by: Instant) -> bool {
        let Self::One(sender, ends) = self else { return true };
        match tokio::time::timeout_at(by, sender.ready()).await {
            Ok(Ok(())) => true,
            Ok(Err(_)) => {
                // It is closing by itself; what was read of a body stays.
                ends.leave();
                false
            }
            Err(_) => false,
        }
    }
}

/// A connection that nobody drives yet.
pub(crate) type One<T> = (http1::SendRequest<OutgoingBody>, http1::Connection<T, OutgoingBody>);
pub(crate) type Two<T> = (http2::SendRequest<OutgoingBody>, http2::Connection<T, OutgoingBody, TokioExecutor>);

/// Begins HTTP/1.1.
pub(crate) async fn http1<T: Read + Write + Unpin>(io: T, head: usize) -> Result<One<T>, EgressError> {
    http1::Builder::new()
        .max_header_size(head)
        .max_buf_size(head.max(LEAST_BUFFER))
        .handshake(io)
        .await
        .map_err(|error| EgressError::of_hyper(&error, head))
}

/// Begins HTTP/2.
pub(crate) async fn http2<T>(io: T, head: usize) -> Result<Two<T>, EgressError>
where
    T: Read + Write + Send + Unpin + 'static,
{
    http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
        .handshake(io)
        .await
        .map_err(|error| EgressError::of_hyper(&error, head))
}
