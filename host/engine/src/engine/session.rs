//! Sessions as their callers see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::{Generation, Shared};
use crate::Token;
use crate::command::{Command, CopyCommand, CopyTo, SessionId, SessionState};
use crate::constraint::Grammar;
use crate::error::Error;
use crate::options::{GenerateOptions, PrefillInfo, Priority, Tenant};
use crate::outbox::{FlushPolicy, outbox};
use crate::validate;

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
    /// Whom its work is for. To be chosen by the host as well.
    pub tenant: Tenant,
    /// Which of the tenant's work goes first.
    pub priority: Priority,
    /// The LoRA adapter that it is computed with, one of `ModelInfo::adapters`.
    /// None: the model alone. Sessions of different adapters share no batch.
    pub adapter: Option<Arc<str>>,
}

/// A sequence of tokens and the model's state after it.
///
/// Dropping it frees its sequence and KV cells before the next batch.
pub struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) id: SessionId,
    pub(super) state: Arc<SessionState>,
    /// Whether a run or a submitted step goes on.
    pub(super) working: Arc<AtomicBool>,
    pub(super) runs: u64,
    pub(super) grammar_bytes: u64,
    pub(super) options: SessionOptions,
}

impl Session {
    /// How many tokens it holds.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.state.len.load(Ordering::Acquire)
    }

    /// What the grammar takes that it was restored with, as [`Grammar::bytes`] tells;
    /// 0 without one.
    #[must_use]
    pub fn restored_grammar_bytes(&self) -> u64 {
        self.grammar_bytes
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
    /// [`EngineConfig::max_sessions`](crate::EngineConfig::max_sessions), [`Error::Evicted`].
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
        self.shared.ask(|reply| Command::Copy(CopyCommand { id, to: CopyTo::Evict { at, count }, reply })).await
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
        self.shared.ask(|reply| Command::Copy(CopyCommand { id, to: CopyTo::Park, reply })).await
    }

    /// Keeps what the session holds under a name of its scope, in place of what
    /// was there, for [`Engine::restore_session`](crate::Engine::restore_session).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while a run goes on, for a name that does not
    /// have 1 to 256 bytes, and at [`EngineConfig::max_saved`](crate::EngineConfig::max_saved); [`Error::Busy`]
    /// without room in RAM, [`Error::Evicted`].
    pub async fn save(&mut self, name: &str) -> Result<(), Error> {
        validate::name(name)?;
        self.refuse_while_working()?;
        let (id, to) = (self.id, CopyTo::Save { name: name.to_owned() });
        self.shared.ask(|reply| Command::Copy(CopyCommand { id, to, reply })).await
    }

    /// Has what the session says from here on follow a grammar: runs, and tokens
    /// that steps choose. None: no longer.
    ///
    /// The grammar's text begins here. It stays with the session: forks and what is
    /// saved have it too, and a session that is rewound is at the grammar's place
    /// of then. Tokens that are given to the session meanwhile must be allowed by
    /// it, or the next run fails.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while a run goes on, and for a grammar that was
    /// compiled for another model.
    pub fn constrain(&mut self, grammar: Option<Grammar>) -> Result<(), Error> {
        self.refuse_while_working()?;
        if grammar.as_ref().is_some_and(|grammar| !self.shared.grammars.made(grammar)) {
            let text = "the grammar was compiled for another model; compile it for this one";
            return Err(Error::InvalidArgument(text.into()));
        }
        self.shared.send(Command::Constrain { id: self.id, grammar })
    }

    /// Gives the session's work another priority, from the next batch on. The
    /// session's forks inherit it.
    pub fn set_priority(&mut self, priority: Priority) {
        self.options.priority = priority;
        // An engine that has ended serves nobody.
        let _ = self.shared.send(Command::Prioritise { id: self.id, priority });
    }

    pub(super) fn refuse_while_working(&self) -> Result<(), Error> {
        if self.working.load(Ordering::Acquire) {
            let text = "the session's run or step still goes on; take it to its end, or drop it, first";
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
