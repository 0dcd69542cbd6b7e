//! Whose turn it is: weighted fair service over tenants, and within a tenant over
//! priorities.
//!
//! Each tenant, and each priority of it, has a clock that runs with the tokens it
//! is served, slower the more weight it has. The one whose clock is behind goes
//! first ("virtual time", as in weighted fair queueing). Who was idle begins at the
//! clock of those at work: there is nothing to be saved up, and nothing to be paid
//! back for tokens that nobody else wanted.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::options::{Priority, Tenant};

/// How far a clock may run ahead of that of somebody who waits before a place is
/// taken away, in tokens by weight. Less: fairer. More: fewer states moved.
const LEAD: f64 = 256.0;
/// The same as [`LEAD`] between priorities of one tenant, for the higher one.
const LEAD_OVER_LOWER: f64 = 16.0;

/// Weights of the priorities of a tenant, by [`Priority`].
const CLASSES: [f64; 3] = [1.0, 4.0, 16.0];

/// Who work is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) tenant: Tenant,
    pub(super) priority: Priority,
}

impl Owner {
    fn class(&self) -> usize {
        match self.priority {
            Priority::Background => 0,
            Priority::Normal => 1,
            Priority::Interactive => 2,
        }
    }

    fn weight(&self) -> f64 {
        f64::from(self.tenant.weight.max(1))
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Clocks {
    tenant: f64,
    classes: [f64; 3],
}

/// The clocks of those who are, or were lately, at work.
#[derive(Debug, Default)]
pub(super) struct Fair {
    tenants: BTreeMap<Arc<str>, Clocks>,
}

/// A piece of work that waits for its turn.
pub(super) struct Waiting<T> {
    pub(super) owner: Owner,
    /// Tokens it wants now.
    pub(super) tokens: u32,
    pub(super) item: T,
}

impl Fair {
    /// Notes that an owner begins to work beside `others`, who are at work.
    pub(super) fn begins<'a>(&mut self, owner: &Owner, others: impl Iterator<Item = &'a Owner> + Clone) {
        let tenants = others.clone().filter(|other| other.tenant.name != owner.tenant.name);
        let own = others.clone().filter(|other| other.tenant.name == owner.tenant.name);
        let is_idle = own.clone().next().is_none();
        let floor = tenants.map(|other| self.clocks(other).tenant).min_by(f64::total_cmp);
        let class_is_idle = own.clone().all(|other| other.priority != owner.priority);
        let class_floor =
            own.map(|other| class_clock(&self.clocks(other), other)).min_by(f64::total_cmp).filter(|_| class_is_idle);
        if is_idle {
            self.forget_idle(others);
        }
        let clocks = self.tenants.entry(Arc::clone(&owner.tenant.name)).or_default();
        if let Some(floor) = floor.filter(|_| is_idle) {
            clocks.tenant = clocks.tenant.max(floor);
        }
        if is_idle {
            clocks.classes = [0.0; 3];
        } else if let (Some(floor), Some(class)) = (class_floor, clocks.classes.get_mut(owner.class())) {
            *class = class.max(floor);
        }
    }

    /// Drops the clocks of tenants that are not at work and have nothing to wait
    /// for: they would begin at the floor anyway.
    fn forget_idle<'a>(&mut self, at_work: impl Iterator<Item = &'a Owner> + Clone) {
        let floor = at_work.clone().map(|owner| self.clocks(owner).tenant).min_by(f64::total_cmp);
        let Some(floor) = floor else { return self.tenants.clear() };
        self.tenants
            .retain(|name, clocks| clocks.tenant > floor || at_work.clone().any(|owner| owner.tenant.name == *name));
    }

    /// Notes that an owner was served so many tokens.
    pub(super) fn served(&mut self, owner: &Owner, tokens: u32) {
        let clocks = self.tenants.entry(Arc::clone(&owner.tenant.name)).or_default();
        advance(clocks, owner, tokens);
    }

