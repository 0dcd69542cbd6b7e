//! Who has which memory, and whose turn it is: the rules of the pool, without
//! threads, clocks or engines.
//!
//! Two sums keep to the budget. What is *planned* (models that are claimed,
//! loading or loaded) may not exceed it, which decides who may load; what is
//! *held* (models that are loading, loaded or unloading) may not, which decides
//! when a load may begin. So a model can be promised the room of those that are
//! just unloaded for it, and nobody else can take it meanwhile.
//!
//! Room is made by unloading for whoever waits longest; room that is free is for
//! whoever fits into it, since nothing is won by leaving it empty.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::error::{Bytes, LoadFailure, Waiting};
use super::{ModelState, Residence};

/// What the ledger asks of an engine.
pub(super) trait Kept: Clone {
    /// Whether something is lost with it that its users count on.
    fn has_saved(&self) -> bool;
}

/// A model, by its place in the ledger.
pub(super) type Index = usize;

pub(super) struct Ledger<E> {
    budget: u64,
    /// How long a load that failed is not tried again.
    retry_after: Duration,
    entries: Vec<Entry<E>>,
    /// Callers that wait, by when they came.
    queue: BTreeMap<u64, Waiter>,
    next: u64,
    shut_down: bool,
}

struct Entry<E> {
    name: Arc<str>,
    bytes: u64,
    residence: Residence,
    state: State<E>,
    /// Loads begun so far.
    loads: u64,
    failure: Option<Failed>,
}

/// A caller that waits. One that is not asked again after its time keeps nobody
/// from anything.
struct Waiter {
    index: Index,
    until: Instant,
}

struct Failed {
    load: u64,
    why: Arc<LoadFailure>,
    retry: Instant,
}

enum State<E> {
    Cold,
    /// It has room, as soon as others are gone.
    Claimed,
    Loading,
    Loaded {
        engine: E,
        leases: usize,
        used: Instant,
    },
    Unloading,
}

impl<E> State<E> {
    fn planned(&self) -> bool {
        matches!(self, Self::Claimed | Self::Loading | Self::Loaded { .. })
    }

    fn held(&self) -> bool {
        matches!(self, Self::Loading | Self::Loaded { .. } | Self::Unloading)
    }
}

/// A caller's place in the queue.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) index: Index,
    number: u64,
    /// The load that it waits for.
    load: Option<u64>,
}

/// What a caller is told.
pub(super) enum Answer<E> {
    /// The model is loaded, and leased to the caller, who is no longer waiting.
    Leased(E),
    /// The model is claimed: it is to be loaded once these are unloaded.
    Load(Vec<(Index, E)>),
    /// Something has to change first.
    Wait,
    /// The load that the caller waited for, or a recent one, has failed.
    Failed(Arc<LoadFailure>),
    /// There are no models any more.
    ShutDown,
}

impl<E: Kept> Ledger<E> {
    pub(super) fn new(
        budget: u64,
        retry_after: Duration,
        models: impl Iterator<Item = (Arc<str>, u64, Residence)>,
    ) -> Self {
        let entry =
            |(name, bytes, residence)| Entry { name, bytes, residence, state: State::Cold, loads: 0, failure: None };
        let entries = models.map(entry).collect();
        Self { budget, retry_after, entries, queue: BTreeMap::new(), next: 0, shut_down: false }
    }

    fn sum(&self, counts: impl Fn(&State<E>) -> bool) -> u64 {
        let counted = self.entries.iter().filter(|entry| counts(&entry.state));
        counted.fold(0, |sum, entry| entry.bytes.saturating_add(sum))
    }

    /// Bytes of what is loading, loaded or unloading.
    pub(super) fn held(&self) -> u64 {
        self.sum(State::held)
    }

    fn free(&self) -> u64 {
        self.budget.saturating_sub(self.sum(State::planned))
    }

    /// Takes a caller in, behind all others, for as long as it will wait.
    pub(super) fn queue(&mut self, index: Index, until: Instant) -> Place {
        let number = self.next;
        self.next += 1;
        self.queue.insert(number, Waiter { index, until });
        Place { index, number, load: None }
    }

    /// How many callers wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// A caller waits no longer.
    pub(super) fn leave(&mut self, place: &Place) {
        self.queue.remove(&place.number);
    }

    /// A lease, if the model is loaded.
    pub(super) fn lease(&mut self, index: Index) -> Option<E> {
        match &mut self.entries.get_mut(index)?.state {
            State::Loaded { engine, leases, .. } => {
                *leases += 1;
                Some(engine.clone())
            }
            _ => None,
        }
    }

