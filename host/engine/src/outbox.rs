//! The bounded channel from the engine thread to one run's reader.
//!
//! The engine never waits for a reader: it appends tokens to what is already
//! there, so a slow reader gets larger chunks, and when the box is full the run
//! pauses until the reader has taken them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::error::Error;
use crate::options::{Chunk, Finish, Sampled};

/// When tokens are handed over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlushPolicy {
    pub(crate) tokens: usize,
    pub(crate) after: Duration,
}

#[derive(Default)]
struct State {
    chunk: Chunk,
    /// When the first token of `chunk` came.
    since: Option<Duration>,
    /// Whether the reader may have `chunk`.
    due: bool,
    error: Option<Error>,
    closed: bool,
    /// Whether the engine found the box full and waits for the reader.
    stalled: bool,
    queued: Option<Duration>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
    flush: FlushPolicy,
    capacity: usize,
}

impl Shared {
    /// The state stays whole at every await and panic point, so a poisoned lock
    /// is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes both ends. `capacity` is in tokens.
pub(crate) fn outbox(flush: FlushPolicy, capacity: usize) -> (Writer, Reader) {
    let shared = Arc::new(Shared { state: Mutex::default(), changed: Notify::new(), flush, capacity: capacity.max(1) });
    (Writer(Arc::clone(&shared)), Reader(shared))
}

/// The engine's end. Dropping it without [`Writer::close`] tells the reader that
/// the engine is gone.
pub(crate) struct Writer(Arc<Shared>);

impl Writer {
    /// Notes how long the run waited for its first decode.
    pub(crate) fn started(&self, queued: Duration) {
        self.0.lock().queued.get_or_insert(queued);
    }

    /// Whether another token fits. If not, the reader will say when it does
    /// (see [`Taken::resume`]).
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.0.lock();
        let room = state.chunk.tokens.len() < self.0.capacity;
        state.stalled = !room;
        room
    }

    /// Adds a token and the text that became available with it.
    pub(crate) fn push(&self, token: Sampled, text: &str, now: Duration) {
        let mut state = self.0.lock();
        state.chunk.tokens.push(token);
        state.chunk.text.push_str(text);
        let since = *state.since.get_or_insert(now);
        let flush = self.0.flush;
        let full = state.chunk.tokens.len() >= flush.tokens.min(self.0.capacity);
        if full || now.saturating_sub(since) >= flush.after {
            state.due = true;
            drop(state);
            self.0.changed.notify_waiters();
        }
    }

    /// Hands over what has waited long enough.
    pub(crate) fn flush_overdue(&self, now: Duration) {
        let mut state = self.0.lock();
        if !state.due && state.since.is_some_and(|s| now.saturating_sub(s) >= self.0.flush.after) {
            state.due = true;
            drop(state);
            self.0.changed.notify_waiters();
        }
    }

    /// When tokens that wait in the box are to be handed over.
    pub(crate) fn due_at(&self) -> Option<Duration> {
        let state = self.0.lock();
        if state.due { None } else { state.since.map(|since| since.saturating_add(self.0.flush.after)) }
    }

    /// Ends the run.
    pub(crate) fn close(self, end: Result<(Finish, &str), Error>) {
        {
            let mut state = self.0.lock();
            match end {
                Ok((finish, text)) => {
                    state.chunk.text.push_str(text);
                    state.chunk.finish = Some(finish);
                }
                Err(error) => state.error = Some(error),
            }
            state.due = true;
            state.closed = true;
        }
        self.0.changed.notify_waiters();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if !state.closed {
            state.error = Some(Error::Backend("the engine stopped unexpectedly".into()));
            state.due = true;
            state.closed = true;
            drop(state);
            self.0.changed.notify_waiters();
        }
    }
}

/// What [`Reader::try_take`] found.
pub(crate) struct Taken {
    /// None: nothing is due yet. Some(Ok(None)): the run is over.
    pub(crate) item: Option<Result<Option<Chunk>, Error>>,
    /// The engine waits for this reader and must be told to go on.
    pub(crate) resume: bool,
}

/// The run's end.
#[derive(Clone)]
pub(crate) struct Reader(Arc<Shared>);

