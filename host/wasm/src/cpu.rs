//! Measures the CPU time of a guest: its own code, and what the host does for
//! it within its calls.
//!
//! wasmtime calls a hook at every border between the guest and the host, and
//! the thread's CPU clock is read there. A host call that waits gives the thread
//! to others, so its time cannot be told from theirs and is not counted; one
//! that does its work and returns is. Which of the two it was is seen from the
//! turns: whoever polls a store tells when a poll ended without an end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime::CallHook;

/// Not running.
const STOPPED: u64 = u64::MAX;

/// CPU time of one store. Written by the one task that runs the store.
#[derive(Debug)]
pub(crate) struct CpuClock {
    /// Nanoseconds of the stretches that are over.
    spent: AtomicU64,
    /// Where the thread's clock stood at the start of this stretch.
    since: AtomicU64,
    /// Polls of the store that ended while it had more to do.
    turns: AtomicU64,
    /// `turns` when the host call that is under way began.
    called_in: AtomicU64,
}

impl CpuClock {
    pub(crate) fn new() -> Self {
        let [spent, turns, called_in] = [const { AtomicU64::new(0) }; 3];
        Self { spent, since: AtomicU64::new(STOPPED), turns, called_in }
    }

    /// What was used so far. While the guest runs, to be asked on its thread.
    pub(crate) fn used(&self) -> Duration {
        let spent = self.spent.load(Ordering::Relaxed);
        let running = match self.since.load(Ordering::Relaxed) {
            STOPPED => 0,
            since => thread_nanos().saturating_sub(since),
        };
        Duration::from_nanos(spent.saturating_add(running))
    }

    /// A stretch begins.
    pub(crate) fn start(&self) {
        self.since.store(thread_nanos(), Ordering::Relaxed);
    }

    /// The stretch ends and counts.
    pub(crate) fn stop(&self) {
        let used = self.used();
        self.since.store(STOPPED, Ordering::Relaxed);
        self.spent.store(used.as_nanos().try_into().unwrap_or(STOPPED - 1), Ordering::Relaxed);
    }

    /// A poll of the store ended while it had more to do: the thread is others'
    /// now.
    pub(crate) fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Follows the guest over a border.
    pub(crate) fn cross(&self, hook: CallHook) {
        match hook {
            CallHook::CallingWasm => self.start(),
            CallHook::ReturningFromWasm => self.stop(),
            CallHook::CallingHost => {
                // What the guest did counts in any case; the call is a stretch
                // of its own.
                self.stop();
                self.called_in.store(self.turns.load(Ordering::Relaxed), Ordering::Relaxed);
                self.start();
            }
            CallHook::ReturningFromHost => {
                let waited = self.called_in.load(Ordering::Relaxed) != self.turns.load(Ordering::Relaxed);
                if !waited {
                    self.stop();
                }
                self.start();
            }
        }
    }

    /// Runs a future that works in the store, telling the turns.
    pub(crate) async fn follow<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            let poll = future.as_mut().poll(cx);
            if poll.is_pending() {
                self.turn();
            }
            poll
        })
        .await
    }
}

/// CPU time of this thread in nanoseconds.
fn thread_nanos() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin() {
        let end = thread_nanos() + 20_000_000;
        while thread_nanos() < end {}
    }

    #[test]
    fn work_counts_in_the_guest_and_in_the_host() {
        let clock = CpuClock::new();
        clock.cross(CallHook::CallingWasm);
        spin();
        assert!(clock.used() >= Duration::from_millis(20), "seen while it runs");
        clock.cross(CallHook::CallingHost);
        spin();
        clock.cross(CallHook::ReturningFromHost);
        clock.cross(CallHook::ReturningFromWasm);
        spin();
        let used = clock.used();
        assert!(used >= Duration::from_millis(40) && used < Duration::from_millis(59), "{used:?}");
    }

    #[test]
    fn waiting_in_the_host_does_not() {
        let clock = CpuClock::new();
        clock.cross(CallHook::CallingWasm);
        clock.cross(CallHook::CallingHost);
        clock.turn();
        spin();
        clock.cross(CallHook::ReturningFromHost);
        clock.cross(CallHook::ReturningFromWasm);
        let used = clock.used();
        assert!(used < Duration::from_millis(19), "{used:?}");
    }
}
