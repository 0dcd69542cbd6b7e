//! The thread that has grammars compiled, and keeps an eye on the time.
//!
//! It does not compile itself, and does not step back as the threads do that compile:
//! what it starts is as nice as it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nala_machine::ThreadClock;
use tokio::sync::watch;

use super::cache::Outcome;
use super::compiler::{Inner, Job, State};
use super::grammar::Grammar;
use super::limits::ConstraintLimits;
use super::threads::{self, Late, Stopwatch};
use super::watchdog::Watchdog;
use crate::affinity;
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
        let State { cache, running, .. } = &mut *state;
        cache.shrink(inner.limits.cache_grammars, inner.limits.cache_bytes);
        let now = Instant::now();
        let next = running.iter_mut().filter_map(|running| running.look(&inner.limits, now)).min();
        let in_time = running.iter().filter(|running| !running.is_late()).count();
        if in_time < inner.limits.compile_threads.max(1)
            && let Some(job) = state.queue.pop_front()
        {
            state.compiled += 1;
            begin(inner, &mut state, &mut watchdog, job);
            continue;
        }
        if state.is_closed && in_time == 0 {
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

/// Starts a thread for a job.
fn begin(inner: &Arc<Inner>, state: &mut State, watchdog: &mut Option<Arc<Watchdog>>, job: Job) {
    let Job { source, outcome } = job;
    let outcome = Arc::new(outcome);
    let name = state.compiled;
    let started = watching(watchdog).and_then(|watchdog| {
        let (inner, outcome, source) = (Arc::clone(inner), Arc::clone(&outcome), source.clone());
        threads::spawn("nala-grammar", threads::DEEP_STACK, move || {
            affinity::step_back(affinity::COMPILING);
            let compile = || {
                let vocabulary = inner.vocabulary()?;
                inner.is_timed(name);
                Grammar::compile(&source, vocabulary, watchdog, &inner.limits)
            };
            let result = catch_unwind(AssertUnwindSafe(compile));
            let result = result.unwrap_or_else(|_| Err(Error::Constraint("this grammar cannot be handled".to_owned())));
            outcome.send_replace(Some(result));
            inner.is_through(name);
        })
    });
    match started {
        Ok(()) => state.running.push(Running { name, outcome, stage: Stage::Beginning }),
        Err(error) => {
            outcome.send_replace(Some(Err(error)));
            // Says nothing of the grammar, so the next who asks for it is not told the same.
            state.cache.remove(&source);
        }
    }
}

/// The watchdog of all grammars, started with the first.
fn watching(watchdog: &mut Option<Arc<Watchdog>>) -> Result<Arc<Watchdog>, Error> {
    match watchdog {
        Some(watchdog) => Ok(Arc::clone(watchdog)),
        None => Ok(Arc::clone(watchdog.insert(Arc::new(Watchdog::start()?)))),
    }
}

impl Inner {
    /// The calling thread begins to compile now.
    fn is_timed(&self, name: u64) {
        let mut state = self.state();
        if let Some(running) = state.running.iter_mut().find(|running| running.name == name) {
            running.stage = Stage::Timed(Stopwatch::start(ThreadClock::of_this_thread()));
        }
        self.wake.notify_one();
    }

    /// A compilation has come to something.
    fn is_through(&self, name: u64) {
        self.state().running.retain(|running| running.name != name);
        self.wake.notify_one();
    }
}
