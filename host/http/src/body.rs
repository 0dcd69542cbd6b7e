//! Bodies in both directions: the request's, bounded in size and silence, and
//! the response's, of any kind.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

use crate::error::HostError;

/// Any error of a response body. It breaks the response off.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How many bytes of the rest of a refused body are read, so that the client sees the
/// answer and not a reset connection.
const LINGER_BYTES: u64 = 64 * 1024 * 1024;
/// How many of them are taken in a second: nobody wants them, and to take them in as fast as
/// a client can send keeps a core from everybody else.
const LINGER_RATE: u64 = 8 * 1024 * 1024;
/// After so many bytes there is a pause.
const LINGER_BURST: u64 = 256 * 1024;
/// As long as a burst takes at that pace.
const LINGER_PAUSE: Duration = Duration::from_millis(LINGER_BURST * 1000 / LINGER_RATE);
/// For how long they are read: as long as all of them take at that pace, and half as long
/// again, since bursts take their time as well as pauses.
const LINGER_TIME: Duration = Duration::from_millis(LINGER_BYTES * 1500 / LINGER_RATE);

/// Why a request body could not be read to its end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than the listener allows.
    #[error("the request body is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The client stopped sending.
    #[error("the client sent nothing of its request body for {} s", silence.as_secs_f32())]
    TimedOut {
        /// How long it was waited for.
        silence: Duration,
    },
    /// The client sent too little in the time it had: the body would hold what
    /// its request holds for as long as the client likes.
    #[error("the request body came more slowly than {rate} bytes a second, after {} s of waiting", waited.as_secs())]
    TooSlow {
        /// The least that is to come in a second, in bytes.
        rate: u64,
        /// How long the client was waited for in all.
        waited: Duration,
    },
    /// The connection broke or the framing was wrong.
    #[error("the request body broke off: {0}")]
    Broken(Arc<hyper::Error>),
}

impl BodyError {
    /// The answer to a request whose body failed so.
    pub(crate) fn to_host_error(&self) -> HostError {
        let (status, code) = match self {
            Self::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
            Self::TimedOut { .. } => (StatusCode::REQUEST_TIMEOUT, "body_timeout"),
            Self::TooSlow { .. } => (StatusCode::REQUEST_TIMEOUT, "body_too_slow"),
            Self::Broken(_) => (StatusCode::BAD_REQUEST, "body_broken"),
        };
        HostError::new(status, code, format!("{self}.")).closing()
    }
}

/// The first failure of a request's body, seen by the service as soon as it
/// happens, whoever reads the body.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    error: OnceLock<BodyError>,
    notify: Notify,
}

impl Fault {
    fn report(&self, error: &BodyError) {
        if self.error.set(error.clone()).is_ok() {
            self.notify.notify_one();
        }
    }

    pub(crate) fn get(&self) -> Option<&BodyError> {
        self.error.get()
    }

    /// Resolves when the body has failed.
    pub(crate) async fn wait(&self) -> &BodyError {
        loop {
            if let Some(error) = self.error.get() {
                return error;
            }
            self.notify.notified().await;
        }
    }
}

/// What a request body may cost, and what is known of its framing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    pub(crate) bytes: u64,
    pub(crate) silence: Duration,
    /// Bytes that the client is to send for each second that it is waited for
    /// beyond `silence`. Zero: as slowly as it likes.
    pub(crate) rate: u64,
    pub(crate) linger: Linger,
}

/// Whether the rest of a body that nobody reads is taken from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linger {
    /// HTTP/1: unread bytes would reset the connection, and hide its end.
    Read,
    /// HTTP/2, or the client waits for `100 Continue` before it sends any.
    Leave,
}

/// A request's body, within the listener's limits.
///
/// Reading past the limit, or waiting too long, ends the whole request: the
/// host answers 413 or 408 and drops the handler's future, unless the response
/// has begun; then only the read fails.
#[derive(Debug)]
pub struct RequestBody {
    inner: Option<Incoming>,
    read: u64,
    limits: BodyLimits,
    patience: Option<Pin<Box<Sleep>>>,
    /// Since when the client is waited for, while it is.
    waits_since: Option<Instant>,
    /// How long it was waited for before that.
    waited: Duration,
    fault: Arc<Fault>,
    counted: Counter,
}

