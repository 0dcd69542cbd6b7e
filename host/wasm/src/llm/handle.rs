//! A session as its store keeps it.

use nala_engine::{self as engine, Grammar, Lease, Priority, Session};
use wasmtime::component::Resource;

use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::share::{Cells, GrammarBytes};
use super::{LlmView, convert};

/// Calls that the engine does not answer and may not have seen yet: so many of a
/// session go to it at once, so that a guest that repeats them fills no queue.
const MAX_UNSEEN: u32 = 8;

/// A session that a guest has opened.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct SessionHandle {
    // Before the lease, under which it lives.
    pub(super) session: Session,
    pub(super) lease: Lease,
    pub(super) cells: Cells,
    /// What the grammar that it follows takes. The session's own matcher, which
    /// takes as much, is what is counted here; the grammar is its handle's.
    pub(super) grammar: Option<GrammarBytes>,
    work: Work,
    /// Tokens that work which was dropped before its end may still add, until the
    /// engine has seen that it was.
    trailing: u64,
    /// Calls without an answer since the engine's last answer.
    unseen: u32,
}

/// What goes on with a session. Cells are set aside for it, which only its own
/// end gives back: it is numbered, since the session may have other work by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Idle,
    Run(u64),
    /// Its readings were not taken yet, though they may be there.
    Step(u64),
}

/// Names work and its session. The session may be gone, and its place in the table
/// another's; the number is no other work's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) session: u32,
    pub(super) number: u64,
}

impl LlmView<'_> {
    /// The session that stands where the work's did, if one does.
    pub(super) fn session_of(&mut self, place: Place) -> Option<&mut SessionHandle> {
        self.table.get_mut(&Resource::new_borrow(place.session)).ok()
    }

    /// A number for work on a session.
    pub(super) fn place(&mut self, session: u32) -> Place {
        self.state.works += 1;
        Place { session, number: self.state.works }
    }
}

impl SessionHandle {
    pub(super) fn new(session: Session, lease: Lease, cells: Cells, grammar: Option<GrammarBytes>) -> Self {
        Self { session, lease, cells, grammar, work: Work::Idle, trailing: 0, unseen: 0 }
    }

    /// How many tokens it holds at the most.
    pub(super) fn length(&self) -> u64 {
        u64::from(self.session.len()) + self.trailing
    }

    /// Refuses while a step goes on: the engine is through with it before the
    /// guest has taken what was read. While a run goes on the engine refuses.
    pub(super) fn refuse_in_step(&self) -> Result<(), Error> {
        match self.work {
            Work::Step(_) => {
                let text = "the session's step still goes on; take its readings, or drop them, first";
                Err(Error::InvalidArgument(text.into()))
            }
            Work::Idle | Work::Run(_) => Ok(()),
        }
    }

    /// Step `number` has begun.
    pub(super) fn steps(&mut self, number: u64) {
        self.work = Work::Step(number);
    }

    /// Whether run `number` goes on.
    pub(super) fn has_run(&self, number: u64) -> bool {
        self.work == Work::Run(number)
    }

    /// Run or step `number` has come to its end.
    pub(super) fn end(&mut self, number: u64) {
        if self.works_at(number) {
            self.answered();
            self.give_back();
        }
    }

    /// Run or step `number` was dropped, perhaps before its end, and may still add
    /// so many tokens.
    pub(super) fn abandon(&mut self, number: u64, tokens: u64) {
        if self.works_at(number) {
            self.trailing = self.trailing.saturating_add(tokens);
            // Also where it adds none: the engine has yet to see that it was dropped.
            self.unseen += 1;
            self.give_back();
        }
    }

    fn works_at(&self, number: u64) -> bool {
        matches!(self.work, Work::Run(own) | Work::Step(own) if own == number)
    }

    /// Nothing goes on: cells are set aside for what the session holds.
    fn give_back(&mut self) {
        self.work = Work::Idle;
        self.cells.keep(self.length());
    }

    /// The engine has answered, and so has seen all that was asked before.
    fn answered(&mut self) {
        self.trailing = 0;
        self.unseen = 0;
    }