    /// What a caller is to do now.
    pub(super) fn ask(&mut self, place: &mut Place, now: Instant) -> Answer<E> {
        if self.shut_down {
            return Answer::ShutDown;
        }
        if let Some(engine) = self.lease(place.index) {
            self.leave(place);
            return Answer::Leased(engine);
        }
        let Some(entry) = self.entries.get(place.index) else { return Answer::Wait };
        if let Some(failed) = &entry.failure {
            let recent = matches!(entry.state, State::Cold) && now < failed.retry;
            if place.load == Some(failed.load) || recent {
                return Answer::Failed(Arc::clone(&failed.why));
            }
        }
        match entry.state {
            State::Claimed | State::Loading => {
                place.load = Some(entry.loads);
                Answer::Wait
            }
            State::Cold => match self.room(place, entry.bytes, now) {
                None => Answer::Wait,
                Some(victims) => {
                    let victims = victims.into_iter().filter_map(|victim| Some((victim, self.unload(victim)?)));
                    let victims = victims.collect();
                    place.load = self.claim(place.index);
                    Answer::Load(victims)
                }
            },
            State::Unloading | State::Loaded { .. } => Answer::Wait,
        }
    }

    /// Whether a model is loaded.
    pub(super) fn state(&self, index: Index) -> ModelState {
        match self.entries.get(index).map(|entry| &entry.state) {
            None | Some(State::Cold) => ModelState::Unloaded,
            Some(State::Claimed | State::Loading) => ModelState::Loading,
            Some(State::Loaded { .. }) => ModelState::Loaded,
            Some(State::Unloading) => ModelState::Unloading,
        }
    }

    /// Who has to go for so many bytes. None: there is no way now.
    fn room(&self, place: &Place, bytes: u64, now: Instant) -> Option<Vec<Index>> {
        let free = self.free();
        if bytes <= free {
            return Some(Vec::new());
        }
        let wants_room = |waiter: &Waiter| {
            let entry = self.entries.get(waiter.index);
            entry.is_some_and(|entry| matches!(entry.state, State::Cold | State::Unloading)) && now < waiter.until
        };
        let first = self.queue.iter().find(|(_, waiter)| wants_room(waiter));
        if first.is_some_and(|(number, _)| *number != place.number) {
            return None;
        }
        let mut idle: Vec<_> = self.idle(now).collect();
        // Those first that nobody misses.
        idle.sort_by_key(|(_, entry, used)| (self.precious(entry), *used));
        let mut room = free;
        let mut chosen = Vec::new();
        for (index, entry, _) in idle {
            if room >= bytes {
                break;
            }
            room = room.saturating_add(entry.bytes);
            chosen.push((index, entry.bytes));
        }
        if room < bytes {
            return None;
        }
        // A large one may have made smaller ones needless.
        let mut needed = Vec::new();
        for (index, size) in chosen.into_iter().rev() {
            if room.saturating_sub(size) >= bytes {
                room -= size;
            } else {
                needed.push(index);
            }
        }
        Some(needed)
    }

    fn precious(&self, entry: &Entry<E>) -> bool {
        matches!(&entry.state, State::Loaded { engine, .. } if engine.has_saved())
    }

    /// Models that nobody uses or waits for, with when they were last used.
    fn idle(&self, now: Instant) -> impl Iterator<Item = (Index, &Entry<E>, Instant)> {
        let wanted = move |index| self.queue.values().any(|waiter| waiter.index == index && now < waiter.until);
        self.entries.iter().enumerate().filter_map(move |(index, entry)| match entry.state {
            State::Loaded { leases: 0, used, .. } if entry.residence == Residence::OnDemand && !wanted(index) => {
                Some((index, entry, used))
            }
            _ => None,
        })
    }

    /// Claims the room of a cold model and says the number of the load.
    fn claim(&mut self, index: Index) -> Option<u64> {
        let entry = self.entries.get_mut(index)?;
        entry.state = State::Claimed;
        entry.loads += 1;
        Some(entry.loads)
    }

    /// Claims a cold model that finds free room, for a load that is begun at
    /// once. False: it is not cold, or there is none.
    pub(super) fn claim_free(&mut self, index: Index) -> bool {
        let fits = self
            .entries
            .get(index)
            .is_some_and(|entry| matches!(entry.state, State::Cold) && entry.bytes <= self.free() && !self.shut_down);
        fits && self.claim(index).is_some() && self.begin(index) == Begin::Now
    }

    /// Whether the load of a claimed model may begin.
    pub(super) fn begin(&mut self, index: Index) -> Begin {
        let held = self.held();
        let Some(entry) = self.entries.get_mut(index) else { return Begin::Never };
        match entry.state {
            State::Claimed if self.shut_down => Begin::Never,
            State::Claimed if held.saturating_add(entry.bytes) <= self.budget => {
                entry.state = State::Loading;
                Begin::Now
            }
            State::Claimed => Begin::Later,
            _ => Begin::Never,
        }
    }

