//! Compiles grammars for one model, each once.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;

use super::cache::{Cache, Outcome};
use super::grammar::Grammar;
use super::limits::ConstraintLimits;
use super::source::GrammarSource;
use super::threads;
use super::vocabulary::Vocabulary;
use super::watchdog::Watchdog;
use crate::error::Error;
use crate::tokenizer::Tokenizer;

/// Compiles grammars for one model. Cheap to clone; the clones share one cache.
///
/// The work is done on threads of its own, neither on the caller's nor on the
/// engine's. The model's vocabulary is read with the first grammar.
#[derive(Clone)]
pub struct GrammarCompiler {
    inner: Arc<Inner>,
}

struct Inner {
    tokenizer: Arc<dyn Tokenizer>,
    limits: ConstraintLimits,
    model: OnceLock<Result<Model, Error>>,
    state: Mutex<State>,
}

/// What all grammars of a model share.
#[derive(Clone)]
struct Model {
    vocabulary: Arc<Vocabulary>,
    watchdog: Arc<Watchdog>,
}

#[derive(Default)]
struct State {
    cache: Cache,
    queue: VecDeque<Job>,
    /// Threads that take jobs from the queue.
    workers: usize,
    /// Compilations that go on past their time.
    strays: usize,
    /// Compilations ever begun.
    compiled: u64,
}

struct Job {
    source: GrammarSource,
    outcome: watch::Sender<Outcome>,
}

impl std::fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrammarCompiler").field("limits", &self.inner.limits).finish_non_exhaustive()
    }
}

impl GrammarCompiler {
    /// A compiler for the model of this tokenizer. Does nothing yet.
    #[must_use]
    pub fn new(tokenizer: Arc<dyn Tokenizer>, limits: ConstraintLimits) -> Self {
        let inner = Inner { tokenizer, limits, model: OnceLock::new(), state: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Compiles a grammar, or takes it from the cache. The work begins with the
    /// call and goes on if the future is dropped; whoever asks for the same source
    /// meanwhile waits for the same work.
    ///
    /// # Errors
    /// [`Error::Constraint`] if the source is malformed, asks for what cannot be
    /// enforced, matches nothing, or is past a limit. [`Error::Busy`] if too many
    /// compilations wait or are going on.
    pub fn compile(&self, source: GrammarSource) -> impl Future<Output = Result<Grammar, Error>> + Send + use<> {
        let outcome = self.inner.outcome(source);
        async move {
            let mut outcome = outcome?;
            let outcome = outcome.wait_for(Option::is_some).await.map_err(|_| Error::Cancelled)?;
            outcome.clone().unwrap_or(Err(Error::Cancelled))
        }
    }

    /// Whether a grammar is one of this compiler's, and so of its model's
    /// vocabulary.
    #[must_use]
    pub fn made(&self, grammar: &Grammar) -> bool {
        let model = self.inner.model.get().and_then(|model| model.as_ref().ok());
        model.is_some_and(|model| std::ptr::eq(&raw const *model.vocabulary, grammar.vocabulary()))
    }

    /// How many compilations were begun so far; what came from the cache is not
    /// among them.
    #[must_use]
    pub fn compilations(&self) -> u64 {
        self.inner.state().compiled
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outcome(self: &Arc<Self>, source: GrammarSource) -> Result<watch::Receiver<Outcome>, Error> {
        let (length, limit) = (source.text().len(), self.limits.source_bytes);
        if length > limit {
            return Err(Error::Constraint(format!(
                "the grammar is {length} bytes long, and at most {limit} are allowed; make it shorter"
            )));
        }
        let mut state = self.state();
        if let Some(outcome) = state.cache.get(&source) {
            return Ok(outcome);
        }
        if state.queue.len() >= self.limits.queue || state.strays >= self.limits.stray_threads {
            return Err(Error::Busy);
        }
        let (outcome, waiting) = watch::channel(None);
        state.cache.insert(source.clone(), waiting.clone());
        state.queue.push_back(Job { source, outcome });
        if state.workers < self.limits.compile_threads.max(1) {
            let this = self.clone();
            if let Err(error) = threads::spawn("nala-grammars", threads::SMALL_STACK, move || this.work()) {
                if let Some(job) = state.queue.pop_back() {
                    state.cache.remove(&job.source);
                }
                return Err(error);
            }
            state.workers += 1;
        }
        Ok(waiting)
    }

    /// Does what is in the queue.
    fn work(self: Arc<Self>) {
        loop {
            let mut state = self.state();
            state.cache.shrink(self.limits.cache_grammars, self.limits.cache_bytes);
            let Some(job) = state.queue.pop_front() else {
                state.workers -= 1;
                return;
            };
            state.compiled += 1;
            drop(state);
            self.run(job);
        }
    }

    fn run(self: &Arc<Self>, job: Job) {
        // Not within the time of whoever happens to come first.
        let model = match self.model.get_or_init(|| self.read_model()) {
            Ok(model) => model.clone(),
            Err(error) => {
                job.outcome.send_replace(Some(Err(error.clone())));
                return;
            }
        };
        let Job { source, outcome } = job;
        let outcome = Arc::new(outcome);
        let (done, end) = sync_channel(1);
        let (late, limits) = (outcome.clone(), self.limits.clone());
        let body = move || {
            let compile = || Grammar::compile(&source, model.vocabulary, model.watchdog, &limits);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(compile));
            let result = result.unwrap_or_else(|_| Err(Error::Constraint("this grammar cannot be handled".to_owned())));
            late.send_replace(Some(result));
            // The supervisor may have given up.
            let _ = done.send(());
        };
        match threads::spawn("nala-grammar", threads::DEEP_STACK, body) {
            Ok(()) => self.supervise(&outcome, end),
            Err(error) => {
                outcome.send_replace(Some(Err(error)));
            }
        }
    }

    /// Waits for a compilation, but not longer than its time.
    fn supervise(self: &Arc<Self>, outcome: &watch::Sender<Outcome>, end: Receiver<()>) {
        let time = self.limits.compile_time;
        if end.recv_timeout(time) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        self.state().strays += 1;
        // What it comes to in the end replaces this.
        outcome.send_if_modified(|outcome| {
            let late = outcome.is_none();
            if late {
                *outcome = Some(Err(Error::Constraint(format!(
                    "the grammar could not be compiled within {} ms; make it simpler",
                    time.as_millis()
                ))));
            }
            late
        });
        let this = self.clone();
        let wait = move || {
            let _ = end.recv();
            this.state().strays -= 1;
        };
        if threads::spawn("nala-grammar-stray", threads::SMALL_STACK, wait).is_err() {
            // Without a thread to wait on, this one would have to; it may as well
            // not count what it cannot see end.
            self.state().strays -= 1;
        }
    }

    fn read_model(&self) -> Result<Model, Error> {
        let vocabulary = Arc::new(Vocabulary::new(self.tokenizer.clone(), &self.limits)?);
        Ok(Model { vocabulary, watchdog: Arc::new(Watchdog::start()?) })
    }

    #[cfg(test)]
    fn kept(&self) -> usize {
        self.state().cache.len()
    }
}

#[cfg(test)]
impl GrammarCompiler {
    pub(super) fn kept(&self) -> usize {
        self.inner.kept()
    }
}