    /// Whether an owner has been served no more than any of `others`, each by its
    /// weight: what it wants beside them is due to it.
    pub(super) fn is_due(&self, owner: &Owner, others: &[Owner]) -> bool {
        others.iter().all(|other| self.lead(owner, other).is_none_or(|(lead, _)| lead <= 0.0))
    }

    /// Whether `holder` has been served so much more than `waiter` that it is to
    /// give up its place.
    pub(super) fn must_yield(&self, holder: &Owner, waiter: &Owner) -> bool {
        self.lead(holder, waiter).is_some_and(|(lead, allowed)| lead > allowed)
    }

    /// How far the clock of one is ahead of another's, and how far it may be. None
    /// for the same tenant and priority.
    fn lead(&self, holder: &Owner, waiter: &Owner) -> Option<(f64, f64)> {
        let (ahead, behind) = (self.clocks(holder), self.clocks(waiter));
        if holder.tenant.name != waiter.tenant.name {
            return Some((ahead.tenant - behind.tenant, LEAD));
        }
        let lead = class_clock(&ahead, holder) - class_clock(&behind, waiter);
        match holder.priority.cmp(&waiter.priority) {
            Ordering::Equal => None,
            Ordering::Less => Some((lead, LEAD_OVER_LOWER)),
            Ordering::Greater => Some((lead, LEAD)),
        }
    }

    /// Who gives way sooner, as the greater one: whose tenant had more of its share,
    /// and of one tenant the lower priority.
    pub(super) fn gives_way(&self, a: &Owner, b: &Owner) -> Ordering {
        let clocks = self.clocks(a).tenant.total_cmp(&self.clocks(b).tenant);
        clocks.then(b.priority.cmp(&a.priority))
    }

    fn clocks(&self, owner: &Owner) -> Clocks {
        self.tenants.get(&owner.tenant.name).copied().unwrap_or_default()
    }

    /// Which of some pieces of work, each of its owner, is served first. None: there
    /// are none.
    pub(super) fn first<'a>(&self, owners: impl Iterator<Item = &'a Owner>) -> Option<usize> {
        owners.enumerate().min_by(|(_, a), (_, b)| turn(&self.tenants, a, b)).map(|(index, _)| index)
    }

    /// Puts work in the order of service. Within an owner it keeps its order. Each
    /// piece counts as served when the next is chosen, so that one that is behind
    /// gets no more than it is behind.
    pub(super) fn order<T>(&self, work: Vec<Waiting<T>>) -> Vec<T> {
        let mut clocks = self.tenants.clone();
        let mut queues: Vec<(Owner, VecDeque<(u32, T)>)> = Vec::new();
        let mut at: BTreeMap<(Arc<str>, usize), usize> = BTreeMap::new();
        for waiting in work {
            let key = (Arc::clone(&waiting.owner.tenant.name), waiting.owner.class());
            let index = *at.entry(key).or_insert(queues.len());
            if index == queues.len() {
                queues.push((waiting.owner, Default::default()));
            }
            if let Some((_, queue)) = queues.get_mut(index) {
                queue.push_back((waiting.tokens, waiting.item));
            }
        }
        let mut ordered = Vec::new();
        loop {
            let heads = queues.iter().enumerate().filter(|(_, (_, queue))| !queue.is_empty());
            let next = heads.min_by(|(_, (a, _)), (_, (b, _))| turn(&clocks, a, b));
            let Some(index) = next.map(|(index, _)| index) else { return ordered };
            let Some((owner, queue)) = queues.get_mut(index) else { return ordered };
            let Some((tokens, item)) = queue.pop_front() else { return ordered };
            advance(clocks.entry(Arc::clone(&owner.tenant.name)).or_default(), owner, tokens);
            ordered.push(item);
        }
    }
}

/// Whose turn comes first. Of equals it is the one that is named first.
fn turn(clocks: &BTreeMap<Arc<str>, Clocks>, a: &Owner, b: &Owner) -> Ordering {
    let clock = |owner: &Owner| {
        let of = clocks.get(&owner.tenant.name).copied().unwrap_or_default();
        (of.tenant, class_clock(&of, owner))
    };
    let ((a_tenant, a_class), (b_tenant, b_class)) = (clock(a), clock(b));
    a_tenant
        .total_cmp(&b_tenant)
        .then_with(|| a.tenant.name.cmp(&b.tenant.name))
        .then_with(|| a_class.total_cmp(&b_class))
        .then_with(|| b.priority.cmp(&a.priority))
}

