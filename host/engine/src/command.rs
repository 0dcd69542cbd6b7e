//! What handles ask of the engine thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::oneshot;

use crate::Token;
use crate::backend::Pooling;
use crate::constraint::Grammar;
use crate::error::Error;
use crate::options::{GenerateOptions, PrefillInfo, Priority, Reading, Readout, Tenant};
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

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A session to be made.
pub(crate) struct NewSession {
    pub(crate) id: SessionId,
    pub(crate) seat: Seat,
    pub(crate) state: Arc<SessionState>,
    /// The most tokens it may hold.
    pub(crate) max_tokens: u32,
    /// Who may share its beginning and what it saves.
    pub(crate) scope: Arc<str>,
    /// Who is served.
    pub(crate) tenant: Tenant,
    pub(crate) priority: Priority,
    /// The adapter it is computed with, by its place in `ModelInfo::adapters`.
    pub(crate) adapter: Option<usize>,
}

/// Inputs whose embeddings are wanted.
pub(crate) struct EmbedCommand {
    pub(crate) inputs: Vec<Vec<Token>>,
    pub(crate) pooling: Pooling,
    /// Who is served.
    pub(crate) tenant: Tenant,
    pub(crate) priority: Priority,
    pub(crate) reply: Reply<Vec<Vec<f32>>>,
}

/// One session's part of a submitted step.
pub(crate) struct StepCommand {
    pub(crate) id: SessionId,
    pub(crate) input: Vec<Token>,
    pub(crate) readouts: Vec<Readout>,
    pub(crate) reply: Reply<Vec<Reading>>,
}

/// Something that takes a copy of a session's state.
pub(crate) struct CopyCommand {
    pub(crate) id: SessionId,
    pub(crate) to: CopyTo,
    pub(crate) reply: Reply<()>,
}

/// What a state is copied for.
pub(crate) enum CopyTo {
    /// To take tokens out of the session, and move up those behind them.
    Evict { at: u32, count: u32 },
    /// To move the state into RAM until the session is used again.
    Park,
    /// To keep what the session holds under a name of its scope.
    Save { name: String },
}

pub(crate) enum Command {
    Open(NewSession),
    /// Makes a session that holds what `id` holds.
    Fork {
        id: SessionId,
        new: NewSession,
        reply: Reply<()>,
    },
    /// Shortens the session; answers with its new length.
    Rewind {
        id: SessionId,
        to: u32,
        reply: Reply<u32>,
    },
    /// What takes a copy of a session's state, for which all wait.
    Copy(CopyCommand),
    /// Makes a session of what was saved, and tells the bytes of its grammar. None:
    /// nothing was.
    Restore {
        name: String,
        new: NewSession,
        reply: Reply<Option<u64>>,
    },
    Prefill {
        id: SessionId,
        tokens: Vec<Token>,
        reply: Reply<PrefillInfo>,
    },
    /// Embeddings, computed between batches.
    Embed(EmbedCommand),
    /// Input for many sessions, which become parts of the same batches.
    Submit(Vec<StepCommand>),
    /// Adds tokens to a run that goes on, as if it had generated them.
    Inject {
        id: SessionId,
        run: u64,
        tokens: Vec<Token>,
        reply: Reply<()>,
    },
    /// Has what the session says from here on follow a grammar, or no longer.
    Constrain {
        id: SessionId,
        grammar: Option<Grammar>,
    },
    /// Gives a session's work another priority.
    Prioritise {
        id: SessionId,
        priority: Priority,
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
