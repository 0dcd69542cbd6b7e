//! When cells, sequences or time run out.
//!
//! Nothing is dropped silently: work waits and gives way to other work, then a run
//! is ended as preempted, or a request is refused as busy.

use std::time::Duration;

use super::fair::Owner;
use super::plan::Plan;
use super::sequence::{Sequence, Wait, Work};
use super::{Progress, Scheduler};
use crate::clock::Clock;
use crate::command::SessionId;
use crate::error::Error;
use crate::options::Finish;

/// After so long it is looked again whether a copy that waits may be made.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The same of whether something still has to leave room, or time, to others.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(100);

impl<C: Clock> Scheduler<C> {
    /// Ends what has passed its deadline or waited too long, and hands over
    /// tokens that have gathered long enough.
    pub(super) fn expire(&mut self, now: Duration) {
        self.undo_abandoned();
        let max_wait = self.config.max_wait;
        let mut late = Vec::new();
        let mut refused = Vec::new();
        let mut given_up = Vec::new();
        let sequences = &self.sequences;
        let is_at_work = |id: &SessionId| sequences.get(id).is_some_and(|s| !matches!(s.work, Work::Idle));
        self.at_work.retain(is_at_work);
        for &id in &self.at_work {
            let Some(sequence) = self.sequences.get(&id) else { continue };
            match &sequence.work {
                Work::Idle => {}
                Work::Prefill(prefill) => {
                    if overdue(prefill.wait.blocked, max_wait, now) {
                        refused.push(id);
                    }
                }
                Work::Run(run) => {
                    run.outbox.flush_overdue(now);
                    if run.deadline.is_some_and(|deadline| now >= deadline) {
                        late.push(id);
                    } else if sequence.seq.is_none() && overdue(self.in_vain_since(&run.wait), max_wait, now) {
                        given_up.push(id);
                    }
                }
            }
        }
        for id in late {
            self.finish(id, Finish::Deadline);
        }
        for id in given_up {
            self.preempt(id);
        }
        for id in refused {
            self.fail(id, Error::Busy);
        }
    }

    /// Undoes prefills and steps that nobody waits for any more.
    ///
    /// Whoever drops one wakes the engine, so this is done before the next thing
    /// that is asked of the session, which would otherwise find it at work.
    pub(super) fn undo_abandoned(&mut self) {
        let is_abandoned = |id: &SessionId| {
            let work = self.sequences.get(id).map(|sequence| &sequence.work);
            matches!(work, Some(Work::Prefill(prefill)) if prefill.answer.is_closed())
        };
        let abandoned: Vec<SessionId> = self.at_work.iter().copied().filter(is_abandoned).collect();
        for id in abandoned {
            self.metrics.cancelled.inc();
            self.fail(id, Error::Cancelled);
        }
    }

    /// Called when nothing could be put into a batch: makes room, or says how
    /// long to wait.
    pub(super) fn relieve(&mut self, plan: &Plan, now: Duration) -> Progress {
        let Plan { blocked, tight, .. } = plan;
        // An idle session loses nothing by it.
        let parked = !blocked.is_empty() && (self.park_an_idle_one() || self.change_turns(blocked, now));
        if parked || self.make_own_room(tight, now) {
            self.report();
            return Progress::Worked;
        }
        let relieved = self.free_a_place(blocked, now);
        self.report();
        if relieved {
            return Progress::Worked;
        }
        self.next_event(now).map_or(Progress::Idle, Progress::Waiting)
    }

    /// Called when some of what was asked for could not be put into a batch: parks somebody
    /// for it. Whether others than planned are to go into the batch.
    ///
    /// Those in the batch wait meanwhile, as long as it takes to copy a state. So it is
    /// not done for who [has held others up enough](super::company); and who is parked pays
    /// for it, since it held more than its share.
    pub(super) fn make_way(&mut self, plan: &Plan, now: Duration) -> bool {
        let may_have = |id: &SessionId| {
            let sequence = self.sequences.get(id);
            sequence.is_some_and(|sequence| sequence.decodes() || !self.company.must_yield(&sequence.owner, now))
        };
        let needy: Vec<SessionId> = plan.blocked.iter().copied().filter(may_have).collect();
        let changed = !needy.is_empty() && !self.park_an_idle_one() && self.change_turns(&needy, now);
        changed || self.make_own_room(&plan.tight, now)
    }

