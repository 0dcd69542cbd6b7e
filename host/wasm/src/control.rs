//! What an instance and whoever waits for its response tell each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nala_tenant::Exceeded;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::error::HandleError;
use crate::handler::Seat;
use crate::outbound::Origin;
use crate::outcome::{Outcome, Stopped};

/// A guest that has computed for so long when it is seen does so on other threads from
/// then on, until it waits; and a request that has used so much in all is no short one.
/// Handlers that wait for a model or a disk stay below between two waits.
const LONG: Duration = Duration::from_millis(5);

/// The calls of tools that a request may have going on at a time: each has an instance.
pub(crate) const MOST_CALLS: usize = 16;

/// One request, as its instance and its caller share it.
#[derive(Debug)]
pub(crate) struct RequestControl {
    /// Cancelled when nobody wants the response any more.
    pub(crate) gone: CancellationToken,
    /// When the wall time is up.
    pub(crate) deadline: Instant,
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// The request's place among the instances, until its instance takes it. A
    /// client that does not read its response keeps what stands here, and must
    /// not keep others out with it.
    seat: Mutex<Option<Seat>>,
    /// Where the instance's store says what stopped it.
    pub(crate) outcome: Arc<Outcome>,
    /// How the instance ended. Known before its store is dropped, and so before
    /// the response's body ends because of that.
    end: OnceLock<End>,
    ended: CancellationToken,
    computing: Computing,
    /// Calls of tools that it may have going on at a time.
    pub(crate) calls: Arc<Semaphore>,
}

/// What is computed for a request: CPU time in nanoseconds.
#[derive(Debug, Default)]
struct Computing {
    /// In all.
    all: AtomicU64,
    /// With hardly a wait between. A wait halves it: one that waits for nothing, again
    /// and again, is not to look as if it computed little.
    stretch: AtomicU64,
    /// Whether the guest was seen computing since this was last asked.
    seen: AtomicBool,
    /// Whether the request was taken for an example of its handler's.
    is_noted: AtomicBool,
}

/// How an instance ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// There was none: it could not be made.
    NotMade(HandleError),
    /// Its guest returned.
    Returned,
    /// Its guest trapped.
    Trapped(String),
    /// It was ended otherwise, from within (an exit) or from outside.
    Failed(String),
}

impl RequestControl {
    pub(crate) fn new(deadline: Instant, origin: Origin, seat: Seat) -> Self {
        Self { seat: Mutex::new(Some(seat)), ..Self::without_seat(deadline, origin) }
    }

    /// Of a call that an instance makes of another component, which takes no place.
    pub(crate) fn of_call(deadline: Instant, origin: Origin) -> Self {
        Self::without_seat(deadline, origin)
    }

    /// Of a request that takes no place, for tests.
    #[cfg(test)]
    pub(crate) fn of_nothing(origin: Origin) -> Self {
        Self::without_seat(Instant::now(), origin)
    }

    fn without_seat(deadline: Instant, origin: Origin) -> Self {
        Self {
            gone: CancellationToken::new(),
            deadline,
            origin,
            seat: Mutex::new(None),
            outcome: Arc::default(),
            end: OnceLock::new(),
            ended: CancellationToken::new(),
            computing: Computing::default(),
            calls: Arc::new(Semaphore::new(MOST_CALLS)),
        }
    }

    /// Notes what was computed, by the one task that works for the request.
    pub(crate) fn computed(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.computing.all.fetch_add(time, Ordering::Relaxed);
        self.computing.stretch.fetch_add(time, Ordering::Relaxed);
    }

    /// Notes that the guest is computing.
    pub(crate) fn note_computing(&self) {
        self.computing.seen.store(true, Ordering::Relaxed);
    }

    /// Whether the guest was seen computing since this was last asked: it has not come to
    /// a wait by itself.
    pub(crate) fn was_computing(&self) -> bool {
        self.computing.seen.swap(false, Ordering::Relaxed)
    }

    /// Whether the guest computes for long.
    pub(crate) fn computes_for_long(&self) -> bool {
        self.computing.stretch.load(Ordering::Relaxed) >= LONG.as_nanos() as u64
    }

    /// The guest waits. However long it had computed, half of what is long is left.
    pub(crate) fn waits(&self) {
        let stretch = &self.computing.stretch;
        let half = stretch.load(Ordering::Relaxed).min(LONG.as_nanos() as u64) / 2;
        stretch.store(half, Ordering::Relaxed);
    }

    /// Whether little was computed for the request so far.
    pub(crate) fn is_short(&self) -> bool {
        self.computing.all.load(Ordering::Relaxed) < LONG.as_nanos() as u64
    }

    /// Whether the request may be taken for an example of its handler's: once.
    pub(crate) fn is_an_example(&self) -> bool {
        !self.computing.is_noted.swap(true, Ordering::Relaxed)
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
        self.outcome.stopped()
    }

    /// The tenant's limit for which the instance was refused memory, if there is one.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.outcome.exceeded()
    }

    /// Whether the instance was refused memory.
    pub(crate) fn memory_refused(&self) -> bool {
        self.outcome.memory_refused()
    }
}
