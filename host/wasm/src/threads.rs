//! The threads that run guests, apart from those that serve connections.
//!
//! Guests compute, and the system shares the cores out among threads. Those of guests
//! step back behind the others, of the server and of models: what these do is short or
//! for everybody, and none of it is to wait until a guest has had its slice.

use std::future::Future;
use std::io;
use std::pin::pin;

use tokio::runtime::{Builder, Handle, Runtime};

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

    /// Has the tasks that a future begins run on these threads. The future itself stays
    /// where it is.
    pub(crate) async fn within<F: Future>(&self, future: F) -> F::Output {
        let Some(threads) = self.0.as_ref().map(Runtime::handle) else { return future.await };
        let mut future = pin!(future);
        std::future::poll_fn(|context| {
            // Not held between polls, where the thread may be another.
            let _entered = Handle::enter(threads);
            future.as_mut().poll(context)
        })
        .await
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

    #[test]
    fn tasks_run_apart_and_step_back() {
        let before = rustix::process::getpriority_process(None).unwrap();
        let threads = GuestThreads::start(1).unwrap();
        let outer = Builder::new_current_thread().build().unwrap();
        let (name, nice) = outer.block_on(threads.within(async {
            let task = tokio::spawn(async {
                let name = std::thread::current().name().map(str::to_owned);
                (name, rustix::process::getpriority_process(None).unwrap())
            });
            task.await.unwrap()
        }));
        assert_eq!(name.as_deref(), Some("nala guest"));
        assert_eq!(nice, (before + NICENESS).min(19));
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), before, "only they do");
    }

    #[test]
    fn the_last_handle_may_go_on_one_of_the_threads() {
        let threads = std::sync::Arc::new(GuestThreads::start(1).unwrap());
        let outer = Builder::new_current_thread().build().unwrap();
        let (sender, dropped) = std::sync::mpsc::channel();
        outer.block_on(async {
            let held = std::sync::Arc::clone(&threads);
            threads
                .within(async {
                    // It goes on when nobody waits for it, and so may be the last that holds them.
                    drop(tokio::spawn(async move {
                        tokio::task::yield_now().await;
                        drop(held);
                        sender.send(()).unwrap();
                    }));
                })
                .await;
            drop(threads);
        });
        dropped.recv().unwrap();
    }
}