    /// A load has ended. What comes back is an engine that nobody wants any more.
    pub(super) fn finish(&mut self, index: Index, done: Result<E, LoadFailure>, now: Instant) -> Option<E> {
        let Some(entry) = self.entries.get_mut(index) else { return done.ok() };
        match done {
            Ok(engine) if self.shut_down => {
                entry.state = State::Unloading;
                Some(engine)
            }
            Ok(engine) => {
                entry.failure = None;
                entry.state = State::Loaded { engine, leases: 0, used: now };
                None
            }
            Err(why) => {
                entry.state = State::Cold;
                entry.failure = Some(Failed { load: entry.loads, why: Arc::new(why), retry: now + self.retry_after });
                None
            }
        }
    }

    /// What the last load of a model failed by.
    pub(super) fn failure(&self, index: Index) -> Option<Arc<LoadFailure>> {
        self.entries.get(index)?.failure.as_ref().map(|failed| Arc::clone(&failed.why))
    }

    /// A lease has ended.
    pub(super) fn release(&mut self, index: Index, now: Instant) {
        if let Some(Entry { state: State::Loaded { leases, used, .. }, .. }) = self.entries.get_mut(index) {
            *leases = leases.saturating_sub(1);
            *used = now;
        }
    }

    fn unload(&mut self, index: Index) -> Option<E> {
        let entry = self.entries.get_mut(index)?;
        match std::mem::replace(&mut entry.state, State::Unloading) {
            State::Loaded { engine, .. } => Some(engine),
            other => {
                entry.state = other;
                None
            }
        }
    }

    /// An engine is gone, with all its memory.
    pub(super) fn unloaded(&mut self, index: Index) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.state = State::Cold;
        }
    }

    /// Takes out what has been idle for so long. What holds saved sessions stays:
    /// only want of room takes it.
    pub(super) fn take_idle(&mut self, idle: Duration, now: Instant) -> Vec<(Index, E)> {
        let expired = self.expiring(idle, now).filter(|(_, end)| *end <= now).map(|(index, _)| index);
        let expired: Vec<Index> = expired.collect();
        expired.into_iter().filter_map(|index| Some((index, self.unload(index)?))).collect()
    }

    /// When the next one will have been idle for so long.
    pub(super) fn next_idle(&self, idle: Duration, now: Instant) -> Option<Instant> {
        self.expiring(idle, now).map(|(_, end)| end).min()
    }

    fn expiring(&self, idle: Duration, now: Instant) -> impl Iterator<Item = (Index, Instant)> {
        let missed = move |entry: &Entry<E>| self.precious(entry);
        self.idle(now).filter(move |(_, entry, _)| !missed(entry)).map(move |(index, _, used)| (index, used + idle))
    }

    /// Whether an engine is on its way out, or in, which after the end comes to the
    /// same.
    pub(super) fn moves(&self) -> bool {
        let moves = |state: &State<E>| matches!(state, State::Claimed | State::Loading | State::Unloading);
        self.entries.iter().any(|entry| moves(&entry.state))
    }

    /// Ends all: what is loaded is taken out, whoever uses it.
    pub(super) fn shut_down(&mut self) -> Vec<(Index, E)> {
        self.shut_down = true;
        (0..self.entries.len()).filter_map(|index| Some((index, self.unload(index)?))).collect()
    }

    /// Loaded models, by name.
    pub(super) fn loaded(&self) -> impl Iterator<Item = (&str, &E)> {
        self.entries.iter().filter_map(|entry| match &entry.state {
            State::Loaded { engine, .. } => Some((&*entry.name, engine)),
            _ => None,
        })
    }

    /// What a model waits for, for people.
    pub(super) fn waits_for(&self, index: Index, waited: Duration) -> Waiting {
        let entry = self.entries.get(index);
        match entry.map(|entry| &entry.state) {
            Some(State::Cold | State::Unloading) => Waiting::Room {
                needed: entry.map_or(0, |entry| entry.bytes),
                budget: self.budget,
                holders: self.entries.iter().filter_map(holder).collect(),
            },
            _ => Waiting::Load { waited },
        }
    }
}

/// Whether a load may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    Now,
    Later,
    Never,
}

/// A model that holds memory, for people.
fn holder<E>(entry: &Entry<E>) -> Option<String> {
    let (name, bytes) = (&entry.name, Bytes(entry.bytes));
    let does = match &entry.state {
        State::Cold => return None,
        State::Claimed | State::Loading => "loading".to_owned(),
        State::Loaded { .. } if entry.residence == Residence::Resident => "stays loaded".to_owned(),
        State::Loaded { leases: 0, .. } => "wanted by others".to_owned(),
        State::Loaded { leases, .. } => format!("{leases} in use"),
        State::Unloading => "unloading".to_owned(),
    };
    Some(format!("{name} ({bytes}, {does})"))
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
