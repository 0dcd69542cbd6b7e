//! Runs of the decode loop as their callers see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Shared;
use crate::Token;
use crate::command::{Command, SessionId};
use crate::error::Error;
use crate::options::Chunk;
use crate::outbox::Reader;
use crate::validate;

/// A run of the decode loop. Dropping it cancels the run.
pub struct Generation {
    pub(super) shared: Arc<Shared>,
    pub(super) session: SessionId,
    pub(super) run: u64,
    pub(super) reader: Reader,
    pub(super) working: Arc<AtomicBool>,
    pub(super) ended: bool,
    /// Whether the engine was told to end it: once is enough.
    pub(super) cancelled: AtomicBool,
}

impl Generation {
    /// Waits for the next chunk. None: the run has ended and everything was
    /// taken. Cancel safe: a dropped future loses nothing.
    ///
    /// # Errors
    /// What ended the run early, see [`Error`]; tokens that came before are
    /// handed over first.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(item) = self.try_next() {
                return item;
            }
            self.reader.ready().await;
        }
    }

    /// The next chunk if it is there; None if it is not there yet.
    pub fn try_next(&mut self) -> Option<Result<Option<Chunk>, Error>> {
        if self.ended {
            return Some(Ok(None));
        }
        let taken = self.reader.try_take();
        if taken.resume {
            let _ = self.shared.send(Command::Wake);
        }
        let over = match &taken.item {
            Some(Ok(Some(chunk))) => chunk.finish.is_some(),
            Some(Ok(None) | Err(_)) => true,
            None => false,
        };
        if over {
            self.ended = true;
            self.working.store(false, Ordering::Release);
        }
        taken.item
    }

    /// Resolves when [`Generation::next`] would not wait.
    pub async fn ready(&self) {
        if !self.ended {
            self.reader.ready().await;
        }
    }

    /// Something to wait on for [`Generation::ready`] without borrowing the
    /// generation.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        Readiness(self.reader.clone())
    }

    /// Adds tokens to the session as if the run had generated them, and lets it go
    /// on behind them: what a tool found, say. Their text does not leave, and
    /// neither `max_new` nor stop texts nor penalties count them.
    ///
    /// Tokens that were generated before the engine took the call stand before
    /// them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a token outside the vocabulary and for a run
    /// that has ended, [`Error::ContextFull`].
    pub async fn inject(&mut self, tokens: Vec<Token>) -> Result<(), Error> {
        validate::tokens(&tokens, self.shared.limits.vocab)?;
        let (id, run) = (self.session, self.run);
        self.shared.ask(|reply| Command::Inject { id, run, tokens, reply }).await
    }

    /// Ends the run before the next batch. What was generated can still be
    /// taken.
    pub fn cancel(&self) {
        if !self.cancelled.swap(true, Ordering::AcqRel) {
            // An engine that has ended runs nothing.
            let _ = self.shared.send(Command::Cancel { id: self.session, run: self.run });
        }
    }

    /// How long the run waited for its first batch, once it had it.
    #[must_use]
    pub fn queued(&self) -> Option<Duration> {
        self.reader.queued()
    }
}

impl Generation {
    /// Tokens that were generated and not taken yet.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.reader.unread()
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if !self.ended {
            self.cancel();
            self.working.store(false, Ordering::Release);
        }
    }
}

/// Tells when a [`Generation`] has something, see [`Generation::readiness`].
#[derive(Clone)]
pub struct Readiness(Reader);

impl Readiness {
    /// Resolves when [`Generation::next`] would not wait.
    pub async fn ready(&self) {
        self.0.ready().await;
    }
}
