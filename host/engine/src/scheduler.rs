//! Continuous batching: which tokens are decoded next, and what becomes of them.
//!
//! The scheduler is a plain state machine. [`Scheduler::handle`] takes in what
//! handles ask for, [`Scheduler::step`] decodes one batch; it starts no thread,
//! waits for nothing and asks an injected [`Clock`] for the time. The engine
//! thread (see [`crate::thread`]) turns the crank.

mod cells;
mod pace;
mod place;
mod plan;
mod prefix;
mod pressure;
mod sequence;
mod serve;
mod sessions;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Token;
use crate::backend::{Abilities, Backend, BackendLimits, BatchEntry};
use crate::clock::Clock;
use crate::command::{Command, Reply, SessionId};
use crate::config::EngineConfig;
use crate::error::Error;
use crate::metrics::EngineMetrics;
use crate::options::{Finish, GenerateOptions, PrefillInfo};
use crate::outbox::Writer;
use crate::sampling::Sampler;
use crate::text::TextAssembler;
use crate::tokenizer::Tokenizer;
use cells::Cells;
use pace::Pace;
use plan::{Candidate, Room, Share};
use prefix::PrefixCache;
use sequence::{Prefill, Run, Sequence, Wait, Work};
use serve::Chooser;
use sessions::refuse_at_work;
use snapshot::{Budget, Shelf};

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