impl Reader {
    /// Tokens that wait in the box.
    pub(crate) fn unread(&self) -> usize {
        self.0.lock().chunk.tokens.len()
    }

    /// Takes what is due.
    pub(crate) fn try_take(&self) -> Taken {
        let mut state = self.0.lock();
        if !state.due {
            let item = state.closed.then_some(Ok(None));
            return Taken { item, resume: false };
        }
        state.due = false;
        state.since = None;
        let resume = std::mem::take(&mut state.stalled);
        let chunk = std::mem::take(&mut state.chunk);
        // Tokens that came before an error are handed over before it.
        let item = if chunk != Chunk::default() {
            state.due = state.error.is_some();
            Ok(Some(chunk))
        } else {
            state.error.take().map_or(Ok(None), Err)
        };
        Taken { item: Some(item), resume }
    }

    /// Resolves when [`Reader::try_take`] would find something.
    pub(crate) async fn ready(&self) {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that no change falls in between.
            changed.as_mut().enable();
            {
                let state = self.0.lock();
                if state.due || state.closed {
                    return;
                }
            }
            changed.await;
        }
    }

    /// How long the run waited for its first decode, once it had it.
    pub(crate) fn queued(&self) -> Option<Duration> {
        self.0.lock().queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(token: u32) -> Sampled {
        Sampled { token, logprob: None, alternatives: Vec::new(), forced: false }
    }

    fn ids(taken: Taken) -> Vec<u32> {
        taken.item.unwrap().unwrap().unwrap().tokens.iter().map(|t| t.token).collect()
    }

    const AT_ONCE: FlushPolicy = FlushPolicy { tokens: 1, after: Duration::ZERO };

    #[test]
    fn a_slow_reader_gets_one_large_chunk() {
        let (writer, reader) = outbox(AT_ONCE, 8);
        for n in 0..3 {
            writer.push(token(n), "x", Duration::ZERO);
        }
        assert_eq!(ids(reader.try_take()), [0, 1, 2]);
        assert!(reader.try_take().item.is_none());
    }

    #[test]
    fn tokens_gather_until_enough_or_old_enough() {
        let policy = FlushPolicy { tokens: 3, after: Duration::from_millis(50) };
        let (writer, reader) = outbox(policy, 8);
        writer.push(token(0), "", Duration::ZERO);
        assert!(reader.try_take().item.is_none());
        writer.push(token(1), "", Duration::from_millis(50));
        assert_eq!(ids(reader.try_take()), [0, 1]);
        writer.push(token(2), "", Duration::from_millis(51));
        writer.flush_overdue(Duration::from_millis(100));
        assert!(reader.try_take().item.is_none());
        writer.flush_overdue(Duration::from_millis(101));
        assert_eq!(ids(reader.try_take()), [2]);
    }

    #[test]
    fn a_full_box_stalls_the_run_and_the_reader_says_when_to_go_on() {
        let (writer, reader) = outbox(AT_ONCE, 2);
        writer.push(token(0), "", Duration::ZERO);
        assert!(writer.has_room());
        writer.push(token(1), "", Duration::ZERO);
        assert!(!writer.has_room());
        assert!(reader.try_take().resume);
        assert!(writer.has_room());
    }

    #[test]
    fn an_error_comes_after_the_tokens_before_it() {
        let (writer, reader) = outbox(FlushPolicy { tokens: 9, after: Duration::MAX }, 8);
        writer.push(token(0), "", Duration::ZERO);
        writer.close(Err(Error::Cancelled));
        assert_eq!(ids(reader.try_take()), [0]);
        assert_eq!(reader.try_take().item, Some(Err(Error::Cancelled)));
        assert_eq!(reader.try_take().item, Some(Ok(None)));
    }

    #[test]
    fn an_engine_that_vanishes_is_an_error() {
        let (writer, reader) = outbox(AT_ONCE, 8);
        drop(writer);
        assert!(matches!(reader.try_take().item, Some(Err(Error::Backend(_)))));
        assert_eq!(reader.try_take().item, Some(Ok(None)));
    }
}
