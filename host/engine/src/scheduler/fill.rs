//! Filling the next batch: whose tokens, and which guesses behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Scheduler;
use super::draft;
use super::fair::Waiting;
use super::guide::Guide;
use super::plan::{self, Candidate, Of, Plan, Room, Share};
use super::sequence::Work;
use super::speculate::{Draft, Guessing, Odds, Source};
use crate::backend::BatchEntry;
use crate::clock::Clock;
use crate::command::SessionId;
use crate::options::Tenant;

/// To copy the state of more tokens than this takes about as long as a step, or longer.
const MUCH: u32 = 512;

/// The part of the time for a step beside others that one has which somebody may come to
/// wait for.
const WATCHED: u32 = 2;

/// A share of the batch as it was filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) id: SessionId,
    /// Tokens of the session itself.
    pub(super) tokens: u32,
    pub(super) of: Of,
    /// The entry of the last of them. Those of guesses follow.
    pub(super) last: usize,
}

impl<C: Clock> Scheduler<C> {
    /// The next batch. A batch is of one adapter: those that have something to do
    /// take turns.
    pub(super) fn plan(&mut self) -> Plan {
        let (decodes, prompts) = self.candidates();
        let adapters: BTreeSet<Option<usize>> = decodes.iter().chain(&prompts).map(|c| c.adapter).collect();
        let last = self.adapter;
        let after = adapters.iter().filter(|&&adapter| adapter > last);
        let turns: Vec<Option<usize>> =
            after.chain(adapters.iter().filter(|&&adapter| adapter <= last)).copied().collect();
        let mut all = Plan::default();
        for adapter in turns {
            let of = |list: &[Candidate]| -> Vec<Candidate> {
                list.iter().filter(|candidate| candidate.adapter == adapter).copied().collect()
            };
            let is_awaited = decodes.iter().any(|candidate| candidate.adapter != adapter);
            let room = Room { is_awaited, ..self.room() };
            let plan = plan::plan(&of(&decodes), &of(&prompts), room, &self.config);
            all.blocked.extend(plan.blocked);
            all.tight.extend(plan.tight);
            all.held.extend(plan.held);
            if !plan.shares.is_empty() {
                self.adapter = adapter;
                return Plan { shares: plan.shares, ..all };
            }
        }
        all
    }

    /// What the backend has to give in the next batch.
    fn room(&self) -> Room {
        let now = self.clock.now();
        let step_time = self.company.step_time(self.config.step_time, now);
        let prompt_tokens = match self.company.is_mixed(now) {
            true => self.pace.tokens_beside(step_time),
            false => self.pace.tokens_in(step_time),
        };
        Room {
            batch_tokens: self.limits.batch_tokens,
            prompt_tokens,
            spare_tokens: self.spare.tokens(),
            watched_tokens: self.pace.tokens_within(self.config.company.step_time / WATCHED),
            is_awaited: false,
            cells: self.cells.available(),
            sequences: self.available_sequences(),
            reserve: self.reserve(),
        }
    }

