//! What handles ask of the engine thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::oneshot;

use crate::Token;
use crate::error::Error;
use crate::options::{GenerateOptions, PrefillInfo};
use crate::outbox::Writer;

/// Names a session for as long as the engine lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId(pub(crate) u64);

/// A session as both sides see it.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    /// Tokens the session holds. Written by the engine thread.
    pub(crate) len: AtomicU32,
    /// Runs that were asked for and that the engine thread has not seen yet.
    pub(crate) unseen_runs: AtomicU32,
}

/// The most runs of a session that the engine thread has not seen: a caller that
/// starts and drops runs in a loop fills no queue.
const MAX_UNSEEN_RUNS: u32 = 4;

impl SessionState {
    /// Notes that a run is asked for. False: there are too many already.
    pub(crate) fn ask_for_run(&self) -> bool {
        let one_more = |unseen: u32| (unseen < MAX_UNSEEN_RUNS).then_some(unseen + 1);
        self.unseen_runs.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }

    /// Notes that the engine thread has seen a run.
    pub(crate) fn saw_run(&self) {
        self.unseen_runs.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A place among the sessions that may be open at a time. Travels with the
/// session to the engine thread and is given back when it has let go of it.
pub(crate) struct Seat(Arc<AtomicU32>);

impl Seat {
    /// Takes one of `max` places, if one is free.
    pub(crate) fn take(taken: &Arc<AtomicU32>, max: u32) -> Option<Self> {
        let one_more = |n: u32| (n < max).then_some(n + 1);
        taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

pub(crate) enum Command {
    Open {
        id: SessionId,
        seat: Seat,
        state: Arc<SessionState>,
        max_tokens: u32,
    },
    Prefill {
        id: SessionId,
        tokens: Vec<Token>,
        reply: oneshot::Sender<Result<PrefillInfo, Error>>,
    },
    Generate {
        id: SessionId,
        run: u64,
        options: Box<GenerateOptions>,
        outbox: Writer,
    },
    /// Ends that run of the session, if it still goes on; its reader still gets
    /// what was generated.
    Cancel {
        id: SessionId,
        run: u64,
    },
    /// The session was dropped, when `at_step` batches had been decoded.
    Close {
        id: SessionId,
        at_step: u64,
    },
    /// A reader has made room in its outbox.
    Wake,
    Shutdown,
}
