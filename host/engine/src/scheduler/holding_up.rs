//! Who holds up whom, and for how long: steps are longer for prompts, and all wait while a
//! state is copied. What comes of it is told by [`super::company`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Scheduler;
use super::fair::Owner;
use super::fill::Placed;
use super::plan::Of;
use super::sequence::Work;
use crate::clock::Clock;
use crate::command::SessionId;

impl<C: Clock> Scheduler<C> {
    /// Notes who was at work in the batch that was decoded, who held others up, and what
    /// there was to spare.
    pub(super) fn note_company(&mut self, placed: &[Placed], took: Duration, now: Duration) {
        // With the tokens of their prompts.
        let mut tenants: BTreeMap<Arc<str>, (Owner, u32)> = BTreeMap::new();
        for share in placed {
            let Some(sequence) = self.sequences.get(&share.id) else { continue };
            let owner = &sequence.owner;
            let new = || (owner.clone(), 0);
            let (_, prompts) = tenants.entry(Arc::clone(&owner.tenant.name)).or_insert_with(new);
            *prompts += if share.of == Of::Prompt { share.tokens } else { 0 };
        }
        let tokens = |of| placed.iter().filter(|share| share.of == of).map(|share| share.tokens).sum::<u32>();
        let (prompts, spare) = (tokens(Of::Prompt), tokens(Of::Spare));
        // With what was guessed.
        let runs = u32::try_from(self.batch.len()).unwrap_or(u32::MAX).saturating_sub(prompts.saturating_add(spare));
        let all = self.spare.held_up(runs, took);
        for (owner, own) in tenants.into_values() {
            let part = f64::from(own) / f64::from(prompts.max(1));
            let held_up = if own > 0 && self.is_awaited(&owner) { all.mul_f64(part) } else { Duration::ZERO };
            self.company.saw(&owner, held_up, now);
        }
        self.spare.stepped(spare);
        if prompts == 0 && runs > 0 {
            self.spare.measured(runs, spare, took);
        }
    }

    /// Does what all wait for, and notes how long others did so for this session.
    pub(super) fn holding_up<T>(&mut self, id: SessionId, work: impl FnOnce(&mut Self) -> T) -> T {
        let begin = self.clock.now();
        let done = work(self);
        if let Some(owner) = self.sequences.get(&id).map(|sequence| sequence.owner.clone()) {
            self.held_up_since(begin, &owner);
        }
        done
    }

    /// Notes that others have waited for a tenant since `begin`.
    pub(super) fn held_up_since(&mut self, begin: Duration, owner: &Owner) {
        let now = self.clock.now();
        if now > begin && self.is_awaited(owner) {
            self.company.saw(owner, now.saturating_sub(begin), now);
        }
    }

    /// Moves a session's state out of the way, which its owner need not be there for, and
    /// notes how long others waited for that.
    pub(super) fn moving_away<T>(&mut self, id: SessionId, work: impl FnOnce(&mut Self) -> T) -> T {
        let begin = self.clock.now();
        let done = work(self);
        let (now, owner) = (self.clock.now(), self.sequences.get(&id).map(|sequence| sequence.owner.clone()));
        if let Some(owner) = owner.filter(|owner| now > begin && self.is_awaited(owner)) {
            self.company.charge(&owner, now.saturating_sub(begin), now);
        }
        done
    }

    /// Whether others than a tenant have runs or prompts, which wait for the end of its own.
    pub(super) fn is_awaited(&self, owner: &Owner) -> bool {
        let at_work = self.at_work.iter().filter_map(|id| self.sequences.get(id));
        let mut others = at_work.filter(|sequence| sequence.owner.tenant.name != owner.tenant.name);
        others.any(|sequence| !matches!(sequence.work, Work::Idle))
    }

    /// Whether what a tenant wants done is to wait: it has held others up for long enough,
    /// and would again.
    pub(super) fn must_wait(&self, owner: &Owner, now: Duration) -> bool {
        self.company.must_yield(owner, now) && self.is_awaited(owner)
    }
}
