//! Ends calls of the grammar library that take too long.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use llguidance::CancellationHandle;
use nala_machine::ThreadClock;

use super::threads::{self, Stopwatch};
use crate::error::Error;

/// How often running calls are looked at.
const ROUND: Duration = Duration::from_millis(20);
/// After so many rounds without a call the thread sleeps until there is one.
const IDLE_ROUNDS: u32 = 50;

thread_local! {
    /// Asked of the system once, and not at each call.
    static CLOCK: ThreadClock = ThreadClock::of_this_thread();
}

/// A thread that cancels calls which are past their time.
///
/// Fuel bounds the work of a call in most grammars, and this bounds the rest:
/// the threads that make the calls are few, and everybody's grammars wait for them.
/// What counts is their CPU time, since they step back behind others. The watchdog does
/// not: it is to be started by a thread that has not.
pub(super) struct Watchdog {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    running: Vec<Running>,
    /// Calls ever watched, to name them.
    calls: u64,
    asleep: bool,
    closed: bool,
}

struct Running {
    name: u64,
    stopwatch: Stopwatch,
    time: Duration,
    handle: CancellationHandle,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watchdog {
    pub(super) fn start() -> Result<Self, Error> {
        let inner = Arc::new(Inner { state: Mutex::default(), wake: Condvar::new() });
        let watched = inner.clone();
        threads::spawn("nala-step-watch", threads::SMALL_STACK, move || watch(&watched))?;
        Ok(Self { inner })
    }

    /// Cancels `handle` unless the guard is dropped before this thread has worked for
    /// `time`.
    pub(super) fn watch(&self, handle: &CancellationHandle, time: Duration) -> Watched<'_> {
        let stopwatch = Stopwatch::start(CLOCK.with(|clock| *clock));
        let mut state = self.inner.state();
        state.calls += 1;
        let name = state.calls;
        state.running.push(Running { name, stopwatch, time, handle: handle.clone() });
        if state.asleep {
            self.inner.wake.notify_one();
        }
        Watched { inner: &self.inner, name }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.inner.state().closed = true;
        self.inner.wake.notify_one();
    }
}

/// A call that is being watched.
pub(super) struct Watched<'a> {
    inner: &'a Inner,
    name: u64,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.inner.state().running.retain(|running| running.name != self.name);
    }
}

fn watch(inner: &Inner) {
    let mut idle = 0;
    let mut seen = 0;
    let mut state = inner.state();
    while !state.closed {
        let now = Instant::now();
        for Running { stopwatch, time, handle, .. } in &mut state.running {
            if stopwatch.look(*time, now).is_err() {
                handle.cancel();
            }
        }
        idle = if state.calls == seen && state.running.is_empty() { idle + 1 } else { 0 };
        seen = state.calls;
        if idle > IDLE_ROUNDS {
            state.asleep = true;
            state = inner.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep = false;
        } else {
            state = inner.wake.wait_timeout(state, ROUND).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_past_its_time_is_cancelled_and_one_within_it_is_not() {
        let watchdog = Watchdog::start().unwrap();
        let (late, early) = (CancellationHandle::default(), CancellationHandle::default());
        drop(watchdog.watch(&early, ROUND / 20));
        let guard = watchdog.watch(&late, ROUND / 20);
        let began = Instant::now();
        while !late.is_cancelled() && began.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        assert!(late.is_cancelled() && !early.is_cancelled());
        drop(guard);
        assert!(watchdog.inner.state().running.is_empty());
    }
}