impl RequestBody {
    pub(crate) fn new(inner: Incoming, limits: BodyLimits, fault: Arc<Fault>, counted: Counter) -> Self {
        Self {
            inner: Some(inner),
            read: 0,
            limits,
            patience: None,
            waits_since: None,
            waited: Duration::ZERO,
            fault,
            counted,
        }
    }

    fn fail(&mut self, error: BodyError) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.fault.report(&error);
        self.linger();
        Poll::Ready(Some(Err(error)))
    }

    /// Gives the rest of the body to a task that throws it away.
    fn linger(&mut self) {
        let Some(mut rest) = self.inner.take() else { return };
        if rest.is_end_stream() || self.limits.linger == Linger::Leave {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let drain = async {
                let mut left = LINGER_BYTES;
                let mut burst = 0;
                while let Some(Ok(frame)) = rest.frame().await {
                    let len = frame.data_ref().map_or(0, |data| data.len() as u64);
                    let Some(rest) = left.checked_sub(len) else { return };
                    left = rest;
                    burst += len;
                    if burst >= LINGER_BURST {
                        burst = 0;
                        tokio::time::sleep(LINGER_PAUSE).await;
                    }
                }
            };
            // Past the time the body is dropped and the connection with it.
            let _late = tokio::time::timeout(LINGER_TIME, drain).await;
        });
    }

    /// The client must go on sending: no frame for too long is a failure, and so are
    /// too few bytes in all the time that it was waited for. What the reader takes
    /// its time for is not the client's.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        let BodyLimits { silence, rate, .. } = self.limits;
        let now = Instant::now();
        let since = *self.waits_since.get_or_insert(now);
        let left = self.allowance().map_or(Duration::MAX, |all| all.saturating_sub(self.waited));
        let until = since + silence.min(left);
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if patience.deadline() != until {
            patience.as_mut().reset(until);
        }
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(match left < silence {
            true => BodyError::TooSlow { rate, waited: self.waited + since.elapsed() },
            false => BodyError::TimedOut { silence },
        })
    }

    /// How long the client may be waited for in all, by what it has sent. None: as
    /// long as it likes.
    fn allowance(&self) -> Option<Duration> {
        let BodyLimits { silence, rate, .. } = self.limits;
        let earned = Duration::from_secs(self.read.checked_div(rate)?);
        Some(silence.saturating_add(earned))
    }

    /// Something has come.
    fn stop_waiting(&mut self) {
        if let Some(since) = self.waits_since.take() {
            self.waited += since.elapsed();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let Some(inner) = this.inner.as_mut() else { return Poll::Ready(None) };
        let polled = Pin::new(inner).poll_frame(cx);
        if polled.is_ready() {
            this.stop_waiting();
        }
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                let len = frame.data_ref().map_or(0, |data| data.len() as u64);
                this.read = this.read.saturating_add(len);
                this.counted.inc_by(len);
                if this.read > this.limits.bytes {
                    return this.fail(BodyError::TooLarge { limit: this.limits.bytes });
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => this.fail(BodyError::Broken(Arc::new(error))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                let error = ready!(this.poll_patience(cx));
                this.fail(error)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.linger();
    }
}

/// A response's body: any [`Body`] of bytes, boxed.
#[derive(Debug)]
pub struct ResponseBody(UnsyncBoxBody<Bytes, BoxError>);

impl ResponseBody {
    /// A body that streams.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(UnsyncBoxBody::new(body.map_err(Into::into)))
    }

    /// A body that is known as a whole.
    pub fn full(data: impl Into<Bytes>) -> Self {
        Self::new(Full::new(data.into()))
    }

    /// No body.
    pub fn empty() -> Self {
        Self::new(Empty::new())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
