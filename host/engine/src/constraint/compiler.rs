//! Compiles grammars for one model, each once.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;

use super::cache::{Cache, Outcome};
use super::grammar::Grammar;
use super::keeper::{self, Running};
use super::limits::ConstraintLimits;
use super::source::GrammarSource;
use super::threads;
use super::vocabulary::Vocabulary;
use crate::error::Error;
use crate::tokenizer::Tokenizer;

/// Compiles grammars for one model. Cheap to clone; the clones share one cache.
///
/// The work is done on threads of its own, neither on the caller's nor on the
/// engine's. The model's vocabulary is read with the first grammar.
#[derive(Clone)]
pub struct GrammarCompiler {
    open: Arc<Open>,
}

/// What the clones share. Its end is that of the compiler's thread, once that has done
/// what was asked for.
struct Open(Arc<Inner>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.wake.notify_one();
        self.0.work.notify_all();
    }
}

pub(super) struct Inner {
    tokenizer: Arc<dyn Tokenizer>,
    pub(super) limits: ConstraintLimits,
    vocabulary: OnceLock<Result<Arc<Vocabulary>, Error>>,
    state: Mutex<State>,
    /// Something has come that the keeper waits for.
    pub(super) wake: Condvar,
    /// A job has come for the threads that look for one.
    pub(super) work: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) cache: Cache,
    pub(super) queue: VecDeque<Job>,
    /// Threads that wait for a job, or are about to.
    pub(super) looking: usize,
    /// Compilations that go on, those past their time included.
    pub(super) running: Vec<Running>,
    /// Compilations ever begun.
    pub(super) compiled: u64,
    /// Whether there is a thread that keeps all of this.
    pub(super) is_kept: bool,
    /// Whether nobody can ask for more.
    pub(super) is_closed: bool,
}

pub(super) struct Job {
    pub(super) source: GrammarSource,
    pub(super) outcome: Arc<watch::Sender<Outcome>>,
}

impl std::fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrammarCompiler").field("limits", &self.open.0.limits).finish_non_exhaustive()
    }
}

impl GrammarCompiler {
    /// A compiler for the model of this tokenizer. It has a thread from now on, which is
    /// as nice as the calling one: others ask for grammars from threads that have stepped
    /// back behind all else, and this one has to keep to time.
    #[must_use]
    pub fn new(tokenizer: Arc<dyn Tokenizer>, limits: ConstraintLimits) -> Self {
        let inner = Arc::new(Inner {
            tokenizer,
            limits,
            vocabulary: OnceLock::new(),
            state: Mutex::default(),
            wake: Condvar::new(),
            work: Condvar::new(),
        });
        // Where there is no thread it is tried again with each grammar.
        let _ = inner.keep(&mut inner.state());
        Self { open: Arc::new(Open(inner)) }
    }

    /// Compiles a grammar, or takes it from the cache. The work begins with the
    /// call and goes on if the future is dropped; whoever asks for the same source
    /// meanwhile waits for the same work.
    ///
    /// # Errors
    /// [`Error::Constraint`] if the source is malformed, asks for what cannot be
    /// enforced, matches nothing, or is past a limit. [`Error::Busy`] if too many
    /// compilations wait or are going on, or the machine has too little time for this one.
    pub fn compile(&self, source: GrammarSource) -> impl Future<Output = Result<Grammar, Error>> + Send + use<> {
        let outcome = self.open.0.outcome(source);
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
        let vocabulary = self.open.0.vocabulary.get().and_then(|vocabulary| vocabulary.as_ref().ok());
        vocabulary.is_some_and(|vocabulary| std::ptr::eq(&raw const **vocabulary, grammar.vocabulary()))
    }

    /// How many compilations were begun so far; what came from the cache is not
    /// among them.
    #[must_use]
    pub fn compilations(&self) -> u64 {
        self.open.0.state().compiled
    }
}

impl Inner {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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
        let strays = state.running.iter().filter(|running| running.is_late()).count();
        if state.queue.len() >= self.limits.queue || strays >= self.limits.stray_threads {
            return Err(Error::Busy);
        }
        self.keep(&mut state)?;
        let (outcome, waiting) = watch::channel(None);
        state.cache.insert(source.clone(), waiting.clone());
        state.queue.push_back(Job { source, outcome: Arc::new(outcome) });
        match state.looking >= state.queue.len() {
            true => self.work.notify_one(),
            false => self.wake.notify_one(),
        }
        Ok(waiting)
    }

    /// Sees to it that there is a thread that does what is in the queue.
    fn keep(self: &Arc<Self>, state: &mut State) -> Result<(), Error> {
        if !state.is_kept {
            let this = Arc::clone(self);
            threads::spawn("nala-grammars", threads::SMALL_STACK, move || keeper::keep(&this))?;
            state.is_kept = true;
        }
        Ok(())
    }

    /// The model's vocabulary, read by whoever is first.
    pub(super) fn vocabulary(&self) -> Result<Arc<Vocabulary>, Error> {
        let read = || Vocabulary::new(self.tokenizer.clone(), &self.limits).map(Arc::new);
        self.vocabulary.get_or_init(read).clone()
    }
}

#[cfg(test)]
impl GrammarCompiler {
    pub(super) fn kept(&self) -> usize {
        self.open.0.state().cache.len()
    }

    /// How many threads wait for a job.
    pub(super) fn looking(&self) -> usize {
        self.open.0.state().looking
    }

    pub(super) fn is_compiling(&self) -> bool {
        let state = self.open.0.state();
        !state.queue.is_empty() || !state.running.is_empty()
    }
}
