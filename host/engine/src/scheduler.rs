//! Continuous batching: which tokens are decoded next, and what becomes of them.
//!
//! The scheduler is a plain state machine. [`Scheduler::handle`] takes in what
//! handles ask for, [`Scheduler::step`] decodes one batch; it starts no thread,
//! waits for nothing and asks an injected [`Clock`] for the time. The engine
//! thread (see [`crate::thread`]) turns the crank.

mod begin;
mod cells;
mod company;
mod copies;
mod draft;
mod embed;
mod fair;
mod fill;
mod guide;
mod guided;
mod holding_up;
mod pace;
mod place;
mod plan;
mod prefix;
mod pressure;
mod reserve;
mod sequence;
mod serve;
mod sessions;
mod snapshot;
mod speculate;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::affinity::Affinity;
use crate::backend::{Abilities, Backend, BackendLimits, BatchEntry};
use crate::clock::Clock;
use crate::command::{Command, SessionId};
use crate::config::EngineConfig;
use crate::error::Error;
use crate::metrics::EngineMetrics;
use crate::options::Finish;
use crate::tokenizer::Tokenizer;
use cells::Cells;
use company::{Company, Spare};
use copies::Copies;
use draft::DraftModel;
use embed::Embeddings;
use fair::Fair;
use pace::Pace;
use prefix::PrefixCache;
use sequence::{Sequence, Work};
use serve::Chooser;
use snapshot::{Budget, Shelf};
use workers::Workers;

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A batch was decoded; there may be more to do.
    Worked,
    /// Nothing can be decoded before a command comes or the time has passed.
    Waiting(Duration),
    /// Nothing can be decoded before a command comes.
    Idle,
}

/// Tokens of a block of the prefix cache.
pub const CACHE_BLOCK: u32 = prefix::BLOCK as u32;

pub(crate) struct Scheduler<C> {
    backend: Box<dyn Backend>,
    limits: BackendLimits,
    config: EngineConfig,
    metrics: EngineMetrics,
    clock: C,
    sequences: BTreeMap<SessionId, Sequence>,
    /// Those that may have work: all that have, and some that had it lately. A step
    /// costs by what is at work, not by what is open.
    at_work: BTreeSet<SessionId>,
    fair: Fair,
    cells: Cells,
    prefixes: PrefixCache,
    shelf: Shelf,
    budget: Budget,
    /// What a token of a state in RAM takes, as far as is known.
    bytes_a_token: f64,
    abilities: Abilities,
    pace: Pace,
    company: Company,
    /// Copies of states that wait for their turn.
    copies: Copies,
    /// What steps have for prompts of those who have held others up enough.
    spare: Spare,
    /// Guesses what runs will say.
    draft: Option<DraftModel>,
    embeddings: Embeddings,
    /// The adapter of the latest batch.
    adapter: Option<usize>,
    /// Until when the latest batch waits for what grammars allow.
    patience: Instant,
    /// Follow grammars beside the engine thread.
    workers: Workers,
    /// Runs beyond what their tenants may have at a time, as of the latest batch.
    held_back: BTreeSet<SessionId>,
    /// When a session was last given a sequence.
    changed_hands: Duration,
    /// Whether wrong guesses can be taken back: the model can step back.
    can_reject: bool,
    /// Counts the work that sessions were given.
    uses: u64,
    /// Batches decoded so far; handles read it to stamp the drop of a session.
    steps: Arc<AtomicU64>,
    chooser: Chooser,
    batch: Vec<BatchEntry>,
}

impl<C: Clock> Scheduler<C> {
    pub(crate) fn new(
        backend: Box<dyn Backend>,
        tokenizer: Arc<dyn Tokenizer>,
        config: EngineConfig,
        metrics: EngineMetrics,
        steps: Arc<AtomicU64>,
        clock: C,
        affinity: Affinity,
    ) -> Self {
        let (limits, abilities) = (backend.limits(), backend.abilities());
        let cells = Cells::new(limits, &metrics);
        let chooser = Chooser::new(tokenizer, metrics.clone());
        Self {
            backend,
            limits,
            config,
            metrics,
            clock,
            sequences: BTreeMap::new(),
            at_work: BTreeSet::new(),
            fair: Fair::default(),
            cells,
            prefixes: PrefixCache::default(),
            shelf: Shelf::new(),
            budget: Budget::new(config.snapshot_bytes),
            bytes_a_token: 0.0,
            abilities,
            pace: Pace::default(),
            company: Company::new(config.company),
            spare: Spare::new(config.company),
            copies: Copies::new(),
            draft: None,
            embeddings: Embeddings::default(),
            adapter: None,
            patience: Instant::now(),
            workers: Workers::new(affinity),
            held_back: BTreeSet::new(),
            changed_hands: Duration::ZERO,
            can_reject: true,
            uses: 0,
            steps,
            chooser,
            batch: Vec::new(),
        }
    }

