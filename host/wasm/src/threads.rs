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

use nala_tenant::Tenant;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::control::RequestControl;
use crate::turns::Turns;

/// How far the threads step back, as by nice(1). About a tenth of the weight of others:
/// with all cores taken by a model, guests that compute without end make its tokens come
/// later by as much. Those of a tenant that computes little do not run here.
const NICENESS: i32 = 10;

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
    /// Starts so many, at least one; with a handle to those that block.
    pub(crate) fn start(count: usize) -> io::Result<(Self, Handle)> {
        let threads = Builder::new_multi_thread()
            .worker_threads(count.max(1))
            .thread_name("nala guest")
            .on_thread_start(step_back)
            .enable_all()
            .build()?;
        let handle = threads.handle().clone();
        Ok((Self { threads: Some(threads), fresh: Arc::default() }, handle))
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

/// Who a task works for, and where it may.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) control: Arc<RequestControl>,
    pub(crate) typical: Arc<Typical>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) guest: Arc<GuestThreads>,
}

impl Place {
    /// Whether the task may keep connections waiting for a little: its tenant's guests
    /// have used no more of late than they may without waiting for others. Where there
    /// are no tenants, short requests keep nobody waiting.
    pub(crate) fn is_welcome(&self) -> bool {
        let is_alone = self.tenant.name().is_local();
        (is_alone && self.typical.is_short()) || self.turns.may_go_on(&self.tenant, Duration::ZERO)
    }

    /// Runs a task where it is best.
    pub(crate) fn begin(self, task: Task) {
        match self.guest.fresh().filter(|_| self.is_welcome()) {
            Some(fresh) => {
                let here = self.control.origin.here.clone();
                here.spawn(Here { task: Some(task), place: self, fresh: Some(fresh) });
            }
            None => Self::go_apart(task, self),
        }
    }

    fn go_apart(task: Task, place: Self) {
        let guest = Arc::clone(&place.guest);
        guest.spawn(Box::pin(Apart { task: Some(task), place: Some(place) }));
    }
}

/// A task beside connections, until its guest computes for long: then it goes on on the
/// guest threads.
///
/// Most requests are answered within a fraction of a millisecond or wait most of the
/// time. To wake another thread for each would take as long as to answer it.
struct Here {
    task: Option<Task>,
    place: Place,
    fresh: Option<Fresh>,
}

impl Future for Here {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(task) = &mut this.task else { return Poll::Ready(()) };
        let poll = task.as_mut().poll(cx);
        this.fresh = None;
        if poll.is_ready() {
            return Poll::Ready(());
        }
        let control = &this.place.control;
        if !control.was_computing() {
            control.waits();
        }
        if !control.computes_for_long() {
            return Poll::Pending;
        }
        if let Some(task) = this.task.take() {
            this.place.typical.note(LONG);
            Place::go_apart(task, this.place.clone());
        }
        Poll::Ready(())
    }
}

/// A task on the guest threads, until it waits for something and its tenant owes nothing:
/// what comes then, like the tokens of a model, is handed on beside connections, and does
/// not wait behind other tenants' guests.
struct Apart {
    task: Option<Task>,
    place: Option<Place>,
}

impl Future for Apart {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let (Some(task), Some(place)) = (&mut this.task, &this.place) else { return Poll::Ready(()) };
        if task.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if place.control.was_computing() || !place.is_welcome() {
            return Poll::Pending;
        }
        place.control.waits();
        if let (Some(task), Some(place)) = (this.task.take(), this.place.take()) {
            let here = place.control.origin.here.clone();
            here.spawn(Here { task: Some(task), place, fresh: None });
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

/// Where the system does not let them, guests run all the same.
fn step_back() {
    if let Err(error) = nala_machine::step_back(NICENESS) {
        tracing::debug!(%error, "the threads of guests do not step back behind others");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::Origin;

    fn here() -> (Option<String>, i32) {
        let name = std::thread::current().name().map(str::to_owned);
        (name, rustix::process::getpriority_process(None).unwrap())
    }

    /// Runs a task that tells where it is between its parts, each of which is told what
    /// was seen of the guest in it.
    fn places(parts: Vec<fn(&RequestControl)>) -> Vec<(Option<String>, i32)> {
        let (guest, handle) = GuestThreads::start(1).unwrap();
        let guest = Arc::new(guest);
        let outer = Builder::new_multi_thread().worker_threads(1).thread_name("nala worker").enable_all().build();
        let outer = outer.unwrap();
        let origin = Origin::client(outer.handle().clone());
        let control = Arc::new(RequestControl::of_nothing(origin));
        let place = Place {
            control: Arc::clone(&control),
            typical: Arc::default(),
            tenant: Tenant::sole(),
            turns: Arc::new(Turns::new(1, 1, handle)),
            guest,
        };
        let (sender, places) = std::sync::mpsc::channel();
        let task = async move {
            for part in parts {
                sender.send(here()).unwrap();
                part(&control);
                tokio::task::yield_now().await;
            }
            sender.send(here()).unwrap();
        };
        place.begin(Box::pin(task));
        // They end with their last handle, and their tasks with them.
        places.iter().collect()
    }

    #[test]
    fn a_task_goes_apart_while_it_computes_for_long_and_comes_back() {
        let own = rustix::process::getpriority_process(None).unwrap();
        let short = |control: &RequestControl| control.note_computing(Duration::from_millis(4));
        let long = |control: &RequestControl| control.note_computing(Duration::from_millis(5));
        let longer = |control: &RequestControl| control.note_computing(Duration::from_millis(500));
        let waits = |_: &RequestControl| {};
        let beside = (Some("nala worker".to_owned()), own);
        let apart = (Some("nala guest".to_owned()), (own + NICENESS).min(19));
        let (beside, apart) = (|| beside.clone(), || apart.clone());
        // What it was seen to compute last is not a wait yet.
        assert_eq!(
            places(vec![waits, short, long, longer, longer, waits, waits, longer, waits]),
            [beside(), beside(), beside(), apart(), apart(), apart(), beside(), beside(), apart(), beside()]
        );
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), own, "only they step back");
    }

    #[test]
    fn as_many_wait_for_their_first_slice_as_may() {
        let (threads, _) = GuestThreads::start(1).unwrap();
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
        let threads = Arc::new(GuestThreads::start(1).unwrap().0);
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
