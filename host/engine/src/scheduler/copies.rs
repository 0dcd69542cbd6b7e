//! Copies of states that sessions ask for: to save them, to park them, to move them up
//! behind tokens that were evicted.
//!
//! All wait while one is made, as long as for several steps where a text is long. So with
//! several tenants at work few are made between two steps, and a tenant that has held the
//! others up for long enough waits until that is made good.

use std::collections::VecDeque;
use std::time::Duration;

use super::Scheduler;
use crate::clock::Clock;
use crate::command::{CopyCommand, CopyTo};

/// For so long copies may be made between two steps.
const BETWEEN: Duration = Duration::from_millis(5);

/// Those that wait, oldest first.
pub(super) type Copies = VecDeque<CopyCommand>;

impl<C: Clock> Scheduler<C> {
    /// Makes a copy, or has it wait for its turn.
    pub(super) fn ask_for_copy(&mut self, copy: CopyCommand) {
        let owner = self.sequences.get(&copy.id).map(|sequence| sequence.owner.clone());
        match owner.is_some_and(|owner| self.is_awaited(&owner)) {
            true => self.copies.push_back(copy),
            false => self.copy(copy),
        }
    }

    /// Makes copies that wait, of those who need not wait any longer. Whether there were any.
    pub(super) fn copy_some(&mut self, now: Duration) -> bool {
        self.copies.retain(|copy| !copy.reply.is_closed());
        let end = now + BETWEEN;
        let mut done = false;
        while self.clock.now() < end
            && let Some(copy) = self.next_copy()
        {
            self.copy(copy);
            done = true;
        }
        done
    }

    /// Takes out the first copy that need not wait.
    fn next_copy(&mut self) -> Option<CopyCommand> {
        let now = self.clock.now();
        let may_be_made = |copy: &CopyCommand| {
            self.sequences.get(&copy.id).is_none_or(|sequence| !self.must_wait(&sequence.owner, now))
        };
        let first = self.copies.iter().position(may_be_made)?;
        self.copies.remove(first)
    }

    fn copy(&mut self, copy: CopyCommand) {
        let CopyCommand { id, to, reply } = copy;
        if let Some(owner) = self.sequences.get(&id).map(|sequence| sequence.owner.clone()) {
            self.company.saw(&owner, Duration::ZERO, self.clock.now());
        }
        let done = match to {
            CopyTo::Evict { at, count } => self.evict(id, at, count),
            CopyTo::Park => self.park_on_request(id),
            CopyTo::Save { name } => self.save(id, name),
        };
        // A handle that no longer listens has dropped its session, or is about to.
        let _ = reply.send(done);
    }
}
