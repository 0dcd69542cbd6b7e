//! Measures the CPU time of a guest: its own code, and what the host does for
//! it.
//!
//! Reading a thread's CPU clock is a system call, too dear for each call of the
//! host. So it is read twice a poll of the store: when wasmtime's hook first
//! tells of a border that the guest crosses, and when whoever polls the store
//! says that the poll is over. All the thread did between is work for this
//! store.

use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime::CallHook;

/// Not running.
const STOPPED: u64 = u64::MAX;

/// What counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Counting {
    /// From the first border of a poll to the poll's end, which is told.
    Polls,
    /// While the guest's own code runs: for a poll whose end nobody tells.
    Guest,
}

/// CPU time of one store. Written by the one task that runs the store.
#[derive(Debug)]
pub(crate) struct CpuClock {
    /// Nanoseconds of the stretches that are over.
    spent: AtomicU64,
    /// Where the thread's clock stood at the start of this stretch.
    since: AtomicU64,
    /// A [`Counting`].
    counting: AtomicU8,
}

impl CpuClock {
    pub(crate) fn new() -> Self {
        Self {
            spent: AtomicU64::new(0),
            since: AtomicU64::new(STOPPED),
            counting: AtomicU8::new(Counting::Polls as u8),
        }
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

    /// A stretch begins, unless one is under way.
    pub(crate) fn start(&self) {
        if self.since.load(Ordering::Relaxed) == STOPPED {
            self.since.store(thread_nanos(), Ordering::Relaxed);
        }
    }

    /// The stretch ends and counts.
    pub(crate) fn stop(&self) {
        if self.since.load(Ordering::Relaxed) != STOPPED {
            let used = self.used();
            self.since.store(STOPPED, Ordering::Relaxed);
            self.spent.store(used.as_nanos().try_into().unwrap_or(STOPPED - 1), Ordering::Relaxed);
        }
    }

    /// A poll of the store is over: the thread is others' now. `next` counts in
    /// the next one.
    pub(crate) fn end_poll(&self, next: Counting) {
        self.stop();
        self.counting.store(next as u8, Ordering::Relaxed);
    }

    /// Follows the guest over a border.
    pub(crate) fn cross(&self, hook: CallHook) {
        let only_guest = self.counting.load(Ordering::Relaxed) == Counting::Guest as u8;
        match hook {
            CallHook::CallingHost | CallHook::ReturningFromWasm if only_guest => self.stop(),
            _ => self.start(),
        }
    }

    /// Runs a future that works in the store, telling the polls' ends.
    pub(crate) async fn follow<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            self.start();
            let poll = future.as_mut().poll(cx);
            self.end_poll(Counting::Polls);
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

    fn check(clock: &CpuClock, spins: u64) {
        let used = clock.used();
        assert!(used >= Duration::from_millis(20 * spins), "{used:?}");
        assert!(used < Duration::from_millis(20 * spins + 19), "{used:?}");
    }

    #[test]
    fn work_counts_in_the_guest_and_in_the_host() {
        let clock = CpuClock::new();
        clock.cross(CallHook::CallingWasm);
        spin();
        check(&clock, 1);
        clock.cross(CallHook::CallingHost);
        spin();
        // The host calls the guest back for memory.
        clock.cross(CallHook::CallingWasm);
        clock.cross(CallHook::ReturningFromWasm);
        spin();
        clock.cross(CallHook::ReturningFromHost);
        clock.cross(CallHook::ReturningFromWasm);
        clock.end_poll(Counting::Polls);
        spin();
        check(&clock, 3);
    }

    #[test]
    fn waiting_in_the_host_does_not() {
        let clock = CpuClock::new();
        clock.cross(CallHook::CallingWasm);
        clock.cross(CallHook::CallingHost);
        clock.end_poll(Counting::Polls);
        spin();
        clock.cross(CallHook::ReturningFromHost);
        clock.cross(CallHook::ReturningFromWasm);
        clock.end_poll(Counting::Polls);
        check(&clock, 0);
    }

    #[test]
    fn where_the_end_of_a_poll_is_not_told_the_guest_counts() {
        let clock = CpuClock::new();
        clock.end_poll(Counting::Guest);
        clock.cross(CallHook::CallingWasm);
        spin();
        clock.cross(CallHook::CallingHost);
        spin();
        clock.cross(CallHook::ReturningFromHost);
        clock.cross(CallHook::ReturningFromWasm);
        spin();
        check(&clock, 1);
    }

    #[tokio::test]
    async fn what_is_followed_counts_without_its_waits() {
        let clock = CpuClock::new();
        clock
            .follow(async {
                spin();
                tokio::time::sleep(Duration::from_millis(50)).await;
                spin();
            })
            .await;
        check(&clock, 2);
    }
}