pub(crate) struct Scheduler<C> {
    backend: Box<dyn Backend>,
    limits: BackendLimits,
    config: EngineConfig,
    metrics: EngineMetrics,
    clock: C,
    sequences: BTreeMap<SessionId, Sequence>,
    cells: Cells,
    prefixes: PrefixCache,
    shelf: Shelf,
    budget: Budget,
    abilities: Abilities,
    pace: Pace,
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
            cells,
            prefixes: PrefixCache::default(),
            shelf: Shelf::new(),
            budget: Budget::new(config.snapshot_bytes),
            abilities,
            pace: Pace::default(),
            uses: 0,
            steps,
            chooser,
            batch: Vec::new(),
        }
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
            Command::Evict { id, at, count, reply } => drop(reply.send(self.evict(id, at, count))),
            Command::Park { id, reply } => drop(reply.send(self.park_on_request(id))),
            Command::Save { id, name, reply } => drop(reply.send(self.save(id, name))),
            Command::Restore { name, new, reply } => drop(reply.send(self.restore(name, new))),
            Command::Prefill { id, tokens, reply } => self.begin_prefill(id, tokens, reply),
            Command::Generate { id, run, options, outbox } => self.begin_run(id, run, *options, outbox),
            Command::Cancel { id, run } => self.cancel(id, run),
            Command::Close { id, at_step } => self.close(id, at_step),
            Command::Wake | Command::Shutdown => {}
        }
    }

    /// Decodes one batch.
    pub(crate) fn step(&mut self) -> Progress {
        let now = self.clock.now();
        self.expire(now);
        let (decodes, prompts) = self.candidates();
        let room = Room {
            batch_tokens: self.limits.batch_tokens,
            prompt_tokens: self.pace.tokens_in(self.config.step_time),
            cells: self.cells.available(),
            sequences: self.available_sequences(),
        };
        let plan = plan::plan(&decodes, &prompts, room, &self.config);
        if plan.shares.is_empty() {
            return self.relieve(&plan.blocked, now);
        }
        if !plan.blocked.is_empty() {
            self.park_an_idle_one();
        }
        for id in plan.blocked {
            if let Some(wait) = self.sequences.get_mut(&id).and_then(Sequence::wait_mut) {
                wait.blocked.get_or_insert(now);
            }
        }
        let shares = self.fill_batch(plan.shares, now);
        if !shares.is_empty() {
            self.decode(&shares);
        }
        self.report();
        Progress::Worked
    }

    /// Ends everything: runs and prefills fail as cancelled.
    pub(crate) fn shut_down(&mut self) {
        let ids: Vec<SessionId> = self.sequences.keys().copied().collect();
        for id in ids {
            self.close(id, self.steps.load(Ordering::Acquire));
        }
        self.report();
    }

    fn begin_prefill(&mut self, id: SessionId, tokens: Vec<Token>, reply: Reply<PrefillInfo>) {
        let now = self.clock.now();
        let refused = self.refusal(id).or_else(|| {
            let free = self.sequences.get(&id)?.free().min(self.cells.total());
            (tokens.len() > free as usize).then_some(Error::ContextFull { free })
        });
        // A handle that no longer listens is no error: its session is going.
        if let Some(error) = refused {
            let _ = reply.send(Err(error));
            return;
        }
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        if tokens.is_empty() {
            let _ = reply.send(Ok(PrefillInfo { cached: 0, computed: 0, queued: Duration::ZERO }));
            return;
        }
        let before = sequence.tokens.len();
        sequence.tokens.extend(tokens);
        sequence.logits = None;
        sequence.keys = None;
        sequence.work = Work::Prefill(Prefill { reply, before, cached: 0, wait: Wait::new(now) });
        self.uses += 1;
        sequence.used = self.uses;
    }

    fn begin_run(&mut self, id: SessionId, number: u64, options: GenerateOptions, outbox: Writer) {
        let now = self.clock.now();
        if let Some(sequence) = self.sequences.get(&id) {
            sequence.state.saw_run();
        }
        if let Some(error) = self.refusal(id) {
            return outbox.close(Err(error));
        }
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return outbox.close(Err(Error::Cancelled));
        };
        if sequence.free() == 0 {
            return outbox.close(Err(Error::ContextFull { free: 0 }));
        }
        if sequence.tokens.is_empty() {
            let text = "the session is empty; prefill at least one token before generating";
            return outbox.close(Err(Error::InvalidArgument(text.into())));
        }
        let run = Run {
            number,
            outbox,
            sampler: Sampler::new(options.sampling, options.bias, options.top_logprobs),
            text: TextAssembler::new(options.stop_text),
            left: options.max_new,
            stop_tokens: options.stop_tokens,
            ends_at_model_end: !options.ignore_end,
            deadline: options.deadline.map(|d| now + d),
            wait: Wait::new(now),
        };
        sequence.work = Work::Run(Box::new(run));
        sequence.keys = None;
        self.uses += 1;
        sequence.used = self.uses;
        if let Some(logits) = sequence.logits.take() {
            // The prefill left the logits: the first token costs no batch.
            if let Some(wait) = sequence.wait_mut() {
                wait.served(now);
            }
            self.advance(id, &logits, now);
        } else if sequence.todo() == 0 {
            // The logits were not kept: the last token is decoded again.
            let again = sequence.in_kv().saturating_sub(1);
            self.cut(id, again);
        }
    }

    /// Why a session can take no new work, if it cannot.
    fn refusal(&mut self, id: SessionId) -> Option<Error> {
        let queued = self.sequences.values_mut().filter_map(|s| s.wait_mut()).filter(|w| w.queued.is_none()).count();
        let Some(sequence) = self.sequences.get_mut(&id) else { return Some(Error::Cancelled) };
        if let Err(error) = refuse_at_work(sequence) {
            // That its state is gone is said once to who gives it work, which it
            // can then be given.
            sequence.evicted = false;
            return Some(error);
        }
        // Who holds a sequence waits for none, and has paid for its state.
        (sequence.seq.is_none() && queued >= self.config.max_queued as usize).then_some(Error::Busy)
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
        self.retire(sequence);
        self.metrics.sessions.dec();
        let waited = self.steps.load(Ordering::Acquire).saturating_sub(at_step);
        self.metrics.release_steps.observe(waited as f64);
        match work {
            Work::Idle => return,
            Work::Prefill(prefill) => drop(prefill.reply.send(Err(Error::Cancelled))),
            Work::Run(run) => run.fail(Error::Cancelled),
        }
        self.metrics.cancelled.inc();
    }

    /// Those with tokens to decode: running generations by age, then those that
    /// wait for a place, in the order in which they were asked for.
    fn candidates(&mut self) -> (Vec<Candidate>, Vec<Candidate>) {
        let mut decodes = Vec::new();
        let mut waiting = Vec::new();
        for (&id, sequence) in &self.sequences {
            let todo = u32::try_from(sequence.todo()).unwrap_or(u32::MAX);
            let placed = sequence.seq.is_some();
            let candidate = Candidate { id, todo, cells: todo, placed };
            match &sequence.work {
                Work::Run(run) if todo > 0 && run.outbox.has_room() => match placed {
                    true => decodes.push(candidate),
                    false => waiting.push((run.wait.asked, candidate)),
                },
                Work::Prefill(prefill) => waiting.push((prefill.wait.asked, candidate)),
                Work::Run(_) | Work::Idle => {}
            }
        }
        waiting.sort_by_key(|&(asked, candidate)| (asked, candidate.id));
        let mut waiting: Vec<Candidate> = waiting.into_iter().map(|(_, candidate)| candidate).collect();
        for candidate in &mut waiting {
            // What is known need not be computed, but takes its cells.
            let known = u32::try_from(self.known(candidate.id)).unwrap_or(0);
            candidate.todo = candidate.todo.saturating_sub(known).max(1);
        }
        (decodes, waiting)
    }

    /// Writes the shares into the batch. Gives back those that were placed, each
    /// with the index of its last entry.
    fn fill_batch(&mut self, shares: Vec<Share>, now: Duration) -> Vec<(Share, usize)> {
        self.batch.clear();
        let mut placed = Vec::with_capacity(shares.len());
        for share in shares {
            if !self.place(share.id) {
                continue;
            }
            let Some(sequence) = self.sequences.get(&share.id) else { continue };
            let tokens = share.tokens.min(u32::try_from(sequence.todo()).unwrap_or(u32::MAX));
            let batched = u32::try_from(self.batch.len()).unwrap_or(u32::MAX);
            if tokens == 0 || !self.make_room(batched.saturating_add(tokens)) {
                continue;
            }
            let Some(sequence) = self.sequences.get_mut(&share.id) else { continue };
            let Some(seq) = sequence.seq else { continue };
            if let Some(wait) = sequence.wait_mut() {
                let queued = wait.served(now);
                if let Work::Run(run) = &sequence.work {
                    run.outbox.started(queued);
                }
            }
            let from = sequence.cells.len();
            let to = from + tokens as usize;
            let ends = to == sequence.tokens.len();
            for (position, &token) in (sequence.in_kv()..).zip(sequence.tokens.get(from..to).unwrap_or_default()) {
                let logits = ends && position as usize + 1 == to;
                self.batch.push(BatchEntry { token, position, seq, logits });
            }
            placed.push((Share { tokens, ..share }, self.batch.len().saturating_sub(1)));
        }
        placed
    }

    /// Brings the gauges up to date.
    fn report(&mut self) {
        let mut running = 0;
        let mut queued = 0;
        for sequence in self.sequences.values_mut() {
            running += i64::from(matches!(sequence.work, Work::Run(_)));
            queued += i64::from(sequence.wait_mut().is_some_and(|w| w.queued.is_none()));
        }
        self.metrics.running.set(running);
        self.metrics.queued.set(queued);
    }
}
