//! Whose write is next.
//!
//! Tenants stand in a ring. Who is at its front is given credit for some bytes,
//! takes what that pays for, and goes to the end ("deficit round robin"): however
//! much one has waiting, another's first write waits for about one write of each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::config::Queue;

/// Credit a turn, in bytes.
const CREDIT: u64 = 4 << 10;

/// What waits, by tenant.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    bounds: Queue,
    lines: BTreeMap<Arc<str>, Line<T>>,
    /// The tenants of `lines`, by turn.
    ring: VecDeque<Arc<str>>,
    bytes: u64,
}

#[derive(Debug)]
struct Line<T> {
    waiting: VecDeque<(u64, T)>,
    bytes: u64,
    credit: u64,
}

/// Something whose turn it is.
#[derive(Debug)]
pub(crate) struct Turn<T> {
    pub(crate) tenant: Arc<str>,
    pub(crate) cost: u64,
    pub(crate) item: T,
}

/// A tenant has too much waiting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// How much, in items.
    pub(crate) waiting: usize,
}

impl<T> Turns<T> {
    pub(crate) fn new(bounds: Queue) -> Self {
        Self { bounds, lines: BTreeMap::new(), ring: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Puts something at the end of its tenant's line. What costs more than a line
    /// may hold is let in where nothing else waits.
    pub(crate) fn push(&mut self, tenant: &Arc<str>, cost: u64, item: T) -> Result<(), Full> {
        if let Some(line) = self.lines.get(tenant) {
            let waiting = line.waiting.len();
            let share = self.bounds.bytes / self.ring.len().max(1) as u64;
            let own_is_full = waiting >= self.bounds.tenant_writes || line.bytes + cost > self.bounds.tenant_bytes;
            let all_is_full = self.bytes + cost > self.bounds.bytes && line.bytes + cost > share;
            if own_is_full || all_is_full {
                return Err(Full { waiting });
            }
        }
        self.line(tenant, cost).waiting.push_back((cost, item));
        Ok(())
    }

    /// Puts something back where it came from, since more of it is to be done.
    pub(crate) fn put_back(&mut self, turn: Turn<T>) {
        self.line(&turn.tenant, turn.cost).waiting.push_front((turn.cost, turn.item));
    }

    /// Takes what is next.
    pub(crate) fn pop(&mut self) -> Option<Turn<T>> {
        loop {
            let tenant = Arc::clone(self.ring.front()?);
            let line = self.lines.get_mut(&tenant)?;
            match line.waiting.front() {
                Some((cost, _)) if *cost > line.credit => {
                    line.credit += CREDIT;
                    self.ring.rotate_left(1);
                }
                Some(_) => {
                    let (cost, item) = line.waiting.pop_front()?;
                    line.credit -= cost;
                    line.bytes = line.bytes.saturating_sub(cost);
                    self.bytes = self.bytes.saturating_sub(cost);
                    if line.waiting.is_empty() {
                        self.leave(&tenant);
                    }
                    return Some(Turn { tenant, cost, item });
                }
                None => self.leave(&tenant),
            }
        }
    }

    fn line(&mut self, tenant: &Arc<str>, cost: u64) -> &mut Line<T> {
        self.bytes += cost;
        let line = self.lines.entry(Arc::clone(tenant)).or_insert_with(|| {
            self.ring.push_back(Arc::clone(tenant));
            Line { waiting: VecDeque::new(), bytes: 0, credit: 0 }
        });
        line.bytes += cost;
        line
    }

    /// Forgets the tenant at the front, and its credit with it: there is nothing to
    /// be saved up.
    fn leave(&mut self, tenant: &Arc<str>) {
        self.lines.remove(tenant);
        self.ring.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Queue =
        Queue { tenant_writes: 1000, tenant_bytes: 10_000, bytes: 15_000, group_writes: 1, group_bytes: 1 };

    fn order(turns: &mut Turns<u32>) -> Vec<(String, u32)> {
        std::iter::from_fn(|| turns.pop()).map(|turn| (turn.tenant.to_string(), turn.item)).collect()
    }

    #[test]
    fn one_line_keeps_its_order() {
        let mut turns = Turns::new(BOUNDS);
        for item in 0..50 {
            turns.push(&"a".into(), 100, item).unwrap();
        }
        assert_eq!(order(&mut turns), (0..50).map(|item| ("a".to_owned(), item)).collect::<Vec<_>>());
        assert!(turns.is_empty() && turns.lines.is_empty() && turns.bytes == 0);
    }

    #[test]
    fn a_flood_does_not_keep_others_waiting() {
        let mut turns = Turns::new(Queue { tenant_bytes: u64::MAX, bytes: u64::MAX, ..BOUNDS });
        for item in 0..1000 {
            turns.push(&"flood".into(), 1000, item).unwrap();
        }
        turns.push(&"other".into(), 1000, 0).unwrap();
        let place = order(&mut turns).iter().position(|(tenant, _)| tenant == "other").unwrap();
        assert!(place <= 5, "the other's only write is the {place}th");
    }

    #[test]
    fn turns_are_by_bytes() {
        let mut turns = Turns::new(Queue { tenant_bytes: u64::MAX, bytes: u64::MAX, ..BOUNDS });
        for item in 0..500 {
            turns.push(&"large".into(), 8 << 10, item).unwrap();
            turns.push(&"small".into(), 1 << 10, item).unwrap();
        }
        let small = order(&mut turns).iter().take(90).filter(|(tenant, _)| tenant == "small").count();
        assert!((75..=85).contains(&small), "{small} of 90");
    }

    #[test]
    fn lines_are_bounded() {
        let mut turns = Turns::new(BOUNDS);
        let (a, b, c): (Arc<str>, Arc<str>, Arc<str>) = ("a".into(), "b".into(), "c".into());
        turns.push(&a, 9_000, 0).unwrap();
        assert_eq!(turns.push(&a, 1_001, 1), Err(Full { waiting: 1 }));
        // Together they have reached the sum, and the second has its share.
        turns.push(&b, 6_000, 0).unwrap();
        assert_eq!(turns.push(&b, 2_000, 0), Err(Full { waiting: 1 }));
        // Somebody else is let in.
        turns.push(&c, 2_000, 0).unwrap();
        // What is larger than a line waits for nothing else of its tenant.
        while turns.pop().is_some() {}
        turns.push(&a, 20_000, 0).unwrap();
        assert!(turns.push(&a, 1, 0).is_err());
        let few = Queue { tenant_writes: 2, ..BOUNDS };
        let mut turns = Turns::new(few);
        turns.push(&a, 1, 0).unwrap();
        turns.push(&a, 1, 0).unwrap();
        assert_eq!(turns.push(&a, 1, 0), Err(Full { waiting: 2 }));
    }

    #[test]
    fn what_is_put_back_is_first_of_its_tenant() {
        let mut turns = Turns::new(BOUNDS);
        turns.push(&"a".into(), 10, 1).unwrap();
        turns.push(&"a".into(), 10, 2).unwrap();
        let first = turns.pop().unwrap();
        turns.put_back(first);
        assert_eq!(order(&mut turns), [("a".to_owned(), 1), ("a".to_owned(), 2)]);
    }
}
