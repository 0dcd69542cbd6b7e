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
use super::plan::Candidate;
use super::sequence::Sequence;
use crate::clock::Clock;
use crate::command::SessionId;
use crate::options::Tenant;

/// The part of all cells that is left.
const PART: u32 = 8;
/// What is left of many: enough for a question. Sequences need not be left: where they run
/// out and cells do not, states are short, and soon copied.
const MOST: u32 = 512;

/// What a tenant has of the backend.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    cells: f64,
    weight: f64,
    /// When a session of it was given a place last.
    placed_at: Option<Duration>,
}

impl Held {
    /// Which of two tenants holds more for its weight.
    pub(super) fn more_than(&self, other: &Self) -> Ordering {
        (self.cells * other.weight).total_cmp(&(other.cells * self.weight))
    }
}

/// What tenants have, by their names.
pub(super) type Holdings = BTreeMap<Arc<str>, Held>;

impl<C: Clock> Scheduler<C> {
    /// Cells that are left to others by those who hold more than their share. None where
    /// room cannot be made by copying: who waits for some then waits until others are gone.
    pub(super) fn reserve(&self) -> u32 {
        if self.abilities.snapshot { (self.cells.total() / PART).min(MOST) } else { 0 }
    }

    /// What each tenant has.
    pub(super) fn holdings(&self) -> Holdings {
        let mut holdings = Holdings::new();
        for sequence in self.sequences.values().filter(|sequence| sequence.seq.is_some()) {
            let Tenant { name, weight, .. } = &sequence.owner.tenant;
            let held = holdings.entry(Arc::clone(name)).or_default();
            held.cells += self.cells.parts(&sequence.cells);
            held.weight = f64::from((*weight).max(1));
            held.placed_at = held.placed_at.max(sequence.placed_at);
        }
        holdings
    }

    /// Tells those that are to leave room to others before they begin.
    pub(super) fn have_room_left(&self, waiting: &mut [(Duration, Waiting<Candidate>)], now: Duration) {
        let reserve = self.reserve();
        let cells = waiting.iter().fold(0, |sum: u32, (_, one)| sum.saturating_add(one.item.cells));
        if self.cells.available().saturating_sub(cells) >= reserve {
            return;
        }
        let holdings = self.holdings();
        for (_, Waiting { owner, item, .. }) in waiting.iter_mut().filter(|(_, one)| !one.item.begun) {
            let held = holdings.get(&owner.tenant.name).copied().unwrap_or_default();
            // What needs nearly all of it can only have all of it.
            let own = self.sequences.get(&item.id).map_or(0, Sequence::in_kv);
            let can_leave_any = own.saturating_add(item.cells).saturating_add(reserve) <= self.cells.total();
            item.leaves_room = can_leave_any
                && !self.has_its_turn(item.id, &held, now)
                && self.exceeds_its_share(item, owner, &held, now);
        }
    }

    /// Whether one has waited for so long that it is to be refused before long. It need not
    /// leave any room then, but one of a tenant at a time.
    fn has_its_turn(&self, id: SessionId, held: &Held, now: Duration) -> bool {
        let wait = self.sequences.get(&id).and_then(Sequence::wait);
        let long = |since: Duration| now.saturating_sub(since) >= self.turn();
        wait.and_then(|wait| wait.blocked).is_some_and(long) && held.placed_at.is_none_or(long)
    }

    /// Whether a tenant would have more than its share with this one. What is left to others
    /// anybody may have.
    fn exceeds_its_share(&self, one: &Candidate, owner: &Owner, held: &Held, now: Duration) -> bool {
        let Some(share) = self.company.share(owner, now) else { return false };
        let own = (f64::from(self.cells.total()) * share).max(f64::from(self.reserve()));
        held.cells + f64::from(one.cells) > own
    }
}
