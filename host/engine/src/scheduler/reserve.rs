//! Room that tenants leave to each other.
//!
//! To make room, somebody's state is copied out of its cells, which can take longer than
//! many steps. So whoever holds more than its share of what there is, while others were
//! here not long ago, leaves a little of it free: a question of one of them begins at once.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Scheduler;
use super::fair::{Owner, Waiting};
use super::plan::{Candidate, Reserve};
use super::sequence::Sequence;
use crate::clock::Clock;
use crate::command::SessionId;
use crate::options::Tenant;

/// The part of all cells, and sequences, that is left.
const PART: u32 = 8;
/// What is left of many: enough for a question.
const MOST: Reserve = Reserve { cells: 512, sequences: 4 };

/// What a tenant has of the backend.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    cells: u32,
    sequences: u32,
    weight: u32,
}

impl Held {
    /// Which of two tenants holds more for its weight.
    pub(super) fn more_than(&self, other: &Self) -> Ordering {
        let cells = |held: &Self, by: &Self| u64::from(held.cells) * u64::from(by.weight);
        cells(self, other).cmp(&cells(other, self))
    }
}

/// What tenants have, by their names.
pub(super) type Holdings = BTreeMap<Arc<str>, Held>;

impl<C: Clock> Scheduler<C> {
    /// What is left to others by those who hold more than their share. Nothing where room
    /// cannot be made by copying: who waits for some then waits until others are gone.
    pub(super) fn reserve(&self) -> Reserve {
        if !self.abilities.snapshot {
            return Reserve::default();
        }
        Reserve {
            cells: (self.cells.total() / PART).min(MOST.cells),
            sequences: (self.limits.sequences / PART).min(MOST.sequences),
        }
    }

    /// What each tenant has.
    pub(super) fn holdings(&self) -> Holdings {
        let mut holdings = Holdings::new();
        for sequence in self.sequences.values().filter(|sequence| sequence.seq.is_some()) {
            let Tenant { name, weight, .. } = &sequence.owner.tenant;
            let held = holdings.entry(Arc::clone(name)).or_default();
            held.cells = held.cells.saturating_add(sequence.in_kv());
            held.sequences += 1;
            held.weight = (*weight).max(1);
        }
        holdings
    }

    /// Tells the prompts that are to leave room to others.
    pub(super) fn have_room_left(&self, prompts: &mut [(Duration, Waiting<Candidate>)], now: Duration) {
        let Reserve { cells, sequences } = self.reserve();
        let mut holdings = None;
        for (_, Waiting { owner, item, .. }) in prompts {
            let after = self.cells.available().saturating_sub(item.cells);
            let is_tight = after < cells || self.available_sequences() <= sequences;
            // What needs nearly all of it can only have all of it.
            let can_leave_any = item.cells.saturating_add(cells) <= self.cells.total();
            if is_tight && can_leave_any && !item.begun && !self.has_waited(item.id, now) {
                let holdings = holdings.get_or_insert_with(|| self.holdings());
                item.leaves_room = self.exceeds_its_share(item, owner, holdings, now);
            }
        }
    }

    /// Whether a prompt has waited for so long that it is to be refused before long.
    fn has_waited(&self, id: SessionId, now: Duration) -> bool {
        let wait = self.sequences.get(&id).and_then(Sequence::wait);
        wait.and_then(|wait| wait.blocked).is_some_and(|since| now.saturating_sub(since) >= self.turn())
    }

    /// Whether a tenant would have more than its share with this prompt.
    fn exceeds_its_share(&self, prompt: &Candidate, owner: &Owner, holdings: &Holdings, now: Duration) -> bool {
        let Some(share) = self.company.share(owner, now) else { return false };
        let Held { cells, sequences, .. } = holdings.get(&owner.tenant.name).copied().unwrap_or_default();
        let exceeds = |held: u32, all: u32| f64::from(held) > f64::from(all) * share;
        exceeds(cells.saturating_add(prompt.cells), self.cells.total())
            || exceeds(sequences + u32::from(!prompt.placed), self.limits.sequences)
    }
}
