//! The handles through which everybody else uses a model.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error as ThisError;
use tokio::sync::{Notify, oneshot};

use crate::backend::{BackendLimits, LoadedModel, ModelInfo, Token};
use crate::command::{Command, NewSession, Reply, Seat, SessionId, SessionState};
use crate::config::EngineConfig;
use crate::error::Error;
use crate::metrics::EngineMetrics;
use crate::options::{Chunk, GenerateOptions, PrefillInfo};
use crate::outbox::{FlushPolicy, Reader, outbox};
use crate::thread::{self, Setup};
use crate::tokenizer::Tokenizer;
use crate::validate;

/// Why an engine did not start.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum StartError {
    /// The backend could not be made, for example for want of memory.
    #[error("the model's context could not be created: {0}")]
    Backend(String),
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
    config: EngineConfig,
    tokenizer: Arc<dyn Tokenizer>,
    metrics: EngineMetrics,
    commands: Sender<Command>,
    steps: Arc<AtomicU64>,
    next_session: AtomicU64,
    open_sessions: Arc<AtomicU32>,
    thread: Mutex<Option<JoinHandle<()>>>,
    ended: Arc<Ended>,
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
        let setup = Setup {
            backend: model.backend,
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
        let limits = started
            .recv()
            .unwrap_or_else(|_| Err("the backend panicked while it was made".into()))
            .map_err(StartError::Backend)?;
        let shared = Shared {
            name,
            info: model.info,
            limits,
            config,
            tokenizer: model.tokenizer,
            metrics,
            commands,
            steps,
            next_session: AtomicU64::new(0),
            open_sessions: Arc::default(),
            thread: Mutex::new(Some(thread)),
            ended,
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
        let (session, new) = self.shared.new_session(&options)?;
        let name = name.to_owned();
        let found = self.shared.ask(|reply| Command::Restore { name, new, reply }).await?;
        Ok(found.then_some(session))
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
        let Some(seat) = Seat::take(&self.open_sessions, self.config.max_sessions) else { return Err(Error::Busy) };
        let session = Session {
            id: SessionId(self.next_session.fetch_add(1, Ordering::Relaxed)),
            shared: Arc::clone(self),
            state: Arc::default(),
            working: Arc::default(),
            runs: 0,
            options: SessionOptions { max_tokens: Some(max_tokens), ..options.clone() },
        };
        let (state, scope) = (Arc::clone(&session.state), Arc::clone(&options.scope));
        let new = NewSession { id: session.id, seat, state, max_tokens, scope };
        Ok((session, new))
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

/// Fixed at the start of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// The most tokens it may come to hold. None: as many as the context has.
    pub max_tokens: Option<u32>,
    /// Who may share its beginning and the names it saves under: sessions of one
    /// scope find each other's prompts in the prefix cache, those of different
    /// scopes do not, which also shows in how long they take. To be chosen by
    /// the host for whoever the session belongs to.
    pub scope: Arc<str>,
}

/// A sequence of tokens and the model's state after it.
///
/// Dropping it frees its sequence and KV cells before the next batch.
pub struct Session {
    shared: Arc<Shared>,
    id: SessionId,
    state: Arc<SessionState>,
    /// Whether a run goes on.
    working: Arc<AtomicBool>,
    runs: u64,
    options: SessionOptions,
}

impl Session {
    /// How many tokens it holds.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.state.len.load(Ordering::Acquire)
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends tokens and computes the state after them. On an error the
    /// session is as before. Dropping the future undoes the prefill.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a token outside the vocabulary or while a
    /// run goes on, [`Error::ContextFull`], [`Error::Busy`], [`Error::Evicted`],
    /// [`Error::Backend`], and [`Error::Cancelled`] when the engine ends.
    pub async fn prefill(&mut self, tokens: Vec<Token>) -> Result<PrefillInfo, Error> {
        validate::tokens(&tokens, self.shared.limits.vocab)?;
        self.refuse_while_working()?;
        let (reply, result) = oneshot::channel();
        self.shared.send(Command::Prefill { id: self.id, tokens, reply })?;
        let _wake = WakeOnDrop(&self.shared);
        result.await.unwrap_or(Err(Error::Cancelled))
    }

    /// Starts the decode loop and returns at once.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for options out of range or while another run
    /// goes on; [`Error::Busy`] when runs are started and dropped faster than the
    /// engine takes steps. What is found out later comes from
    /// [`Generation::next`].
    pub fn generate(&mut self, options: GenerateOptions) -> Result<Generation, Error> {
        validate::generate(&options, self.shared.limits.vocab)?;
        self.refuse_while_working()?;
        if !self.state.ask_for_run() {
            return Err(Error::Busy);
        }
        let flush = FlushPolicy { tokens: options.flush_tokens.max(1) as usize, after: options.flush_after };
        let (writer, reader) = outbox(flush, self.shared.config.outbox_tokens as usize);
        self.runs += 1;
        let run = self.runs;
        self.shared.send(Command::Generate { id: self.id, run, options: Box::new(options), outbox: writer })?;
        self.working.store(true, Ordering::Release);
        let working = Arc::clone(&self.working);
        Ok(Generation {
            shared: Arc::clone(&self.shared),
            session: self.id,
            run,
            reader,
            working,
            ended: false,
            cancelled: AtomicBool::new(false),
        })
    }

    /// A session that holds what this one holds. The two share their KV cells;
    /// what either adds later is its own.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while a run goes on, [`Error::Busy`] at
    /// [`EngineConfig::max_sessions`], [`Error::Evicted`].
    pub async fn fork(&mut self) -> Result<Session, Error> {
        self.refuse_while_working()?;
        let (session, new) = self.shared.new_session(&self.options)?;
        let id = self.id;
        self.shared.ask(|reply| Command::Fork { id, new, reply }).await?;
        Ok(session)
    }

    /// Shortens the session to `to` tokens and says how many it holds now. Where
    /// the model cannot step back, what is left is computed anew when the session
    /// is used next.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more tokens than there are or while a run
    /// goes on, [`Error::Evicted`].
    pub async fn rewind(&mut self, to: u32) -> Result<u32, Error> {
        self.refuse_while_working()?;
        let id = self.id;
        self.shared.ask(|reply| Command::Rewind { id, to, reply }).await
    }

    /// Takes `count` tokens at `at` out of the session; those behind them move
    /// up and keep what they have seen.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for tokens that are not there or while a run
    /// goes on, [`Error::Unsupported`] where the model cannot do it,
    /// [`Error::Busy`] without room for it, [`Error::Evicted`].
    pub async fn evict(&mut self, at: u32, count: u32) -> Result<(), Error> {
        self.refuse_while_working()?;
        let id = self.id;
        self.shared.ask(|reply| Command::Evict { id, at, count, reply }).await
    }

    /// Moves the state out of the KV cells into RAM until the session is used
    /// again: for a while of waiting, say for a tool. Without room in RAM it
    /// stays where it is.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while a run goes on, [`Error::Evicted`].
    pub async fn park(&mut self) -> Result<(), Error> {
        self.refuse_while_working()?;
        let id = self.id;
        self.shared.ask(|reply| Command::Park { id, reply }).await
    }

    /// Keeps what the session holds under a name of its scope, in place of what
    /// was there, for [`Engine::restore_session`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while a run goes on, for a name that does not
    /// have 1 to 256 bytes, and at [`EngineConfig::max_saved`]; [`Error::Busy`]
    /// without room in RAM, [`Error::Evicted`].
    pub async fn save(&mut self, name: &str) -> Result<(), Error> {
        validate::name(name)?;
        self.refuse_while_working()?;
        let (id, name) = (self.id, name.to_owned());
        self.shared.ask(|reply| Command::Save { id, name, reply }).await
    }

    fn refuse_while_working(&self) -> Result<(), Error> {
        if self.working.load(Ordering::Acquire) {
            let text = "the session's run still goes on; take it to its end, or drop it, first";
            return Err(Error::InvalidArgument(text.into()));
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let at_step = self.shared.steps.load(Ordering::Acquire);
        // An engine that has ended has freed it already.
        let _ = self.shared.send(Command::Close { id: self.id, at_step });
    }
}

/// Makes an idle engine look at a prefill that nobody waits for any more.
struct WakeOnDrop<'a>(&'a Shared);

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(Command::Wake);
    }
}

