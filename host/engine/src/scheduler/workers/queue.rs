//! A queue that serves tenants in turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a tenant waits for, and how much of it is being worked on.
struct Line<T> {
    waiting: VecDeque<T>,
    running: usize,
}

struct State<T> {
    lines: BTreeMap<Arc<str>, Line<T>>,
    /// Whose turn was last.
    last: Option<Arc<str>>,
    closed: bool,
}

/// Tenants take turns, and each has so many pieces worked on at a time at the most.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    at_once: usize,
}

impl<T> Queue<T> {
    pub(super) fn new(at_once: usize) -> Self {
        let state = State { lines: BTreeMap::new(), last: None, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), at_once: at_once.max(1) }
    }

    pub(super) fn push(&self, tenant: Arc<str>, item: T) {
        let mut state = self.lock();
        let line = state.lines.entry(tenant).or_insert_with(|| Line { waiting: VecDeque::new(), running: 0 });
        line.waiting.push_back(item);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next piece. None: the queue is closed. [`Queue::done`] is to be
    /// called when it has been worked on.
    pub(super) fn pop(&self) -> Option<(Arc<str>, T)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(next) = state.take(self.at_once) {
                return Some(next);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn done(&self, tenant: &str) {
        let mut state = self.lock();
        if let Some(line) = state.lines.get_mut(tenant) {
            line.running = line.running.saturating_sub(1);
            if line.running == 0 && line.waiting.is_empty() {
                state.lines.remove(tenant);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Has everybody who waits go.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// No line is ever left half changed, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// The next piece of the tenant after the last one that has something to do.
    fn take(&mut self, at_once: usize) -> Option<(Arc<str>, T)> {
        let ready = |(_, line): &(&Arc<str>, &Line<T>)| line.running < at_once && !line.waiting.is_empty();
        let after = self.lines.iter().filter(|(name, _)| self.last.as_ref().is_none_or(|last| *name > last));
        let tenant = after.chain(&self.lines).find(ready).map(|(name, _)| Arc::clone(name))?;
        let line = self.lines.get_mut(&tenant)?;
        let item = line.waiting.pop_front()?;
        line.running += 1;
        self.last = Some(Arc::clone(&tenant));
        Some((tenant, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_take_turns_and_none_has_all_the_threads() {
        let queue = Queue::new(2);
        for n in 0..4 {
            queue.push("many".into(), n);
        }
        queue.push("one".into(), 10);
        let pop = || queue.lock().take(2).map(|(tenant, n)| (tenant.to_string(), n));
        assert_eq!(pop(), Some(("many".into(), 0)));
        assert_eq!(pop(), Some(("one".into(), 10)));
        assert_eq!(pop(), Some(("many".into(), 1)));
        assert_eq!(pop(), None, "two are being worked on");
        queue.done("many");
        assert_eq!(queue.pop().unwrap().1, 2);
        queue.done("one");
        assert!(!queue.lock().lines.contains_key("one"), "those who are gone are forgotten");
        queue.close();
        assert!(queue.pop().is_none());
    }
}
