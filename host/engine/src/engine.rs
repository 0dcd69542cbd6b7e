//! The handles through which everybody else uses a model.

mod draft;
mod embed;
mod generation;
mod session;
mod submit;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use thiserror::Error as ThisError;
use tokio::sync::{Notify, oneshot};

use crate::backend::{Abilities, BackendLimits, LoadedModel, ModelInfo};
use crate::command::{Command, NewSession, Reply, Seat, SessionId};
use crate::config::EngineConfig;
use crate::constraint::{ConstraintLimits, Grammar, GrammarCompiler, GrammarSource};
use crate::error::Error;
use crate::metrics::EngineMetrics;
use crate::thread::{self, Setup};
use crate::tokenizer::Tokenizer;
pub use embed::{EmbedOptions, MAX_EMBEDDING_INPUTS};
pub use generation::{Generation, Readiness};
pub use session::{Session, SessionOptions};
pub use submit::{Step, Submitted, submit};

/// Why an engine did not start.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum StartError {
    /// The backend could not be made, for example for want of memory.
    #[error("the model's context could not be created: {0}")]
    Backend(String),
    /// The draft model has other tokens than the model.
    #[error("the draft model does not fit the model: {0}; give one of the same family")]
    Draft(String),
    /// The operating system gave no thread.
    #[error("no thread for the engine: {0}")]
    Thread(#[from] std::io::Error),
}

/// A model being served. A cheap handle: clones share the engine.
///
/// The engine ends with [`Engine::shutdown`], or when the last handle, session
/// and generation is gone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    info: ModelInfo,
    limits: BackendLimits,
    abilities: Abilities,
    config: EngineConfig,
    tokenizer: Arc<dyn Tokenizer>,
    metrics: EngineMetrics,
    commands: Sender<Command>,
    steps: Arc<AtomicU64>,
    next_session: AtomicU64,
    open_sessions: Arc<AtomicU32>,
    thread: Mutex<Option<JoinHandle<()>>>,
    ended: Arc<Ended>,
    grammars: GrammarCompiler,
}

/// Says when the engine thread is through.
#[derive(Default)]
struct Ended {
    done: AtomicBool,
    notify: Notify,
}

impl Engine {
    /// Starts the engine thread and waits until the backend stands, which can
    /// take seconds: call it where blocking is fine.
    ///
    /// # Errors
    /// [`StartError`] if the backend or the thread cannot be had.
    pub fn start(name: impl Into<String>, model: LoadedModel, config: EngineConfig) -> Result<Self, StartError> {
        Self::start_counting(name, model, config, EngineMetrics::default())
    }

