//! Measures the CPU time of a guest: its own code, and what the host does for
//! it.
//!
//! Reading a thread's CPU clock is a system call, too dear for each call of the
//! host. So it is read twice a poll of the store: before and after. All the thread
//! did between is work for this store. What is done for it elsewhere is measured
//! there and charged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::control::RequestControl;
use crate::error::CpuUsedUp;
use crate::outcome::{Outcome, Stopped};
use crate::turns::Place;

/// Not running.
const STOPPED: u64 = u64::MAX;

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
    /// Nanoseconds that were told as fresh.
    told: AtomicU64,
    /// Whether what its polls take is measured elsewhere.
    is_paused: AtomicBool,
    /// The store's turn at computing, for this poll.
    place: Mutex<Option<Place>>,
    /// The request that the store works for, which is told of each stretch.
    request: Option<Arc<RequestControl>>,
}

impl CpuClock {
    pub(crate) fn new(budget: Duration, outcome: Arc<Outcome>, request: Option<Arc<RequestControl>>) -> Self {
        Self {
            budget,
            outcome,
            spent: AtomicU64::new(0),
            since: AtomicU64::new(STOPPED),
            told: AtomicU64::new(0),
            is_paused: AtomicBool::new(false),
            place: Mutex::default(),
            request,
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

    /// What was used since this was last asked.
    pub(crate) fn fresh(&self) -> Duration {
        let used = self.used();
        let nanos = used.as_nanos().try_into().unwrap_or(u64::MAX);
        used.saturating_sub(Duration::from_nanos(self.told.swap(nanos, Ordering::Relaxed)))
    }

    /// A stretch begins, unless one is under way, or the clock is paused.
    pub(crate) fn start(&self) {
        if !self.is_paused.load(Ordering::Relaxed) && self.since.load(Ordering::Relaxed) == STOPPED {
            self.since.store(thread_nanos(), Ordering::Relaxed);
        }
    }

    /// The stretch ends and counts.
    pub(crate) fn stop(&self) {
        let since = self.since.swap(STOPPED, Ordering::Relaxed);
        if since != STOPPED {
            let stretch = Duration::from_nanos(thread_nanos().saturating_sub(since));
            if let Some(request) = &self.request {
                request.computed(stretch);
            }
            self.charge(stretch);
        }
    }

    /// From now on another clock measures what this store's polls take, which is
    /// [charged](Self::charge) then.
    pub(crate) fn pause(&self) {
        self.stop();
        self.is_paused.store(true, Ordering::Relaxed);
    }

    /// The other clock is done.
    pub(crate) fn resume(&self) {
        self.is_paused.store(false, Ordering::Relaxed);
        self.start();
    }

    /// Adds time that others spent for the store.
    pub(crate) fn charge(&self, time: Duration) {
        let spent = Duration::from_nanos(self.spent.load(Ordering::Relaxed)).saturating_add(time);
        self.spent.store(spent.as_nanos().try_into().unwrap_or(STOPPED - 1), Ordering::Relaxed);
    }

    /// Adds what another clock has measured for the store, and what it has told of that.
    pub(crate) fn take_over(&self, other: &Self) {
        self.charge(other.used());
        self.told.fetch_add(other.told.load(Ordering::Relaxed), Ordering::Relaxed);
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

    /// The store computes in a turn of its own until the poll is over.
    pub(crate) fn take_turn(&self, place: Option<Place>) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// A poll of the store is over: the thread is others' now.
    fn end_poll(&self) {
        self.stop();
        self.take_turn(None);
    }

    /// Runs a future that works in the store: what its polls take counts.
    pub(crate) async fn follow<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            self.start();
            let poll = future.as_mut().poll(cx);
            self.end_poll();
            poll
        })
        .await
    }
}

/// Works, and says for how long: CPU time, since work that is done by a thread that steps
/// back may wait for long.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = nala_machine::worked();
    let result = work();
    (result, nala_machine::worked().saturating_sub(begin))
}

/// What this thread has worked, in nanoseconds.
fn thread_nanos() -> u64 {
    u64::try_from(nala_machine::worked().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::*;
    use crate::outbound::Origin;

    fn spin() {
        let end = thread_nanos() + 20_000_000;
        while thread_nanos() < end {}
    }

    fn clock() -> CpuClock {
        CpuClock::new(Duration::from_secs(1), Arc::default(), None)
    }

    fn check(clock: &CpuClock, spins: u64) {
        let used = clock.used();
        assert!(used >= Duration::from_millis(20 * spins), "{used:?}");
        assert!(used < Duration::from_millis(20 * spins + 19), "{used:?}");
    }

    #[test]
    fn only_stretches_count() {
        let clock = clock();
        spin();
        clock.start();
        spin();
        check(&clock, 1);
        clock.stop();
        spin();
        clock.start();
        clock.start();
        spin();
        clock.end_poll();
        spin();
        check(&clock, 2);
    }

    #[test]
    fn polls_of_a_paused_clock_count_elsewhere() {
        let clock = clock();
        clock.start();
        spin();
        clock.pause();
        clock.end_poll();
        clock.start();
        spin();
        check(&clock, 1);
        clock.charge(Duration::from_millis(20));
        clock.resume();
        spin();
        check(&clock, 3);
    }

    #[test]
    fn what_is_fresh_is_told_once() {
        let clock = clock();
        clock.charge(Duration::from_millis(3));
        assert_eq!(clock.fresh(), Duration::from_millis(3));
        assert_eq!(clock.fresh(), Duration::ZERO);
        clock.charge(Duration::from_millis(2));
        assert_eq!((clock.fresh(), clock.used()), (Duration::from_millis(2), Duration::from_millis(5)));
    }

    #[test]
    fn what_another_clock_told_is_not_told_again() {
        let (clock, other) = (clock(), clock());
        clock.charge(Duration::from_millis(1));
        other.charge(Duration::from_millis(3));
        assert_eq!(other.fresh(), Duration::from_millis(3));
        other.charge(Duration::from_millis(2));
        clock.take_over(&other);
        assert_eq!((clock.fresh(), clock.used()), (Duration::from_millis(3), Duration::from_millis(6)));
    }

    #[tokio::test]
    async fn the_request_is_told_of_each_stretch() {
        let request = Arc::new(RequestControl::of_nothing(Origin::client(Handle::current())));
        let clock = CpuClock::new(Duration::from_secs(1), Arc::default(), Some(Arc::clone(&request)));
        let other = CpuClock::new(Duration::from_secs(1), Arc::default(), Some(Arc::clone(&request)));
        // Others measure what is charged.
        clock.charge(Duration::from_secs(1));
        assert!(request.is_short());
        clock.start();
        clock.pause();
        other.follow(async { spin() }).await;
        clock.take_over(&other);
        clock.resume();
        clock.end_poll();
        assert!(!request.is_short() && request.computes_for_long());
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
    fn work_counts_with_that_of_a_further_thread_and_without_waits() {
        let work = || {
            let begin = thread_nanos();
            std::thread::sleep(Duration::from_millis(200));
            spin();
            nala_machine::note_lent(Duration::from_millis(50));
            thread_nanos() - begin
        };
        let (_, time) = measure(work);
        assert!(time >= Duration::from_millis(70) && time < Duration::from_millis(200), "{time:?}");
        let (clock, other) = (clock(), clock());
        clock.start();
        work();
        clock.stop();
        assert!(clock.used() >= Duration::from_millis(70) && other.used().is_zero(), "{:?}", clock.used());
    }
}