fn advance(clocks: &mut Clocks, owner: &Owner, tokens: u32) {
    clocks.tenant += f64::from(tokens) / owner.weight();
    if let (Some(clock), Some(weight)) = (clocks.classes.get_mut(owner.class()), CLASSES.get(owner.class())) {
        *clock += f64::from(tokens) / weight;
    }
}

fn class_clock(clocks: &Clocks, owner: &Owner) -> f64 {
    clocks.classes.get(owner.class()).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, weight: u32, priority: Priority) -> Owner {
        Owner { tenant: Tenant { name: name.into(), weight, ..Tenant::default() }, priority }
    }

    /// Serves whoever is first, ten tokens at a time, and counts.
    fn share(owners: &[Owner], rounds: usize) -> Vec<u32> {
        let mut fair = Fair::default();
        for (n, owner) in owners.iter().enumerate() {
            fair.begins(owner, owners[..n].iter());
        }
        let mut counts = vec![0; owners.len()];
        for _ in 0..rounds {
            let work = owners.iter().enumerate();
            let work = work.map(|(item, owner)| Waiting { owner: owner.clone(), tokens: 10, item }).collect();
            let first = fair.order(work)[0];
            fair.served(&owners[first], 10);
            counts[first] += 10;
        }
        counts
    }

    #[test]
    fn tenants_share_by_weight_whatever_their_priorities() {
        let (a, b) = (owner("a", 3, Priority::Background), owner("b", 1, Priority::Interactive));
        assert_eq!(share(&[a, b], 400), [3000, 1000]);
    }

    #[test]
    fn priorities_share_within_a_tenant() {
        let owners = [Priority::Background, Priority::Normal, Priority::Interactive].map(|p| owner("a", 1, p));
        assert_eq!(share(&owners, 210), [100, 400, 1600]);
    }

    #[test]
    fn work_of_one_step_is_dealt_out_in_turns() {
        let fair = Fair::default();
        let (a, b) = (owner("a", 1, Priority::Normal), owner("b", 1, Priority::Normal));
        let work = |owner: &Owner, item: u32| Waiting { owner: owner.clone(), tokens: 10, item };
        let order = fair.order(vec![work(&a, 1), work(&a, 2), work(&a, 3), work(&b, 4)]);
        assert_eq!(order, [1, 4, 2, 3]);
    }

    #[test]
    fn idling_saves_nothing_up_and_coming_back_costs_nothing() {
        let mut fair = Fair::default();
        let (a, b) = (owner("a", 1, Priority::Normal), owner("b", 1, Priority::Normal));
        fair.begins(&a, [].iter());
        fair.served(&a, 10_000);
        fair.begins(&b, [&a].into_iter());
        assert!(!fair.must_yield(&a, &b), "b begins where a is");
        fair.served(&a, 257);
        assert!(fair.must_yield(&a, &b));
        fair.served(&b, 100_000);
        // b ends; a, now far behind, works alone; b comes back.
        fair.begins(&b, [&a].into_iter());
        assert!(!fair.must_yield(&a, &b), "what b had beyond its share is not forgiven while a works");
        fair.begins(&a, [].iter());
        assert_eq!(fair.tenants.len(), 1, "idle tenants are forgotten");
    }

    #[test]
    fn a_lower_priority_yields_soon() {
        let mut fair = Fair::default();
        let (low, high) = (owner("a", 1, Priority::Background), owner("a", 1, Priority::Interactive));
        fair.begins(&low, [].iter());
        fair.served(&low, 50);
        fair.begins(&high, [&low].into_iter());
        fair.served(&low, 10);
        assert!(!fair.must_yield(&low, &high));
        fair.served(&low, 10);
        assert!(fair.must_yield(&low, &high));
        assert!(!fair.must_yield(&high, &low));
    }
}