    /// Parks a session of somebody who could begin something else, but would leave others no
    /// room. Nobody else goes for that.
    fn make_own_room(&mut self, tight: &[SessionId], now: Duration) -> bool {
        let owner = |id: &SessionId| self.sequences.get(id).map(|sequence| sequence.owner.clone());
        let owners: Vec<Owner> = tight.iter().filter_map(owner).filter(|owner| !self.must_wait(owner, now)).collect();
        owners.iter().any(|owner| self.park_one_of(&owner.tenant.name))
    }

    /// Notes which work lacks cells or a sequence, or is to leave some to others.
    pub(super) fn note_blocked(&mut self, plan: &Plan, now: Duration) {
        for id in plan.blocked.iter().chain(&plan.tight) {
            if let Some(wait) = self.sequences.get_mut(id).and_then(Sequence::wait_mut) {
                wait.blocked.get_or_insert(now);
            }
        }
        // These have room, and are not to be refused for want of it.
        for id in &plan.held {
            if let Some(wait) = self.sequences.get_mut(id).and_then(Sequence::wait_mut) {
                wait.blocked = None;
            }
        }
    }

    /// Parks a run or a prompt whose owner was served more than its share while
    /// another one's work waits for a place. False: nobody has to go, or nobody can.
    pub(super) fn change_turns(&mut self, blocked: &[SessionId], now: Duration) -> bool {
        let unplaced = |id: &SessionId| self.sequences.get(id).filter(|sequence| sequence.seq.is_none());
        let Some(waiter) = blocked.iter().find_map(unplaced) else { return false };
        // Between runs of one owner there is no hurry: each goes to its end, unless
        // that takes so long that the others would be refused.
        let turn = self.turn();
        let waits_long = overdue(waiter.wait().and_then(|wait| wait.blocked), turn, now);
        let placed = self.at_work.iter().filter_map(|&id| Some((id, self.sequences.get(&id)?)));
        let holders = placed.filter_map(|(id, sequence)| {
            let asked = sequence.wait().filter(|_| sequence.seq.is_some())?.asked;
            Some((id, sequence, asked))
        });
        let yielding = holders.filter(|(_, holder, _)| {
            // A prompt ends by itself when it is computed.
            let takes_turns = holder.owner == waiter.owner && matches!(holder.work, Work::Run(_));
            let had_its_turn = takes_turns && waits_long && overdue(holder.placed_at, turn, now);
            had_its_turn || self.fair.must_yield(&holder.owner, &waiter.owner)
        });
        let mut yielding: Vec<(SessionId, &Sequence, Duration)> = yielding.collect();
        yielding.sort_by(|(a, a_holder, a_asked), (b, b_holder, b_asked)| {
            let gives_way = self.fair.gives_way(&b_holder.owner, &a_holder.owner);
            gives_way.then(b_holder.turn.cmp(&a_holder.turn)).then(b_asked.cmp(a_asked)).then(b.cmp(a))
        });
        let ids: Vec<SessionId> = yielding.into_iter().map(|(id, ..)| id).collect();
        // One whose state cannot be kept stays, and the next one goes.
        let Some(id) = ids.into_iter().find(|&id| self.park(id)) else { return false };
        if let Some(wait) = self.sequences.get_mut(&id).and_then(Sequence::wait_mut) {
            wait.since = now;
        }
        true
    }

    /// How long a run keeps its place while others of its owner wait for one: in
    /// time, because what counts is how long they wait, and tokens come the slower
    /// the more runs there are.
    pub(super) fn turn(&self) -> Duration {
        self.config.max_wait / 4
    }

    /// Since when a run without a place has waited in vain. As long as places change
    /// hands its turn will come, however many are before it.
    fn in_vain_since(&self, wait: &Wait) -> Option<Duration> {
        wait.blocked.map(|since| since.max(self.changed_hands))
    }

    /// Ends a run whose cells are needed; its session says so once.
    fn preempt(&mut self, id: SessionId) {
        tracing::warn!(session = id.0, "KV cells ran out; a run is ended as preempted");
        self.metrics.preempted.inc();
        self.finish(id, Finish::Preempted);
        if let Some(sequence) = self.sequences.get_mut(&id) {
            sequence.evicted = true;
            // What is prefilled next is a text of its own.
            sequence.guide = None;
            sequence.tokens.clear();
            sequence.publish_len();
        }
        self.cut(id, 0);
        self.release_by_id(id);
    }

