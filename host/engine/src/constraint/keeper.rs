//! The thread that sees to it that there are threads which compile, and keeps an eye on
//! the time.
//!
//! It does not compile itself, and does not step back as the threads do that compile:
//! what it starts is as nice as it is.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nala_machine::ThreadClock;
use tokio::sync::watch;

use super::cache::Outcome;
use super::compiler::{Inner, State};
use super::limits::ConstraintLimits;
use super::threads::{Late, Stopwatch};
use super::watchdog::Watchdog;
use super::workers;
use crate::error::Error;

/// Times are looked at no more often.
const GRAIN: Duration = Duration::from_millis(10);

/// A compilation that goes on.
pub(super) struct Running {
    /// Counted from the compiler's first.
    name: u64,
    outcome: Arc<watch::Sender<Outcome>>,
    stage: Stage,
}

enum Stage {
    /// The model's vocabulary is being read, which is in nobody's time.
    Beginning,
    Timed(Stopwatch),
    /// Whoever waited has been told. It goes on until it is through, since nothing can
    /// end it.
    Late,
}

impl Running {
    pub(super) fn begin(name: u64, outcome: Arc<watch::Sender<Outcome>>) -> Self {
        Self { name, outcome, stage: Stage::Beginning }
    }

    /// Whether it is past its time.
    pub(super) fn is_late(&self) -> bool {
        matches!(self.stage, Stage::Late)
    }

    /// Tells who waits if it is past its time. Else how long to wait before it can be.
    fn look(&mut self, limits: &ConstraintLimits, now: Instant) -> Option<Duration> {
        let Stage::Timed(stopwatch) = &mut self.stage else { return None };
        let late = match stopwatch.look(limits.compile_time, now) {
            Ok(next) => return Some(next.max(GRAIN)),
            Err(late) => late,
        };
        self.stage = Stage::Late;
        // What it comes to in the end replaces this.
        self.outcome.send_if_modified(|outcome| {
            let nobody_was_told = outcome.is_none();
            if nobody_was_told {
                *outcome = Some(Err(told(late, limits)));
            }
            nobody_was_told
        });
        None
    }
}

fn told(late: Late, limits: &ConstraintLimits) -> Error {
    match late {
        Late::Worked => Error::Constraint(format!(
            "the grammar could not be compiled within {} ms; make it simpler",
            limits.compile_time.as_millis()
        )),
        // Not the grammar's fault: it may be asked for again.
        Late::Waited => Error::Busy,
    }
}

/// Has done what is in the queue, until nobody can ask for more and all of it is done.
pub(super) fn keep(inner: &Arc<Inner>) {
    let mut watchdog = None;
    let mut state = inner.state();
    loop {
        state.cache.shrink(inner.limits.cache_grammars, inner.limits.cache_bytes);
        let now = Instant::now();
        let next = state.running.iter_mut().filter_map(|running| running.look(&inner.limits, now)).min();
        if state.queue.len() > state.looking && state.lacks_threads(&inner.limits) {
            let started = watching(&mut watchdog).and_then(|watchdog| workers::start(inner, &mut state, watchdog));
            match started {
                Ok(()) => continue,
                // Those that there are go on.
                Err(_) if state.looking + state.in_time() > 0 => {}
                Err(error) => {
                    state.refuse_next(error);
                    continue;
                }
            }
        }
        if state.is_closed && state.queue.is_empty() && state.in_time() == 0 {
            return;
        }
        state = wait(inner, state, next);
    }
}

fn wait<'a>(inner: &'a Inner, state: MutexGuard<'a, State>, next: Option<Duration>) -> MutexGuard<'a, State> {
    match next {
        Some(next) => inner.wake.wait_timeout(state, next).unwrap_or_else(PoisonError::into_inner).0,
        None => inner.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
    }
}

/// The watchdog of all grammars, started with the first.
fn watching(watchdog: &mut Option<Arc<Watchdog>>) -> Result<Arc<Watchdog>, Error> {
    match watchdog {
        Some(watchdog) => Ok(Arc::clone(watchdog)),
        None => Ok(Arc::clone(watchdog.insert(Arc::new(Watchdog::start()?)))),
    }
}

impl State {
    /// How many compilations go on that are not past their time.
    fn in_time(&self) -> usize {
        self.running.iter().filter(|running| !running.is_late()).count()
    }

    /// Whether there are fewer threads that compile than there may be.
    fn lacks_threads(&self, limits: &ConstraintLimits) -> bool {
        self.looking + self.in_time() < limits.compile_threads.max(1)
    }

    /// Tells whoever waits for the next job that it cannot be done.
    fn refuse_next(&mut self, error: Error) {
        if let Some(job) = self.queue.pop_front() {
            job.outcome.send_replace(Some(Err(error)));
            // Says nothing of the grammar, so the next who asks for it is not told the same.
            self.cache.remove(&job.source);
        }
    }
}

impl Inner {
    /// The calling thread begins to compile now.
    pub(super) fn is_timed(&self, name: u64) {
        let mut state = self.state();
        if let Some(running) = state.running.iter_mut().find(|running| running.name == name) {
            running.stage = Stage::Timed(Stopwatch::start(ThreadClock::of_this_thread()));
        }
        self.wake.notify_one();
    }

    /// A compilation has come to something. Whether its thread looks for another one from
    /// now on: not where it was late and there is one in its place.
    pub(super) fn is_through(&self, name: u64) -> bool {
        let mut state = self.state();
        state.running.retain(|running| running.name != name);
        let looks = state.lacks_threads(&self.limits);
        state.looking += usize::from(looks);
        self.wake.notify_one();
        looks
    }

    /// A thread that looked for a job ends.
    pub(super) fn looks_no_longer(&self) {
        self.state().looking -= 1;
        self.wake.notify_one();
    }
}
