//! Measures the CPU time of a guest: its own code, and what the host does for
//! it.
//!
//! Reading a thread's CPU clock is a system call, too dear for each call of the
//! host. So it is read twice a poll of the store: when wasmtime's hook first
//! tells of a border that the guest crosses, and when whoever polls the store
//! says that the poll is over. All the thread did between is work for this
//! store. What is done for it elsewhere is measured there and charged.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::CallHook;

use crate::error::CpuUsedUp;
use crate::outcome::{Outcome, Stopped};
use crate::turns::Place;

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
    /// What the store may use.
    budget: Duration,
    /// Where it is noted that the store has used it up.
    outcome: Arc<Outcome>,
    /// Nanoseconds of the stretches that are over.
    spent: AtomicU64,
    /// Where the thread's clock stood at the start of this stretch.
    since: AtomicU64,
    /// A [`Counting`].
    counting: AtomicU8,
    /// The store's turn at computing, for this poll.
    place: Mutex<Option<Place>>,
}

impl CpuClock {
    pub(crate) fn new(budget: Duration, outcome: Arc<Outcome>) -> Self {
        Self {
            budget,
            outcome,
            spent: AtomicU64::new(0),
            since: AtomicU64::new(STOPPED),
            counting: AtomicU8::new(Counting::Polls as u8),
            place: Mutex::default(),
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

    /// Adds time that others spent for the store.
    pub(crate) fn charge(&self, time: Duration) {
        let spent = Duration::from_nanos(self.spent.load(Ordering::Relaxed)).saturating_add(time);
        self.spent.store(spent.as_nanos().try_into().unwrap_or(STOPPED - 1), Ordering::Relaxed);
    }

    /// Whether the store may go on.
    ///
    /// # Errors
    /// To be raised in the guest, which has used up its time.
    pub(crate) fn check(&self) -> Result<(), CpuUsedUp> {
        if self.used() > self.budget {
            self.outcome.stop(Stopped::Cpu);
            return Err(CpuUsedUp);
        }
        Ok(())
    }

    /// Whether somebody will say that this poll is over.
    pub(crate) fn end_is_told(&self) -> bool {
        self.counting.load(Ordering::Relaxed) == Counting::Polls as u8
    }

    /// The store computes in a turn of its own until the poll is over. To be called in a
    /// poll whose [end is told](Self::end_is_told): else the turn would last while the
    /// guest waits.
    pub(crate) fn take_turn(&self, place: Option<Place>) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// A poll of the store is over: the thread is others' now. `next` counts in
    /// the next one.
    pub(crate) fn end_poll(&self, next: Counting) {
        self.stop();
        self.take_turn(None);
        self.counting.store(next as u8, Ordering::Relaxed);
    }

    /// Follows the guest over a border.
    pub(crate) fn cross(&self, hook: CallHook) {
        let only_guest = !self.end_is_told();
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

/// Works, and says for how long.
///
/// The work may hand a part of itself to a thread of its own, whose clock cannot
/// be read from here. So the time on the wall counts where it is longer.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = (Instant::now(), thread_nanos());
    let result = work();
    let cpu = Duration::from_nanos(thread_nanos().saturating_sub(begin.1));
    (result, begin.0.elapsed().max(cpu))
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

    fn clock() -> CpuClock {
        CpuClock::new(Duration::from_secs(1), Arc::default())
    }

    fn check(clock: &CpuClock, spins: u64) {
        let used = clock.used();
        assert!(used >= Duration::from_millis(20 * spins), "{used:?}");
        assert!(used < Duration::from_millis(20 * spins + 19), "{used:?}");
    }

    #[test]
    fn work_counts_in_the_guest_and_in_the_host() {
        let clock = clock();
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
        let clock = clock();
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
        let clock = clock();
        assert!(clock.end_is_told());
        clock.end_poll(Counting::Guest);
        assert!(!clock.end_is_told());
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
        let clock = clock();
        clock
            .follow(async {
                spin();
                tokio::time::sleep(Duration::from_millis(50)).await;
                spin();
            })
            .await;
        check(&clock, 2);
    }

    #[test]
    fn what_is_charged_counts_once_and_ends_in_the_limit() {
        let clock = clock();
        clock.start();
        spin();
        clock.charge(Duration::from_millis(20));
        clock.charge(Duration::from_millis(20));
        clock.stop();
        check(&clock, 3);
        assert!(clock.check().is_ok());
        clock.charge(Duration::MAX);
        assert!(clock.check().is_err());
        assert_eq!(clock.outcome.stopped(), Some(Stopped::Cpu));
    }

    #[test]
    fn work_on_a_further_thread_is_measured_by_the_wall() {
        let ((), time) = measure(|| std::thread::spawn(spin).join().unwrap());
        assert!(time >= Duration::from_millis(20), "{time:?}");
    }
}
