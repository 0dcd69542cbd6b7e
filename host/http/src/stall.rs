//! HTTP/2 responses whose client takes nothing of them.
//!
//! A client of HTTP/1 that stops reading stops its socket, which
//! [`crate::wire`] sees. Over HTTP/2 it closes its window instead and goes on
//! answering pings: the socket works, and hyper waits for the window without
//! end, holding the body and all that the body holds. So each stream's task is
//! watched here, and dropped when hyper has held a frame for too long, which
//! resets the stream.
//!
//! Only hyper's waiting counts. A body that was asked and has nothing yet, as
//! that of a slow model, may take as long as it likes.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::body::BoxError;
use crate::observe::ObservedBody;

/// The most bytes that hyper is given at once: HTTP/2's own frame size (RFC
/// 9113, section 6.5.2). Of a larger piece it would be seen only at its end
/// that the client takes it.
const PIECE: usize = 16 * 1024;

tokio::task_local! {
    /// What happens on the stream whose task runs.
    static FLOW: Flow;
}

/// Shared by a stream's task and its body.
#[derive(Clone, Debug)]
struct Flow(Arc<Mutex<Step>>);

/// What the last poll of the stream's task came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The handler still works on its answer.
    NoBody,
    /// The body was not asked: hyper holds what it gave before.
    NotAsked,
    /// The body gave something, which hyper now holds.
    Gave,
    /// The body was asked and has nothing yet.
    Pending,
}

impl Flow {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Step::NoBody)))
    }

    fn get(&self) -> Step {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, step: Step) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    /// A poll of the task begins.
    fn begin(&self) {
        if self.get() != Step::NoBody {
            self.set(Step::NotAsked);
        }
    }
}

/// Runs the streams of HTTP/2 connections, each for as long as its client takes
/// what it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamExecutor {
    limit: Duration,
}

impl StreamExecutor {
    /// A client may take nothing for as long as `limit`.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit }
    }
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(watch(stream, self.limit));
    }
}

async fn watch(stream: impl Future, limit: Duration) {
    let flow = Flow::new();
    let mut stream = pin!(FLOW.scope(flow.clone(), stream));
    let mut held: Option<Pin<Box<Sleep>>> = None;
    std::future::poll_fn(|cx| {
        flow.begin();
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        match flow.get() {
            Step::NoBody | Step::Pending => {
                held = None;
                return Poll::Pending;
            }
            // The client took what was held before.
            Step::Gave => held = None,
            Step::NotAsked => {}
        }
        let held = held.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        let late = held.as_mut().poll(cx);
        if late.is_ready() {
            tracing::debug!("the client takes nothing of a response over HTTP/2; stream reset");
        }
        late
    })
    .await;
}

/// A response's body that tells its stream's task when it is asked. Over HTTP/1
/// it is the body alone.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    body: ObservedBody,
    /// What is left of a frame larger than [`PIECE`].
    rest: Bytes,
    flow: Option<Flow>,
}

impl WatchedBody {
    /// Called within the task of the stream that the body is for.
    pub(crate) fn new(body: ObservedBody) -> Self {
        let flow = FLOW.try_with(Flow::clone).ok();
        if let Some(flow) = &flow {
            flow.set(Step::NotAsked);
        }
        Self { body, rest: Bytes::new(), flow }
    }

    fn cut(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_data() {
            Ok(mut data) => {
                self.rest = data.split_off(data.len().min(PIECE));
                Frame::data(data)
            }
            Err(other) => other,
        }
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let Some(flow) = this.flow.clone() else { return Pin::new(&mut this.body).poll_frame(cx) };
        let polled = if this.rest.is_empty() {
            Pin::new(&mut this.body).poll_frame(cx)
        } else {
            Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.rest)))))
        };
        flow.set(if polled.is_pending() { Step::Pending } else { Step::Gave });
        polled.map_ok(|frame| this.cut(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