    /// Takes the place of somebody who cannot go on, so that others can. False:
    /// that would help nobody, or may not be needed yet.
    ///
    /// With several, each holds cells that another one lacks, so one gives way at
    /// once. A run that is alone may find cells when an idle session is dropped: it
    /// waits first, and is ended then. A prompt that is alone is refused in time.
    fn free_a_place(&mut self, blocked: &[SessionId], now: Duration) -> bool {
        let stuck = self.stuck(blocked);
        if let [id] = *stuck {
            let wait = self.sequences.get(&id).filter(|s| matches!(s.work, Work::Run(_))).and_then(Sequence::wait);
            let given_up = overdue(wait.and_then(|wait| wait.blocked), self.config.max_wait, now);
            if given_up {
                self.preempt(id);
            }
            return given_up;
        }
        // Who is parked goes on when there is room.
        if stuck.iter().any(|&id| self.park(id)) {
            return true;
        }
        // A prompt can be computed again; what a run has said cannot be unsaid.
        let is_prompt = |id: &&SessionId| self.sequences.get(id).is_some_and(Sequence::is_prompt);
        match (stuck.iter().find(is_prompt), stuck.first()) {
            (Some(&id), _) => self.release_by_id(id),
            (None, Some(&id)) => self.preempt(id),
            (None, None) => return false,
        }
        true
    }

    /// Who has a place and cannot go on, in the order in which they give it up:
    /// those of the tenant that was served most, of its lowest priority, prompts
    /// before runs, and the youngest.
    fn stuck(&self, blocked: &[SessionId]) -> Vec<SessionId> {
        let placed = blocked.iter().filter_map(|&id| Some((id, self.sequences.get(&id).filter(|s| s.seq.is_some())?)));
        let at_work = placed.filter_map(|(id, sequence)| Some((id, sequence, sequence.wait()?.asked)));
        let mut stuck: Vec<(SessionId, &Sequence, Duration)> = at_work.collect();
        stuck.sort_by(|(a, a_sequence, a_asked), (b, b_sequence, b_asked)| {
            let gives_way = self.fair.gives_way(&b_sequence.owner, &a_sequence.owner);
            let of_prompts = b_sequence.is_prompt().cmp(&a_sequence.is_prompt());
            gives_way.then(of_prompts).then(b_asked.cmp(a_asked)).then(b.cmp(a))
        });
        stuck.into_iter().map(|(id, ..)| id).collect()
    }

    /// When something will happen without a command.
    fn next_event(&self, now: Duration) -> Option<Duration> {
        let max_wait = self.config.max_wait;
        let at_work = self.at_work.iter().filter_map(|id| self.sequences.get(id));
        let times = at_work.filter_map(|sequence| match &sequence.work {
            Work::Idle => None,
            // Nobody tells when others are no longer expected, to whom it leaves room and time.
            Work::Prefill(prefill) => {
                let blocked = prefill.wait.blocked.map_or(now + LOOK_FOR_ROOM, |since| since + max_wait);
                Some(blocked.min(now + LOOK_FOR_ROOM))
            }
            Work::Run(run) => {
                let waits = !sequence.decodes() && run.outbox.has_room();
                let blocked = self.in_vain_since(&run.wait).map(|since| since + max_wait);
                let look = waits.then_some(now + LOOK_FOR_ROOM);
                [blocked, look, run.deadline, run.outbox.due_at()].into_iter().flatten().min()
            }
        });
        // Nobody tells when a copy may be made.
        let copies = (!self.copies.is_empty()).then_some(now + LOOK_AGAIN);
        times.chain(copies).min().map(|at| at.saturating_sub(now))
    }

    /// Takes back what a session was given last: it holds `before` tokens again.
    pub(super) fn undo(&mut self, id: SessionId, before: usize) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        sequence.tokens.truncate(before);
        if let Some(guide) = &mut sequence.guide {
            guide.rewound(before);
        }
        sequence.publish_len();
        self.cut(id, u32::try_from(before).unwrap_or(u32::MAX));
    }
}

fn overdue(since: Option<Duration>, max_wait: Duration, now: Duration) -> bool {
    since.is_some_and(|since| now.saturating_sub(since) >= max_wait)
}
