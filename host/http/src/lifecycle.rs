//! From starting to gone: what the probes say, and how a server is told to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio_util::sync::CancellationToken;

/// Where the process is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Something, a model for example, is still being loaded.
    Starting,
    /// Requests are served.
    Ready,
    /// Running requests are finished, new ones belong elsewhere.
    Draining,
}

impl Phase {
    /// The word the probes print.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

/// The phase, shared by the listeners and whoever loads and stops things.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<AtomicU8>);

impl Readiness {
    /// A readiness that begins in `phase`.
    pub fn new(phase: Phase) -> Self {
        let readiness = Self(Arc::new(AtomicU8::new(0)));
        readiness.set(phase);
        readiness
    }

    /// Moves to `phase`.
    pub fn set(&self, phase: Phase) {
        let value = match phase {
            Phase::Starting => 0,
            Phase::Ready => 1,
            Phase::Draining => 2,
        };
        self.0.store(value, Ordering::Release);
    }

    /// The phase now.
    pub fn get(&self) -> Phase {
        match self.0.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Ready,
            _ => Phase::Draining,
        }
    }
}

/// The side that ends a server. Cloneable; the strongest call wins.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    signal: ShutdownSignal,
}

/// The side that a server listens to.
#[derive(Clone, Debug, Default)]
pub struct ShutdownSignal {
    pub(crate) drain: CancellationToken,
    pub(crate) cut: CancellationToken,
}

impl Shutdown {
    /// A shutdown nobody has asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The signal to give to [`crate::Server::serve`]; any number of servers
    /// may share it.
    pub fn signal(&self) -> ShutdownSignal {
        self.signal.clone()
    }

    /// Asks for a graceful end: no new connections, running responses finish
    /// until the drain deadline.
    pub fn drain(&self) {
        self.signal.drain.cancel();
    }

    /// Ends everything at once: running responses are dropped.
    pub fn cut(&self) {
        self.signal.cut.cancel();
        self.signal.drain.cancel();
    }
}

impl ShutdownSignal {
    /// Resolves once a drain or a cut was asked for.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }
}