    /// Those with tokens to decode, each list in the order of service: running
    /// generations, and those that wait for a place or compute a prompt.
    fn candidates(&mut self) -> (Vec<Candidate>, Vec<Candidate>) {
        let mut decodes = Vec::new();
        let mut waiting = Vec::new();
        self.held_back = self.beyond_limits();
        for &id in &self.at_work {
            let Some(sequence) = self.sequences.get(&id) else { continue };
            let todo = u32::try_from(sequence.todo()).unwrap_or(u32::MAX);
            let placed = sequence.seq.is_some();
            if self.held_back.contains(&id) {
                continue;
            }
            let begun = placed
                && match &sequence.work {
                    Work::Prefill(prefill) => prefill.wait.queued.is_some(),
                    Work::Run(_) | Work::Idle => true,
                };
            let adapter = sequence.adapter;
            let candidate = Candidate {
                id,
                todo,
                cells: todo,
                placed,
                begun,
                yields: false,
                is_watched: false,
                copies: false,
                leaves_room: false,
                adapter,
            };
            let may_decode = sequence.guide.as_ref().is_none_or(Guide::lets_decode);
            let (list, since) = match &sequence.work {
                Work::Run(run) if todo > 0 && may_decode && run.outbox.has_room() => match sequence.decodes() {
                    true => (&mut decodes, run.wait.since),
                    false => (&mut waiting, run.wait.since),
                },
                Work::Prefill(prefill) if todo > 0 => (&mut waiting, prefill.wait.since),
                Work::Run(_) | Work::Prefill(_) | Work::Idle => continue,
            };
            let owner = sequence.owner.clone();
            list.push((since, Waiting { owner, tokens: todo, item: candidate }));
        }
        let now = self.clock.now();
        for (_, waiting) in waiting.iter().chain(&decodes) {
            self.company.saw(&waiting.owner, Duration::ZERO, now);
        }
        for (_, Waiting { owner, item, .. }) in &mut waiting {
            item.yields = self.company.must_yield(owner, now);
            item.is_watched = item.yields && self.company.is_watched(owner, now);
        }
        self.have_room_left(&mut waiting, now);
        let decodes = self.in_turn(decodes);
        let mut waiting = self.in_turn(waiting);
        for candidate in &mut waiting {
            // What is known need not be computed, but takes its cells.
            let known = self.known(candidate.id);
            candidate.todo = candidate.todo.saturating_sub(known.tokens).max(1);
            candidate.copies = known.is_in_ram && known.tokens > MUCH;
        }
        (decodes, waiting)
    }

    /// Runs that wait because as many as their tenant may have go on already: those
    /// that were asked for last.
    fn beyond_limits(&self) -> BTreeSet<SessionId> {
        /// Runs of a tenant, and how many of them go on.
        #[derive(Default)]
        struct Runs {
            most: usize,
            all: Vec<(Duration, SessionId)>,
        }
        let mut tenants: BTreeMap<&Arc<str>, Runs> = BTreeMap::new();
        for &id in &self.at_work {
            let Some(sequence) = self.sequences.get(&id) else { continue };
            let Work::Run(run) = &sequence.work else { continue };
            let Tenant { name, max_runs, .. } = &sequence.owner.tenant;
            // Most have no limit, and then there is nothing to be counted.
            if *max_runs == u32::MAX {
                continue;
            }
            let runs = tenants.entry(name).or_default();
            runs.most = (*max_runs).max(1) as usize;
            runs.all.push((run.wait.asked, id));
        }
        let beyond = tenants.into_values().filter(|runs| runs.all.len() > runs.most);
        let last = beyond.flat_map(|mut runs| {
            runs.all.sort_unstable();
            runs.all.split_off(runs.most)
        });
        last.map(|(_, id)| id).collect()
    }

    /// In the order of service: by whose turn it is, and for one owner by how long they wait.
    fn in_turn(&self, mut work: Vec<(Duration, Waiting<Candidate>)>) -> Vec<Candidate> {
        work.sort_by_key(|(since, waiting)| (*since, waiting.item.id));
        let work = work.into_iter().map(|(_, waiting)| waiting).collect();
        self.fair.order(work)
    }

    /// Gives those of a batch their places, with what is known of their state. Who
    /// finds none is left out.
    pub(super) fn place_all(&mut self, mut shares: Vec<Share>) -> Vec<Share> {
        shares.retain(|share| self.place(share.id));
        shares
    }

