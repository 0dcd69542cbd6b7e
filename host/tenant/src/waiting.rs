//! Whoever waits until something comes back, first come first served, under any
//! runtime.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Those who wait for a part of a quota, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    waiting: VecDeque<(Ticket, Waker)>,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Waiters {
    /// Whether somebody waits; who comes later then does, too.
    pub(crate) fn any(&self) -> bool {
        !self.queue().waiting.is_empty()
    }

    /// Takes the last place.
    pub(crate) fn enter(&self, waker: Waker) -> Ticket {
        let mut queue = self.queue();
        let ticket = Ticket(queue.next);
        queue.next += 1;
        queue.waiting.push_back((ticket, waker));
        ticket
    }

    /// Whether it is this one's turn; if not, `waker` is called when it is.
    pub(crate) fn is_first(&self, ticket: Ticket, waker: &Waker) -> bool {
        let mut queue = self.queue();
        if let Some((_, known)) = queue.waiting.iter_mut().find(|(waiting, _)| *waiting == ticket) {
            known.clone_from(waker);
        }
        queue.waiting.front().is_some_and(|(first, _)| *first == ticket)
    }

    /// Leaves the queue, and lets the next one look: there may be more than one
    /// place free.
    pub(crate) fn leave(&self, ticket: Ticket) {
        self.queue().waiting.retain(|(waiting, _)| *waiting != ticket);
        self.wake();
    }

    /// Lets the first one look whether there is a place now.
    pub(crate) fn wake(&self) {
        // Not while the queue is locked: a waker may do anything.
        let first = self.queue().waiting.front().map(|(_, waker)| waker.clone());
        if let Some(waker) = first {
            waker.wake();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
