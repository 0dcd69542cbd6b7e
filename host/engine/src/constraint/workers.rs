//! The threads that compile grammars.
//!
//! Each compiles one grammar after the other. A thread that lived for one grammar would
//! hold the model up, as nice as it might be: the system's scheduler knows of a thread how
//! much of the machine it had, and nothing of one that has just been started, which gets
//! a time slice soon.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::compiler::{Inner, Job, State};
use super::grammar::Grammar;
use super::keeper::Running;
use super::threads;
use super::watchdog::Watchdog;
use nala_machine::ThreadClock;

use crate::affinity;
use crate::error::Error;

/// A thread that finds nothing to do for so long ends, and gives back what its stack has
/// come to.
const IDLE: Duration = Duration::from_secs(1);

/// One that has worked for so long for a grammar ends as well: what took that long may have
/// come to much of it.
const LONG: Duration = Duration::from_millis(200);

/// Starts a thread, which is one that looks for work.
pub(super) fn start(inner: &Arc<Inner>, state: &mut State, watchdog: Arc<Watchdog>) -> Result<(), Error> {
    let this = Arc::clone(inner);
    threads::spawn("nala-grammar", threads::DEEP_STACK, move || {
        affinity::step_back(affinity::COMPILING);
        let clock = ThreadClock::of_this_thread();
        while let Some((name, job)) = this.next() {
            let before = clock.used();
            this.compile(name, job, &watchdog);
            let worked = clock.used().zip(before).map(|(used, before)| used.saturating_sub(before));
            let was_long = worked.is_some_and(|worked| worked >= LONG);
            if !this.is_through(name) {
                break;
            }
            if was_long {
                this.looks_no_longer();
                break;
            }
        }
    })?;
    state.looking += 1;
    Ok(())
}

impl Inner {
    /// Waits for a job, and gives it its name. None: there is none for this thread, which
    /// looks no longer.
    fn next(&self) -> Option<(u64, Job)> {
        let nothing = |state: &mut State| state.queue.is_empty() && !state.is_closed;
        let waited = self.work.wait_timeout_while(self.state(), IDLE, nothing);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.looking -= 1;
        let job = state.queue.pop_front()?;
        state.compiled += 1;
        let name = state.compiled;
        state.running.push(Running::begin(name, Arc::clone(&job.outcome)));
        Some((name, job))
    }

    /// Does a job.
    fn compile(&self, name: u64, job: Job, watchdog: &Arc<Watchdog>) {
        let Job { source, outcome } = job;
        let compile = || {
            let vocabulary = self.vocabulary()?;
            self.is_timed(name);
            Grammar::compile(&source, vocabulary, Arc::clone(watchdog), &self.limits)
        };
        let result = catch_unwind(AssertUnwindSafe(compile));
        let result = result.unwrap_or_else(|_| Err(Error::Constraint("this grammar cannot be handled".to_owned())));
        outcome.send_replace(Some(result));
    }
}
