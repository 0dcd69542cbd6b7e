//! Bodies on their way: counted, and given up when they take too long.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use prometheus_client::metrics::counter::Counter;
use tokio::time::{Instant, Sleep};

use crate::error::EgressError;
use crate::head::{check_trailers, clean_fields};

/// Whatever error a guest's body ends with.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a request, held to the length that its head says.
pub(crate) struct OutgoingBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    /// What is still to come, if the guest said how long the body is.
    left: Option<u64>,
    said: Option<u64>,
    deadline: Pin<Box<Sleep>>,
    sent: Counter,
    /// The header that the host has set, and that no trailer may set again.
    guarded: Option<HeaderName>,
}

impl OutgoingBody {
    pub(crate) fn new<B>(body: B, said: Option<u64>, deadline: Instant, sent: Counter) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let inner = body.map_err(Into::into).boxed_unsync();
        Self { inner, left: said, said, deadline: Box::pin(tokio::time::sleep_until(deadline)), sent, guarded: None }
    }

    /// Says which header the host has set in the head, if any.
    pub(crate) fn guarding(self, guarded: Option<HeaderName>) -> Self {
        Self { guarded, ..self }
    }

    fn check(&mut self, frame: &Frame<Bytes>) -> Result<(), EgressError> {
        if let Some(data) = frame.data_ref() {
            let len = data.len() as u64;
            if let Some(left) = &mut self.left {
                *left = left.checked_sub(len).ok_or(EgressError::RequestBodySize { said: self.said })?;
            }
            self.sent.inc_by(len);
        }
        frame.trailers_ref().map_or(Ok(()), |fields| check_trailers(fields, self.guarded.as_ref()))
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = EgressError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(this.check(&frame).map(|()| frame))),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(EgressError::RequestBody(error.to_string())))),
            Poll::Ready(None) if this.left.is_some_and(|left| left > 0) => {
                Poll::Ready(Some(Err(EgressError::RequestBodySize { said: this.said })))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                ready!(this.deadline.as_mut().poll(cx));
                Poll::Ready(Some(Err(EgressError::ConnectionWriteTimeout)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_none_or(|left| left == 0) && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(|| self.inner.size_hint(), SizeHint::with_exact)
    }
}

/// The body of a response.
///
/// Dropping it ends the exchange. Of HTTP/1.1 that closes the connection,
/// unless the body was at its end.
#[derive(Debug)]
pub struct ResponseBody {
    /// Gone once the body has failed, and what it held of the connection too.
    inner: Option<Incoming>,
    wait: Option<Pin<Box<Sleep>>>,
    waiting: bool,
    limits: BodyLimits,
    received: Counter,
}

/// What a response's body is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    pub(crate) between_bytes: Duration,
    pub(crate) deadline: Instant,
    /// How many bytes the trailers may have.
    pub(crate) head: usize,
}

impl ResponseBody {
    pub(crate) fn new(inner: Incoming, limits: BodyLimits, received: Counter) -> Self {
        Self { inner: Some(inner), wait: None, waiting: false, limits, received }
    }

    fn fail(&mut self, error: EgressError) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        self.inner = None;
        Poll::Ready(Some(Err(error)))
    }

    /// Whether the server has let somebody wait for too long. Time counts only
    /// while somebody waits: a guest that does not read is not the server's
    /// fault.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<EgressError> {
        let BodyLimits { between_bytes, deadline, .. } = self.limits;
        let wait = self.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if !self.waiting {
            let next = Instant::now().checked_add(between_bytes);
            wait.as_mut().reset(next.map_or(deadline, |next| next.min(deadline)));
            self.waiting = true;
        }
        ready!(wait.as_mut().poll(cx));
        Poll::Ready(if Instant::now() >= deadline {
            EgressError::ResponseTimeout
        } else {
            EgressError::ConnectionReadTimeout
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = EgressError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        let this = &mut *self;
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        match Pin::new(inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(mut frame))) => {
                this.waiting = false;
                if Instant::now() >= this.limits.deadline {
                    return this.fail(EgressError::ResponseTimeout);
                }
                if let Some(data) = frame.data_ref() {
                    this.received.inc_by(data.len() as u64);
                }
                if let Some(trailers) = frame.trailers_mut() {
                    clean_fields(trailers);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                let error = EgressError::of_hyper(&error, this.limits.head);
                this.fail(error)
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                let error = ready!(this.poll_late(cx));
                this.fail(error)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}