    /// After a call that a run would have refused, and that may have shortened
    /// the session.
    pub(super) fn settled<T>(&mut self, done: Result<T, engine::Error>) -> Result<T, Error> {
        if self.work == Work::Idle {
            if done.is_ok() {
                self.answered();
            }
            self.cells.keep(self.length());
        }
        done.map_err(convert::error)
    }

    /// Whether a step can begin.
    pub(super) async fn may_step(&mut self) -> Result<(), Error> {
        self.refuse_in_step()?;
        if self.work != Work::Idle {
            let text = "the session's run still goes on; take it to its end, or drop it, first";
            return Err(Error::InvalidArgument(text.into()));
        }
        self.catch_up().await
    }

    /// Waits until the engine has seen what was asked of it before, where that has
    /// become much or leaves open what the session holds.
    async fn catch_up(&mut self) -> Result<(), Error> {
        if self.work != Work::Idle || self.trailing == 0 && self.unseen < MAX_UNSEEN {
            return Ok(());
        }
        let seen = self.session.prefill(Vec::new()).await;
        self.settled(seen).map(drop)
    }

    pub(super) async fn prefill(&mut self, tokens: Vec<u32>, max: u64) -> Result<engine::PrefillInfo, Error> {
        self.refuse_in_step()?;
        self.catch_up().await?;
        if self.work == Work::Idle {
            self.cells.set(self.length().saturating_add(tokens.len() as u64), max)?;
        }
        // While a run goes on the engine refuses, and the cells stay the run's.
        let done = self.session.prefill(tokens).await;
        self.settled(done)
    }

    /// Sets so many more cells aside for the run, of which the store may have `max`
    /// in all; says how many it had.
    pub(super) fn widen(&mut self, tokens: u64, max: u64) -> Result<u64, Error> {
        let before = self.cells.held();
        self.cells.set(before.saturating_add(tokens), max)?;
        Ok(before)
    }

    /// Tokens were added to the run, or were not; then it is `before` again.
    pub(super) fn widened(&mut self, done: &Result<(), engine::Error>, before: u64) {
        match done {
            Ok(()) => self.answered(),
            Err(_) => self.cells.keep(before),
        }
    }

    pub(super) async fn constrain(&mut self, to: Option<(Grammar, GrammarBytes)>) -> Result<(), Error> {
        self.refuse_in_step()?;
        self.catch_up().await?;
        let (grammar, bytes) = to.unzip();
        self.session.constrain(grammar).map_err(convert::error)?;
        self.unseen += 1;
        self.grammar = bytes;
        Ok(())
    }

    pub(super) async fn set_priority(&mut self, priority: Priority) -> Result<(), Error> {
        self.catch_up().await?;
        if self.unseen >= MAX_UNSEEN {
            return Err(Error::Busy);
        }
        self.session.set_priority(priority);
        self.unseen += 1;
        Ok(())
    }

    /// Starts run `number`. One that asks for more than what the store may have,
    /// `max` cells, ends there; whether it does is said along.
    pub(super) fn generate(
        &mut self,
        mut options: engine::GenerateOptions,
        number: u64,
        max: u64,
    ) -> Result<(engine::Generation, bool), Error> {
        self.refuse_in_step()?;
        let length = self.length();
        let room = self.cells.most(max).saturating_sub(length);
        if room == 0 {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        let allowed = u32::try_from(room).unwrap_or(u32::MAX);
        let cut_short = options.max_new > allowed;
        options.max_new = options.max_new.min(allowed);
        let wanted = length.saturating_add(options.max_new.into());
        let generation = self.session.generate(options).map_err(convert::error)?;
        self.cells.set(wanted, max)?;
        self.work = Work::Run(number);
        Ok((generation, cut_short))
    }

    /// A session that holds what this one holds, and the bytes of its grammar, of
    /// which the store may have `max` in all.
    pub(super) async fn fork(&mut self, max: u64) -> Result<Child, Error> {
        self.refuse_in_step()?;
        let grammar = self.grammar.as_ref().map(|grammar| grammar.again(max)).transpose()?;
        let forked = self.session.fork().await;
        Ok(Child { session: self.settled(forked)?, grammar })
    }
}

/// What became of a fork.
pub(super) struct Child {
    pub(super) session: Session,
    pub(super) grammar: Option<GrammarBytes>,
}