    /// As [`Engine::start`], counting on in what an earlier engine of the model
    /// has counted in.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_counting(
        name: impl Into<String>,
        model: LoadedModel,
        config: EngineConfig,
        metrics: EngineMetrics,
    ) -> Result<Self, StartError> {
        let name = name.into();
        let steps = Arc::new(AtomicU64::new(0));
        let ended = Arc::new(Ended::default());
        let (commands, receiver) = channel();
        let (ready, started) = channel();
        let draft = model.draft.map(|draft| draft::backend_for(&*model.tokenizer, *draft)).transpose()?;
        let setup = Setup {
            backend: model.backend,
            draft,
            tokenizer: Arc::clone(&model.tokenizer),
            config,
            metrics: metrics.clone(),
            steps: Arc::clone(&steps),
            commands: receiver,
        };
        let signal = Arc::clone(&ended);
        let thread = std::thread::Builder::new().name(format!("engine {name}")).spawn(move || {
            // The receiver is gone only if `start` itself is.
            thread::main(setup, |limits| drop(ready.send(limits)));
            signal.done.store(true, Ordering::Release);
            signal.notify.notify_waiters();
        })?;
        let (limits, abilities) = started
            .recv()
            .unwrap_or_else(|_| Err("the backend panicked while it was made".into()))
            .map_err(StartError::Backend)?;
        let grammars = GrammarCompiler::new(Arc::clone(&model.tokenizer), ConstraintLimits::default());
        let shared = Shared {
            name,
            info: model.info,
            limits,
            abilities,
            config,
            tokenizer: model.tokenizer,
            metrics,
            commands,
            steps,
            next_session: AtomicU64::new(0),
            open_sessions: Arc::default(),
            thread: Mutex::new(Some(thread)),
            ended,
            grammars,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The name the model is served by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// What is known of the model.
    #[must_use]
    pub fn info(&self) -> &ModelInfo {
        &self.shared.info
    }

    /// What the backend can hold.
    #[must_use]
    pub fn limits(&self) -> BackendLimits {
        self.shared.limits
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> EngineConfig {
        self.shared.config
    }

    /// The model's vocabulary.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<dyn Tokenizer> {
        &self.shared.tokenizer
    }

    /// What the engine counts.
    #[must_use]
    pub fn metrics(&self) -> &EngineMetrics {
        &self.shared.metrics
    }

    /// Whether the engine thread still serves.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.shared.ended.done.load(Ordering::Acquire)
    }

    /// Opens an empty session.
    ///
    /// # Errors
    /// [`Error::Busy`] at [`EngineConfig::max_sessions`], where a session that was
    /// dropped counts until the engine has freed it, within a step;
    /// [`Error::InvalidArgument`] for a limit of 0 tokens.
    pub fn open_session(&self, options: SessionOptions) -> Result<Session, Error> {
        let (session, new) = self.shared.new_session(&options)?;
        self.shared.send(Command::Open(new))?;
        Ok(session)
    }

    /// Opens a session that holds what was saved under a name of its scope. None:
    /// nothing was.
    ///
    /// # Errors
    /// As [`Engine::open_session`], and [`Error::ContextFull`] for more tokens
    /// than the options allow.
    pub async fn restore_session(&self, options: SessionOptions, name: &str) -> Result<Option<Session>, Error> {
        let (mut session, new) = self.shared.new_session(&options)?;
        let name = name.to_owned();
        let found = self.shared.ask(|reply| Command::Restore { name, new, reply }).await?;
        Ok(found.map(|grammar_bytes| {
            session.grammar_bytes = grammar_bytes;
            session
        }))
    }

    /// What the backend can do with sequences.
    #[must_use]
    pub fn abilities(&self) -> Abilities {
        self.shared.abilities
    }

    /// Compiles a grammar for [`Session::constrain`]. One that was compiled before,
    /// by whomever, is found again; hostile ones cost their limits and nobody else
    /// anything, see [`ConstraintLimits`].
    ///
    /// # Errors
    /// [`Error::Constraint`] for a source that is wrong, beyond the limits, or
    /// matches nothing; [`Error::Busy`] when too many are being compiled.
    pub async fn compile_grammar(&self, source: GrammarSource) -> Result<Grammar, Error> {
        self.shared.grammars.compile(source).await
    }

    /// Ends the engine: what runs fails as cancelled, then the engine thread
    /// ends and with it the backend.
    pub async fn shutdown(&self) {
        // An engine that has already ended takes no more commands.
        let _ = self.shared.send(Command::Shutdown);
        loop {
            let notified = self.shared.ended.notify.notified();
            if self.shared.ended.done.load(Ordering::Acquire) {
                break;
            }
            notified.await;
        }
        let thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It has said that it is through, so this does not block.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// A session's handle, and what makes the engine thread know of it.
    fn new_session(self: &Arc<Self>, options: &SessionOptions) -> Result<(Session, NewSession), Error> {
        let max_tokens = options.max_tokens.unwrap_or(self.limits.sequence_tokens);
        if max_tokens == 0 {
            return Err(Error::InvalidArgument("max-tokens must be at least 1".into()));
        }
        let adapter = options.adapter.as_deref().map(|name| self.adapter(name)).transpose()?;
        let Some(seat) = Seat::take(&self.open_sessions, self.config.max_sessions) else { return Err(Error::Busy) };
        let session = Session {
            id: SessionId(self.next_session.fetch_add(1, Ordering::Relaxed)),
            shared: Arc::clone(self),
            state: Arc::default(),
            working: Arc::default(),
            runs: 0,
            grammar_bytes: 0,
            options: SessionOptions { max_tokens: Some(max_tokens), ..options.clone() },
        };
        let (state, scope) = (Arc::clone(&session.state), Arc::clone(&options.scope));
        let (tenant, priority) = (options.tenant.clone(), options.priority);
        let new = NewSession { id: session.id, seat, state, max_tokens, scope, tenant, priority, adapter };
        Ok((session, new))
    }

    /// The place of an adapter among those of the model.
    fn adapter(&self, name: &str) -> Result<usize, Error> {
        let known = &self.info.adapters;
        known.iter().position(|other| other == name).ok_or_else(|| {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::InvalidArgument(format!("the model has no adapter \"{name}\"; it was loaded with: {known}"))
        })
    }

    /// Sends a command and waits for its answer.
    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply))?;
        answer.await.unwrap_or(Err(Error::Cancelled))
    }

    fn send(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).map_err(|_| Error::Cancelled)
    }
}