    /// Adds guesses to runs whose share is all they have to decode, where the batch
    /// is cheap enough for them.
    pub(super) fn guess(&mut self, shares: &[Share]) {
        for share in shares {
            // One that was not placed after all has its guesses still.
            if let Some(Work::Run(run)) = self.sequences.get_mut(&share.id).map(|s| &mut s.work) {
                run.draft = Draft::default();
            }
        }
        if self.config.max_draft == 0 || !self.can_reject {
            return;
        }
        let mut plan = Guessing::new(self.cells.available(), self.limits.batch_tokens, shares);
        if plan.depth(&self.pace, Odds::CERTAIN, self.config.max_draft, 0.0) == 0 {
            return;
        }
        let mut asks = Vec::new();
        for share in shares {
            let Some(sequence) = self.sequences.get_mut(&share.id) else { continue };
            let (all, free) = (sequence.todo() == share.tokens as usize, sequence.free());
            let Work::Run(run) = &mut sequence.work else { continue };
            // The last token of a run need not be guessed: it ends with it.
            let most = run.max_draft.min(plan.spare).min(run.left.saturating_sub(1)).min(free.saturating_sub(1));
            // A guess that a grammar forbids would be wasted, and to know that takes
            // as long as to know what it allows.
            if !all || most == 0 || sequence.guide.is_some() {
                continue;
            }
            let mut tokens = run.lookup.guess(&sequence.tokens, most as usize);
            if tokens.is_empty() {
                asks.push((share.id, most));
                continue;
            }
            let count = u32::try_from(tokens.len()).unwrap_or(0);
            let depth = plan.depth(&self.pace, run.odds.lookup, count, 0.0);
            tokens.truncate(depth as usize);
            plan.takes(depth, &mut run.odds.lookup);
            run.draft = Draft { tokens, source: Source::Lookup };
        }
        self.ask_the_draft_model(asks, plan);
    }

    /// Has the draft model guess for runs whose text has nothing to offer.
    fn ask_the_draft_model(&mut self, runs: Vec<(SessionId, u32)>, mut plan: Guessing) {
        let Some(mut model) = self.draft.take() else { return };
        // A round of the small model is for all of them.
        let each = model.cost() / runs.len().max(1) as f64;
        let mut wanted = Vec::new();
        for (id, most) in runs {
            let Some(Work::Run(run)) = self.sequences.get_mut(&id).map(|s| &mut s.work) else { continue };
            let depth = plan.depth(&self.pace, run.odds.model, most, each);
            plan.takes(depth, &mut run.odds.model);
            if depth > 0 {
                wanted.push((id, depth as usize));
            }
        }
        let asks = wanted
            .iter()
            .filter_map(|&(id, most)| Some(draft::Ask { id, tokens: &self.sequences.get(&id)?.tokens, most }));
        let asks: Vec<draft::Ask<'_>> = asks.collect();
        let guesses = model.guess(&asks);
        for (id, _) in wanted.iter().filter(|(id, _)| !guesses.contains_key(id)) {
            if let Some(Work::Run(run)) = self.sequences.get_mut(id).map(|s| &mut s.work) {
                // There is no room for it: asking costs, and gives nothing.
                run.odds.model.saw(1, 0);
            }
        }
        for (id, tokens) in guesses {
            if let Some(Work::Run(run)) = self.sequences.get_mut(&id).map(|s| &mut s.work) {
                run.draft = Draft { tokens, source: Source::Model };
            }
        }
        self.draft = Some(model);
    }

    /// Writes the shares into the batch. Gives back those that were placed.
    pub(super) fn fill_batch(&mut self, shares: Vec<Share>, now: Duration) -> Vec<Placed> {
        self.batch.clear();
        let mut placed = Vec::with_capacity(shares.len());
        for share in shares {
            let Some(sequence) = self.sequences.get(&share.id) else { continue };
            let tokens = share.tokens.min(u32::try_from(sequence.todo()).unwrap_or(u32::MAX));
            let guessed = sequence.draft().len();
            let batched = u32::try_from(self.batch.len() + guessed).unwrap_or(u32::MAX);
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
            let own = sequence.tokens.get(from..to).unwrap_or_default().iter();
            for (position, &token) in (sequence.in_kv()..).zip(own) {
                let logits = ends && position as usize + 1 == to;
                self.batch.push(BatchEntry { token, position, seq, logits });
            }
            placed.push(Placed { id: share.id, tokens, of: share.of, last: self.batch.len().saturating_sub(1) });
            for (position, &token) in (sequence.in_kv() + tokens..).zip(sequence.draft()) {
                self.batch.push(BatchEntry { token, position, seq, logits: true });
            }
        }
        placed
    }
}
