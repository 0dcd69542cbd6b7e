//! Ends an instance from outside: when its client is gone, or its time is up.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use nala_tenant::Exceeded;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use wasmtime::Trap;
use wasmtime_wasi_http::handler::{WorkerExpiration, WorkerStatus};

use crate::cpu::{Counting, CpuClock};
use crate::handler::Seat;
use crate::outbound::Depth;
use crate::outcome::{Outcome, Stopped};

/// One request, as its instance and its caller share it.
#[derive(Debug)]
pub(crate) struct RequestControl {
    /// Cancelled when nobody wants the response any more.
    pub(crate) gone: CancellationToken,
    /// When the wall time is up.
    pub(crate) deadline: Instant,
    /// How deep it lies in requests of other components.
    pub(crate) depth: Depth,
    /// The request's place among the instances, until its instance takes it. A
    /// client that does not read its response keeps what stands here, and must
    /// not keep others out with it.
    seat: Mutex<Option<Seat>>,
    /// Where the instance's store says what stopped it, once there is one.
    outcome: OnceLock<Arc<Outcome>>,
    /// How the instance ended. Known before its store is dropped, and so before
    /// the response's body ends because of that.
    end: OnceLock<End>,
    ended: CancellationToken,
}

/// How an instance ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// Its guest returned.
    Returned,
    /// Its guest trapped.
    Trapped(String),
    /// It was ended otherwise, from within (an exit) or from outside.
    Failed(String),
}

impl End {
    pub(crate) fn of(result: &Result<(), wasmtime::Error>) -> Self {
        match result {
            Ok(()) => Self::Returned,
            Err(error) => match error.downcast_ref::<Trap>() {
                Some(trap) => Self::Trapped(trap.to_string()),
                None => Self::Failed(error.root_cause().to_string()),
            },
        }
    }
}

impl RequestControl {
    pub(crate) fn new(deadline: Instant, depth: Depth, seat: Seat) -> Self {
        Self {
            gone: CancellationToken::new(),
            deadline,
            depth,
            seat: Mutex::new(Some(seat)),
            outcome: OnceLock::new(),
            end: OnceLock::new(),
            ended: CancellationToken::new(),
        }
    }

    /// Hands the request's place to its instance.
    pub(crate) fn take_seat(&self) -> Option<Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes how the instance ended.
    pub(crate) fn set_end(&self, end: End) {
        // An instance ends once.
        let _ = self.end.set(end);
        self.ended.cancel();
    }

    /// How the instance ended, if it has.
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.get()
    }

    /// Waits until the instance has ended.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// The limit that stopped the instance, if one did.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.outcome.get()?.stopped()
    }

    /// The tenant's limit for which the instance was refused memory, if there is one.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.outcome.get()?.exceeded()
    }

    /// Whether the instance was refused memory.
    pub(crate) fn memory_refused(&self) -> bool {
        self.outcome.get().is_some_and(|outcome| outcome.memory_refused())
    }
}

/// The request of a worker, once it has taken it up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot(Arc<OnceLock<Arc<RequestControl>>>);

impl Slot {
    pub(crate) fn attach(&self, control: Arc<RequestControl>, outcome: Arc<Outcome>) {
        // A worker takes up one request only, so both are empty.
        let _ = control.outcome.set(outcome);
        let _ = self.0.set(control);
    }

    pub(crate) fn get(&self) -> Option<&Arc<RequestControl>> {
        self.0.get()
    }
}

/// Tells the worker to drop its instance. Polled outside of the store, and so
/// also while the guest spins or waits in a host call.
pub(crate) struct Expiration {
    slot: Slot,
    cpu: Arc<CpuClock>,
    waits: Option<Waits>,
}

struct Waits {
    gone: Pin<Box<WaitForCancellationFutureOwned>>,
    deadline: Pin<Box<tokio::time::Sleep>>,
}

impl Expiration {
    pub(crate) fn new(slot: Slot, cpu: Arc<CpuClock>) -> Self {
        Self { slot, cpu, waits: None }
    }
}

impl WorkerExpiration for Expiration {
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>, _status: WorkerStatus, _start: Instant) -> Poll<()> {
        let this = &mut *self;
        // Polled after every turn of the store, so a request that has just been
        // attached is seen at once. Only then the worker gives the store another
        // turn after this one, whose end is not seen here.
        let taken_up = this.waits.is_none() && this.slot.get().is_some();
        this.cpu.end_poll(if taken_up { Counting::Guest } else { Counting::Polls });
        let Some(control) = this.slot.get() else { return Poll::Pending };
        let waits = this.waits.get_or_insert_with(|| Waits {
            gone: Box::pin(control.gone.clone().cancelled_owned()),
            deadline: Box::pin(tokio::time::sleep_until(control.deadline.into())),
        });
        if waits.gone.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        ready!(waits.deadline.as_mut().poll(cx));
        if let Some(outcome) = control.outcome.get() {
            outcome.stop(Stopped::Wall);
        }
        Poll::Ready(())
    }
}
