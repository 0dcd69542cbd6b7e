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
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};

use crate::control::RequestControl;

/// How far the threads step back, as by nice(1). About a third of the weight of others:
/// enough to let them go first, little enough to go on beside them.
const NICENESS: i32 = 5;

/// Threads with a scheduler of their own, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct GuestThreads(Option<Runtime>);

impl GuestThreads {
    /// Starts so many, at least one.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let threads = Builder::new_multi_thread()
            .worker_threads(count.max(1))
            .thread_name("nala guest")
            .on_thread_start(step_back)
            .enable_all()
            .build()?;
        Ok(Self(Some(threads)))
    }

    /// Runs a task here.
    pub(crate) fn spawn(&self, task: Task) {
        // None: the last handle is being dropped, and nobody waits for a task any more.
        if let Some(threads) = &self.0 {
            threads.spawn(task);
        }
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
    threads: Arc<GuestThreads>,
}

impl Begun {
    pub(crate) fn new(task: Task, control: Arc<RequestControl>, threads: Arc<GuestThreads>) -> Self {
        Self { task: Some(task), control, threads }
    }
}

impl Future for Begun {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(task) = &mut this.task else { return Poll::Ready(()) };
        if task.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !this.control.computes_for_long() {
            return Poll::Pending;
        }
        if let Some(task) = this.task.take() {
            this.threads.spawn(task);
        }
        Poll::Ready(())
    }
}

impl Drop for GuestThreads {
    fn drop(&mut self) {
        // The last handle may be dropped by one of the threads, which cannot wait for
        // itself.
        if let Some(threads) = self.0.take() {
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
        outer.block_on(Begun::new(task, control, threads));
        let apart = (Some("nala guest".to_owned()), (before + NICENESS).min(19));
        assert_eq!(places.iter().collect::<Vec<_>>(), [own.clone(), own.clone(), apart]);
        assert_eq!(here(), own, "only they step back");
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
