//! The threads that run guests which compute for long, apart from those that serve
//! connections.
//!
//! Such guests compute, and the system shares the cores out among threads. Those of guests
//! step back behind the others, of the server and of models: what these do is short or
//! for everybody, and none of it is to wait until a guest has had its slice.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::control::RequestControl;

/// How far the threads step back, as by nice(1). About a third of the weight of others:
/// enough to let them go first, little enough to go on beside them.
const NICENESS: i32 = 5;

/// Tasks that were begun elsewhere and have not had a first slice yet. Each may compute
/// for a tick before it is seen to compute for long, and connections wait behind all of
/// them.
const FRESH: usize = 32;
/// What most requests of a handler take at the most, for it to be taken for a short one.
const SHORT: Duration = Duration::from_millis(1);
/// What one that computes for long counts as, before it is known how long.
const LONG: Duration = Duration::from_millis(250);

/// Threads with a scheduler of their own, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct GuestThreads {
    threads: Option<Runtime>,
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
        Ok(Self { threads: Some(threads), fresh: Arc::default() })
    }

    /// Runs a task here.
    pub(crate) fn spawn(&self, task: Task) {
        // None: the last handle is being dropped, and nobody waits for a task any more.
        if let Some(threads) = &self.threads {
            threads.spawn(task);
        }
    }

    /// A place for a task that is begun elsewhere. None: there are enough.
    pub(crate) fn fresh(&self) -> Option<Fresh> {
        let place = Fresh(Arc::clone(&self.fresh));
        // One too many is taken back when it is dropped.
        (self.fresh.fetch_add(1, Ordering::Relaxed) < FRESH).then_some(place)
    }
}

/// A task that answers a request.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task where it was begun, until its guest computes for long: then it goes on on the
/// guest threads.
///
/// Most requests are answered within a fraction of a millisecond or wait most of the
/// time. To wake another thread for each would take as long as to answer it.
pub(crate) struct Begun {
    task: Option<Task>,
    control: Arc<RequestControl>,
    typical: Arc<Typical>,
    threads: Arc<GuestThreads>,
    fresh: Option<Fresh>,
}

impl Begun {
    pub(crate) fn new(
        task: Task,
        control: Arc<RequestControl>,
        typical: Arc<Typical>,
        threads: Arc<GuestThreads>,
        fresh: Fresh,
    ) -> Self {
        Self { task: Some(task), control, typical, threads, fresh: Some(fresh) }
    }
}

impl Future for Begun {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(task) = &mut this.task else { return Poll::Ready(()) };
        let poll = task.as_mut().poll(cx);
        this.fresh = None;
        if poll.is_ready() {
            return Poll::Ready(());
        }
        if !this.control.computes_for_long() {
            return Poll::Pending;
        }
        if let Some(task) = this.task.take() {
            this.typical.note(LONG);
            this.threads.spawn(task);
        }
        Poll::Ready(())
    }
}

impl Drop for GuestThreads {
    fn drop(&mut self) {
        // The last handle may be dropped by one of the threads, which cannot wait for
        // itself.
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// On Linux niceness is the thread's own, whatever POSIX says (setpriority(2), "C
/// library/kernel differences"). Where it cannot be had, guests run all the same.
fn step_back() {
    let own = rustix::process::getpriority_process(None);
    let done = own.and_then(|own| rustix::process::setpriority_process(None, (own + NICENESS).min(19)));
    if let Err(error) = done {
        tracing::debug!(%error, "the threads of guests do not step back behind others");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> (Option<String>, i32) {
        let name = std::thread::current().name().map(str::to_owned);
        (name, rustix::process::getpriority_process(None).unwrap())
    }

    #[test]
    fn a_task_goes_on_apart_once_it_computes_for_long() {
        let before = rustix::process::getpriority_process(None).unwrap();
        let threads = Arc::new(GuestThreads::start(1).unwrap());
        let control = Arc::new(RequestControl::of_nothing());
        let (sender, places) = std::sync::mpsc::channel();
        let noting = Arc::clone(&control);
        let task = Box::pin(async move {
            sender.send(here()).unwrap();
            tokio::task::yield_now().await;
            sender.send(here()).unwrap();
            noting.note_long();
            tokio::task::yield_now().await;
            sender.send(here()).unwrap();
        });
        let outer = Builder::new_current_thread().build().unwrap();
        let own = here();
        let (typical, fresh) = (Arc::<Typical>::default(), threads.fresh().unwrap());
        // They end with their last handle, and their tasks with them.
        outer.block_on(Begun::new(task, control, Arc::clone(&typical), Arc::clone(&threads), fresh));
        assert!(!typical.is_short());
        let apart = (Some("nala guest".to_owned()), (before + NICENESS).min(19));
        assert_eq!(places.iter().collect::<Vec<_>>(), [own.clone(), own.clone(), apart]);
        assert_eq!(here(), own, "only they step back");
    }

    #[test]
    fn as_many_wait_for_their_first_slice_as_may() {
        let threads = GuestThreads::start(1).unwrap();
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
        threads.spawn(Box::pin(async move {
            tokio::task::yield_now().await;
            drop(held);
            sender.send(()).unwrap();
        }));
        drop(threads);
        dropped.recv().unwrap();
    }
}
