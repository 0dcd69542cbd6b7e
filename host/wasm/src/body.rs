//! A response's body on its way out.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use thiserror::Error;
use tokio::time::Sleep;
use wasmtime_wasi_http::WasiBody;

use nala_tenant::{Admission, Counter, Meter};

use crate::account::Account;
use crate::control::{End, RequestControl};
use crate::error::{HandleError, stopped};

/// Why a body ended before its time.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// A limit stopped the guest.
    #[error("{}", .0.message())]
    Stopped(HandleError),
    /// The guest ended without finishing the body: it trapped or gave up.
    #[error("the handler ended before its response was complete: {0}")]
    Incomplete(String),
}

/// The same body, whose bytes are counted as they pass.
pub(crate) fn counted<B: Body<Data = Bytes>>(
    body: B,
    meter: Arc<Meter>,
    counter: Counter,
) -> impl Body<Data = Bytes, Error = B::Error> {
    body.map_frame(move |frame| {
        meter.add(counter, frame.data_ref().map_or(0, Bytes::len) as u64);
        frame
    })
}

/// The body as the guest writes it. Dropping it before its end ends the guest's
/// instance, and with it everything that the instance holds.
pub struct ResponseBody {
    inner: WasiBody,
    guard: GoneGuard,
    app: Arc<str>,
    account: Arc<Account>,
    /// Until when no more goes out.
    held_back: Option<Pin<Box<Sleep>>>,
    /// The request goes on until this is dropped.
    _admissions: [Admission; 2],
}

impl ResponseBody {
    pub(crate) fn new(
        inner: WasiBody,
        guard: GoneGuard,
        app: Arc<str>,
        account: Arc<Account>,
        admissions: [Admission; 2],
    ) -> Self {
        Self { inner, guard, app, account, held_back: None, _admissions: admissions }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some(held_back) = &mut this.held_back {
            ready!(held_back.as_mut().poll(cx));
            this.held_back = None;
        }
        let error = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                this.account.meter.add(Counter::BytesOut, bytes);
                if let Some(outflow) = &this.account.outflow {
                    let wait = outflow.sent(bytes, Instant::now());
                    this.held_back = (!wait.is_zero()).then(|| Box::pin(tokio::time::sleep(wait)));
                }
                return Poll::Ready(Some(Ok(frame)));
            }
            Some(Err(error)) => Some(error.to_string()),
            // A body whose instance was dropped ends like a finished one.
            None => match this.guard.control.end() {
                Some(End::Trapped(reason) | End::Failed(reason)) => Some(reason.clone()),
                Some(End::Returned | End::NotMade(_)) | None => None,
            },
        };
        this.guard.disarm();
        let error = error.map(|reason| match this.guard.control.stopped() {
            Some(limit) => BodyError::Stopped(stopped(limit)),
            None => BodyError::Incomplete(reason),
        });
        if let Some(error) = &error {
            this.account.meter.add(Counter::Errors, 1);
            tracing::warn!(app = &*this.app, %error, "a response broke off");
        }
        Poll::Ready(error.map(Err))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Tells the instance that nobody wants its response any more, unless it was
/// disarmed.
pub(crate) struct GoneGuard {
    control: Arc<RequestControl>,
    armed: bool,
}

impl GoneGuard {
    pub(crate) fn new(control: Arc<RequestControl>) -> Self {
        Self { control, armed: true }
    }

    /// The response is complete: what the guest still does, it does for itself.
    fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for GoneGuard {
    fn drop(&mut self) {
        if self.armed {
            self.control.gone.cancel();
        }
    }
}