    /// Has a smaller model guess what runs will say.
    pub(crate) fn with_draft(self, backend: Box<dyn Backend>) -> Self {
        Self { draft: Some(DraftModel::new(backend)), ..self }
    }

    /// Takes in what a handle asks for.
    pub(crate) fn handle(&mut self, command: Command) {
        match command {
            // A handle that no longer listens has dropped its session, or is
            // about to: an answer that is lost needs nothing to be undone.
            Command::Open(new) => {
                self.open(new);
            }
            Command::Fork { id, new, reply } => drop(reply.send(self.fork(id, new))),
            Command::Rewind { id, to, reply } => drop(reply.send(self.rewind(id, to))),
            Command::Copy(command) => self.ask_for_copy(command),
            Command::Restore { name, new, reply } => drop(reply.send(self.restore(name, new))),
            Command::Prefill { id, tokens, reply } => self.begin_prefill(id, tokens, reply),
            Command::Embed(command) => self.begin_embedding(command),
            Command::Submit(steps) => steps.into_iter().for_each(|step| self.begin_step(step)),
            Command::Inject { id, run, tokens, reply } => drop(reply.send(self.inject(id, run, tokens))),
            Command::Constrain { id, grammar } => self.constrain(id, grammar),
            Command::Prioritise { id, priority } => self.prioritise(id, priority),
            Command::Generate { id, run, options, outbox } => self.begin_run(id, run, *options, outbox),
            Command::Cancel { id, run } => self.cancel(id, run),
            Command::Close { id, at_step } => self.close(id, at_step),
            Command::Wake => self.undo_abandoned(),
            Command::Shutdown => {}
        }
    }

    /// Decodes one batch.
    pub(crate) fn step(&mut self) -> Progress {
        let now = self.clock.now();
        self.expire(now);
        let copied = self.copy_some(now);
        let now = self.clock.now();
        self.hear_guides(now);
        let answered = self.answer_computed();
        let plan = self.plan();
        self.note_blocked(&plan, now);
        if plan.shares.is_empty() {
            let embedded = self.embed_alone();
            let relieved = self.relieve(&plan, now);
            return if copied || answered || embedded || self.wait_for_a_guide() { Progress::Worked } else { relieved };
        }
        if self.make_way(&plan, now) {
            return Progress::Worked;
        }
        let shares = self.place_all(plan.shares);
        self.tidy_cells();
        self.guess(&shares);
        let shares = self.fill_batch(shares, now);
        self.embed_beside(&shares);
        if !shares.is_empty() {
            self.decode(&shares);
        }
        self.report();
        Progress::Worked
    }

    /// Ends everything: runs and prefills fail as cancelled.
    pub(crate) fn shut_down(&mut self) {
        self.end_embeddings();
        let ids: Vec<SessionId> = self.sequences.keys().copied().collect();
        for id in ids {
            self.close(id, self.steps.load(Ordering::Acquire));
        }
        self.report();
    }

    fn cancel(&mut self, id: SessionId, number: u64) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        if matches!(&sequence.work, Work::Run(run) if run.number == number) {
            self.metrics.cancelled.inc();
            self.finish(id, Finish::Cancelled);
        }
    }

    fn close(&mut self, id: SessionId, at_step: u64) {
        let Some(mut sequence) = self.sequences.remove(&id) else { return };
        let work = std::mem::replace(&mut sequence.work, Work::Idle);
        if let Some(draft) = &mut self.draft {
            draft.forget(id);
        }
        self.retire(sequence);
        self.metrics.sessions.dec();
        let waited = self.steps.load(Ordering::Acquire).saturating_sub(at_step);
        self.metrics.release_steps.observe(waited as f64);
        match work {
            Work::Idle => return,
            Work::Prefill(prefill) => prefill.answer.refuse(Error::Cancelled),
            Work::Run(run) => run.fail(Error::Cancelled),
        }
        self.metrics.cancelled.inc();
    }

    /// Brings the gauges up to date.
    fn report(&mut self) {
        let mut running = 0;
        let mut queued = 0;
        for id in &self.at_work {
            let Some(sequence) = self.sequences.get(id) else { continue };
            running += i64::from(matches!(sequence.work, Work::Run(_)));
            queued += i64::from(sequence.wait().is_some_and(|wait| wait.queued.is_none()));
        }
        self.metrics.running.set(running);
        self.metrics.queued.set(queued);
    }
}
