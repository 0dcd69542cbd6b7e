//! The threads that run guests which compute for long, apart from those that serve
//! connections.
//!
//! Such guests compute, and the system shares the cores out among threads. Those of guests
//! step back behind the others, of the server and of models: what these do is short or
//! for everybody, and none of it is to wait until a guest has had its slice.

mod place;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

pub(crate) use place::Place;

/// How far the threads step back, as by nice(1). About a twelfth of the weight of others:
/// with all cores taken by a model, guests that compute without end make its tokens come
/// later by as much. Those of a tenant that computes little do not run here.
const NICENESS: i32 = 11;

/// Tasks that were begun elsewhere and have not had a first slice yet. Each may compute
/// for a tick before it is seen to compute for long, and connections wait behind all of
/// them.
const FRESH: usize = 32;
/// What most requests of a handler take at the most, for it to be taken for a short one.
const SHORT: Duration = Duration::from_millis(1);
/// What one that computes for long counts as: that is known before it is known how long.
const LONG: Duration = Duration::from_millis(250);

/// Threads with a scheduler of their own, which end when this is dropped, and their
/// tasks with them.
#[derive(Debug)]
pub(crate) struct GuestThreads {
    threads: Option<Runtime>,
    entrance: Entrance,
}

/// The way to the guest threads, for tasks: it does not keep them, since it is in the
/// hands of what runs there. Once they have ended, a task that goes there is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Entrance {
    threads: Handle,
    fresh: Arc<AtomicUsize>,
}

/// What the requests of a handler take lately: each counts an eighth.
#[derive(Debug, Default)]
pub(crate) struct Typical {
    micros: AtomicU64,
}

impl Typical {
    /// Notes that a request took so much CPU time.
    pub(crate) fn note(&self, used: Duration) {
        let used = u64::try_from(used.as_micros()).unwrap_or(u64::MAX);
        let before = self.micros.load(Ordering::Relaxed);
        // Two at a time may be noted as one: it is an estimate.
        self.micros.store(before - before / 8 + used / 8, Ordering::Relaxed);
    }

    /// Whether most are short.
    pub(crate) fn is_short(&self) -> bool {
        self.micros.load(Ordering::Relaxed) <= SHORT.as_micros() as u64
    }
}

/// The place of a task among those that have not had a slice yet.
#[derive(Debug)]
pub(crate) struct Fresh(Arc<AtomicUsize>);

impl Drop for Fresh {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl GuestThreads {
    /// Starts so many, at least one.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let threads = Builder::new_multi_thread()
            .worker_threads(count.max(1))
            .thread_name("nala guest")
            .on_thread_start(step_back)
            .enable_all()
            .build()?;
        let entrance = Entrance { threads: threads.handle().clone(), fresh: Arc::default() };
        Ok(Self { threads: Some(threads), entrance })
    }

    /// The way to them.
    pub(crate) fn entrance(&self) -> Entrance {
        self.entrance.clone()
    }
}

impl Entrance {
    /// Has a thread work that blocks.
    pub(crate) fn block(&self, work: impl FnOnce() + Send + 'static) {
        self.threads.spawn_blocking(work);
    }

    /// A place for a task that is begun elsewhere. None: there are enough.
    pub(crate) fn fresh(&self) -> Option<Fresh> {
        let place = Fresh(Arc::clone(&self.fresh));
        // One too many is taken back when it is dropped.
        (self.fresh.fetch_add(1, Ordering::Relaxed) < FRESH).then_some(place)
    }
}

impl Drop for GuestThreads {
    fn drop(&mut self) {
        // It may be dropped by one of the threads, which cannot wait for itself.
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// Where the system does not let them, guests run all the same.
fn step_back() {
    if let Err(error) = nala_machine::step_back(NICENESS) {
        tracing::debug!(%error, "the threads of guests do not step back behind others");
    }
}

#[cfg(test)]
impl Entrance {
    /// For tests: all is done on the threads of the runtime that this is called in.
    pub(crate) fn of_this_thread() -> Self {
        Self { threads: Handle::current(), fresh: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_wait_for_their_first_slice_as_may() {
        let threads = GuestThreads::start(1).unwrap().entrance();
        let mut all: Vec<Fresh> = std::iter::from_fn(|| threads.fresh()).collect();
        assert_eq!(all.len(), FRESH);
        all.pop();
        assert!(threads.fresh().is_some());
        drop(all);
        assert_eq!(threads.fresh.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_handler_is_short_while_its_requests_are() {
        let typical = Typical::default();
        assert!(typical.is_short());
        (0..100).for_each(|_| typical.note(Duration::from_micros(60)));
        assert!(typical.is_short());
        typical.note(LONG);
        let short = (0..1000).find(|_| {
            typical.note(Duration::from_micros(60));
            typical.is_short()
        });
        assert!(short.is_some_and(|n| n > 20), "not for a while: {short:?}");
    }

    #[test]
    fn the_last_handle_may_go_on_one_of_the_threads() {
        let threads = Arc::new(GuestThreads::start(1).unwrap());
        let (sender, dropped) = std::sync::mpsc::channel();
        let held = Arc::clone(&threads);
        threads.entrance.threads.spawn(async move {
            tokio::task::yield_now().await;
            drop(held);
            sender.send(()).unwrap();
        });
        drop(threads);
        dropped.recv().unwrap();
    }
}
