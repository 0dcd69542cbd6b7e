//! One request's record: counted, timed and logged when it is over, however it
//! ends.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tracing::{Level, Span};

use crate::activity::RequestGuard;
use crate::body::{BoxError, ResponseBody};
use crate::metrics::{Class, HttpMetrics};

/// The status written to the log when the client left before there was one
/// (nginx's convention; never sent).
const CLIENT_CLOSED: u16 = 499;

/// Lives from the head of a request to the end of its response.
#[derive(Debug)]
pub(crate) struct Record {
    metrics: HttpMetrics,
    span: Span,
    level: Level,
    method: Method,
    started: Instant,
    status: Option<StatusCode>,
    declared: Option<u64>,
    bytes: u64,
    ending: Ending,
    _guard: RequestGuard,
}

#[derive(Debug)]
enum Ending {
    /// Nothing ended yet: if dropped now, the client has left.
    Open,
    Complete,
    Failed,
}

impl Record {
    pub(crate) fn new(metrics: HttpMetrics, span: Span, level: Level, method: Method, guard: RequestGuard) -> Self {
        metrics.in_flight.inc();
        Self {
            metrics,
            span,
            level,
            method,
            started: Instant::now(),
            status: None,
            declared: None,
            bytes: 0,
            ending: Ending::Open,
            _guard: guard,
        }
    }

    /// Attaches the record to the response it is about.
    pub(crate) fn follow(mut self, response: Response<ResponseBody>) -> Response<ObservedBody> {
        let (head, body) = response.into_parts();
        self.status = Some(head.status);
        self.declared =
            head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok());
        // No byte of these is ever asked for.
        let bodiless = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if self.method == Method::HEAD || bodiless || body.is_end_stream() {
            self.ending = Ending::Complete;
        }
        Response::from_parts(head, ObservedBody { body: Some(body), record: self })
    }

    fn sent(&mut self, len: u64) {
        if self.bytes == 0 && len > 0 {
            self.metrics.first_byte.observe(self.started.elapsed().as_secs_f64());
        }
        self.bytes += len;
        self.metrics.response_bytes.inc_by(len);
        // A body of declared length is not asked for its end.
        if self.declared.is_some_and(|declared| self.bytes >= declared) {
            self.ending = Ending::Complete;
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _entered = self.span.enter();
        let elapsed = self.started.elapsed();
        self.metrics.in_flight.dec();
        self.metrics.duration.observe(elapsed.as_secs_f64());
        if let Some(status) = self.status {
            self.metrics.requests.get_or_create(&Class::of(status)).inc();
        }
        let outcome = match self.ending {
            Ending::Complete => "complete",
            Ending::Failed => "failed",
            Ending::Open => {
                self.metrics.disconnects.inc();
                "disconnected"
            }
        };
        let status = self.status.map_or(CLIENT_CLOSED, |status| status.as_u16());
        // In whole microseconds: a float has digits that nobody measured.
        let ms = elapsed.as_micros() as f64 / 1e3;
        let bytes = self.bytes;
        if self.level == Level::DEBUG {
            tracing::debug!(status, bytes, ms, outcome, "answered");
        } else {
            tracing::info!(status, bytes, ms, outcome, "answered");
        }
    }
}

/// A response body that keeps its request's record up to date.
#[derive(Debug)]
pub(crate) struct ObservedBody {
    body: Option<ResponseBody>,
    record: Record,
}

impl Body for ObservedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let Some(body) = this.body.as_mut() else { return Poll::Ready(None) };
        let span = this.record.span.clone();
        let _entered = span.enter();
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx)));
        let Ok(polled) = polled else {
            this.record.metrics.panics.inc();
            this.record.ending = Ending::Failed;
            this.body = None;
            tracing::error!("a response body panicked; the response is broken off");
            return Poll::Ready(Some(Err("the response body panicked".into())));
        };
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                this.record.sent(frame.data_ref().map_or(0, |data| data.len() as u64));
                if this.body.as_ref().is_some_and(Body::is_end_stream) {
                    this.record.ending = Ending::Complete;
                }
            }
            Poll::Ready(Some(Err(error))) => {
                this.record.ending = Ending::Failed;
                // Whoever made the body tells of it, and knows more.
                tracing::debug!(%error, "a response broke off");
            }
            Poll::Ready(None) => this.record.ending = Ending::Complete,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}
