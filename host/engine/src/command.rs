//! What handles ask of the engine thread.

use tokio::sync::oneshot;

use crate::Token;
use crate::error::Error;
use crate::options::{GenerateOptions, PrefillInfo};
use crate::outbox::Writer;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Names a session for as long as the engine lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId(pub(crate) u64);

/// A session as both sides see it.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    /// Tokens the session holds. Written by the engine thread.
    pub(crate) len: AtomicU32,
}

pub(crate) enum Command {
    Open {
        id: SessionId,
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
