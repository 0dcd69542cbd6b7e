//! Measures the CPU time of a guest's own code.
//!
//! wasmtime calls a hook at every border between the guest and the host, and
//! the thread's CPU clock is read there. What happens while the guest waits in
//! a host call is not the guest's, and between two borders a store never
//! changes its thread, except where it yields to the epoch, which stops and
//! starts the clock itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime::CallHook;

/// Not in the guest's code.
const STOPPED: u64 = u64::MAX;

/// CPU time of one store. Written by the one task that runs the store.
#[derive(Debug)]
pub(crate) struct CpuClock {
    /// Nanoseconds of the stretches that are over.
    spent: AtomicU64,
    /// Where the thread's clock stood at the start of this stretch.
    since: AtomicU64,
}

impl CpuClock {
    pub(crate) fn new() -> Self {
        Self { spent: AtomicU64::new(0), since: AtomicU64::new(STOPPED) }
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

    /// The guest's code begins or goes on.
    pub(crate) fn start(&self) {
        self.since.store(thread_nanos(), Ordering::Relaxed);
    }

    /// The guest's code ends or waits.
    pub(crate) fn stop(&self) {
        let used = self.used();
        self.since.store(STOPPED, Ordering::Relaxed);
        self.spent.store(used.as_nanos().try_into().unwrap_or(STOPPED - 1), Ordering::Relaxed);
    }

    /// Follows the guest over a border.
    pub(crate) fn cross(&self, hook: CallHook) {
        match hook {
            CallHook::CallingWasm | CallHook::ReturningFromHost => self.start(),
            CallHook::ReturningFromWasm | CallHook::CallingHost => self.stop(),
        }
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
    fn only_the_guests_stretches_count() {
        let clock = CpuClock::new();
        clock.cross(CallHook::CallingWasm);
        spin();
        assert!(clock.used() >= Duration::from_millis(20), "seen while it runs");
        clock.cross(CallHook::CallingHost);
        spin();
        clock.cross(CallHook::ReturningFromHost);
        clock.cross(CallHook::ReturningFromWasm);
        let used = clock.used();
        assert!(used >= Duration::from_millis(20) && used < Duration::from_millis(39), "{used:?}");
    }
}