/// A run of the decode loop. Dropping it cancels the run.
pub struct Generation {
    shared: Arc<Shared>,
    session: SessionId,
    run: u64,
    reader: Reader,
    working: Arc<AtomicBool>,
    ended: bool,
    /// Whether the engine was told to end it: once is enough.
    cancelled: AtomicBool,
}

impl Generation {
    /// Waits for the next chunk. None: the run has ended and everything was
    /// taken. Cancel safe: a dropped future loses nothing.
    ///
    /// # Errors
    /// What ended the run early, see [`Error`]; tokens that came before are
    /// handed over first.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(item) = self.try_next() {
                return item;
            }
            self.reader.ready().await;
        }
    }

    /// The next chunk if it is there; None if it is not there yet.
    pub fn try_next(&mut self) -> Option<Result<Option<Chunk>, Error>> {
        if self.ended {
            return Some(Ok(None));
        }
        let taken = self.reader.try_take();
        if taken.resume {
            let _ = self.shared.send(Command::Wake);
        }
        let over = match &taken.item {
            Some(Ok(Some(chunk))) => chunk.finish.is_some(),
            Some(Ok(None) | Err(_)) => true,
            None => false,
        };
        if over {
            self.ended = true;
            self.working.store(false, Ordering::Release);
        }
        taken.item
    }

    /// Resolves when [`Generation::next`] would not wait.
    pub async fn ready(&self) {
        if !self.ended {
            self.reader.ready().await;
        }
    }

    /// Something to wait on for [`Generation::ready`] without borrowing the
    /// generation.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        Readiness(self.reader.clone())
    }

    /// Ends the run before the next batch. What was generated can still be
    /// taken.
    pub fn cancel(&self) {
        if !self.cancelled.swap(true, Ordering::AcqRel) {
            // An engine that has ended runs nothing.
            let _ = self.shared.send(Command::Cancel { id: self.session, run: self.run });
        }
    }

    /// How long the run waited for its first batch, once it had it.
    #[must_use]
    pub fn queued(&self) -> Option<Duration> {
        self.reader.queued()
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if !self.ended {
            self.cancel();
            self.working.store(false, Ordering::Release);
        }
    }
}

/// Tells when a [`Generation`] has something, see [`Generation::readiness`].
#[derive(Clone)]
pub struct Readiness(Reader);

impl Readiness {
    /// Resolves when [`Generation::next`] would not wait.
    pub async fn ready(&self) {
        self.0.ready().await;
    }
}
