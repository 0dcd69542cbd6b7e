//! Turns at what is scarce, shared out among tenants: whoever wants much waits behind
//! those who have had little.
//!
//! Guests that compute and wait by turns, as handlers do, never come here: their tenant
//! [may go on](Turns::may_go_on) as long as all its guests together use a part of one
//! core. A tenant that uses more has its guests take a [`Place`] for each slice. There
//! are fewer places than threads that run guests, so a guest of somebody else is never
//! behind more than one slice, however many guests spin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nala_tenant::{Tenant, TenantName};
use tokio::sync::oneshot;

use crate::threads::Entrance;

/// What a tenant's guests may use without waiting for turns: one part in so many of a
/// core,
const PART: u32 = 8;
/// and so much at once, as for the rendering of a prompt.
const AT_ONCE: Duration = Duration::from_millis(50);
/// Grammars that are being compiled at a time: a compiler has as many threads.
const GRAMMARS: usize = 2;

/// The turns of one runtime.
#[derive(Debug)]
pub(crate) struct Turns {
    /// At computing.
    pub(crate) cpu: Queue,
    /// At work on long texts, which blocks a thread.
    pub(crate) texts: Queue,
    /// At the compiler of grammars, whose own queue is first come, first served.
    pub(crate) grammars: Queue,
    debts: Mutex<BTreeMap<TenantName, Debt>>,
    /// Whose threads block for work that had its turn.
    guest: Entrance,
}

/// What a tenant has used of late beyond its part.
#[derive(Debug)]
struct Debt {
    time: Duration,
    at: Instant,
}

impl Turns {
    /// So many places at computing, and for each tenant at work on texts; at least one
    /// of each. Work that blocks does so on threads of `guest`.
    pub(crate) fn new(cpu: usize, texts: usize, guest: Entrance) -> Self {
        // A turn at computing is short, and the next one is another's. Texts and grammars
        // may take seconds, so that no tenant can have all places.
        let (cpu, texts, grammars) = (Queue::new(cpu, cpu), Queue::new(texts + 1, texts), Queue::new(GRAMMARS, 1));
        Self { cpu, texts, grammars, debts: Mutex::default(), guest }
    }

    /// Has a thread work that steps back behind those of the server and of models.
    pub(crate) fn block(&self, work: impl FnOnce() + Send + 'static) {
        self.guest.block(work);
    }

    /// Notes that a guest of the tenant has computed for so long. Whether it may go on
    /// without a place.
    pub(crate) fn may_go_on(&self, tenant: &Tenant, computed: Duration) -> bool {
        self.owed(tenant, computed) <= AT_ONCE
    }

    /// Notes that a guest of the tenant has computed for so long, and is done.
    pub(crate) fn note(&self, tenant: &Tenant, computed: Duration) {
        self.owed(tenant, computed);
    }

    /// What the tenant owes with so much more.
    fn owed(&self, tenant: &Tenant, more: Duration) -> Duration {
        let now = Instant::now();
        let mut debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        let debt = debts.entry(tenant.name().clone()).or_insert(Debt { time: Duration::ZERO, at: now });
        let paid = now.saturating_duration_since(debt.at) / PART;
        debt.time = debt.time.saturating_sub(paid).saturating_add(more);
        debt.at = now;
        debt.time
    }
}

/// Places, and who waits for one.
#[derive(Debug, Clone)]
pub(crate) struct Queue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: usize,
    /// Places that one tenant may have at a time.
    of_one: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Places that are taken, by tenant.
    taken: BTreeMap<TenantName, usize>,
    /// Those who wait, in the order in which they came.
    waiting: Vec<Waiting>,
    /// For how many nanoseconds each tenant has had places, divided by its weight.
    had: BTreeMap<TenantName, u64>,
    /// That of the tenant that was let in last. Whoever was away does not come back with
    /// less, so that nobody saves turns up.
    level: u64,
}

#[derive(Debug)]
struct Waiting {
    tenant: Arc<Tenant>,
    /// What the guest itself has used: of one tenant's guests the quick ones go first.
    used: Duration,
    place: oneshot::Sender<Place>,
}

/// A place. Dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Place {
    queue: Queue,
    tenant: Arc<Tenant>,
    since: tokio::time::Instant,
}

impl Queue {
    fn new(places: usize, of_one: usize) -> Self {
        Self(Arc::new(Shared { places: places.max(1), of_one: of_one.max(1), state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place, for work of the tenant that has `used` so much already. None
    /// never comes: whoever waits is let in some time, since this keeps the queue.
    pub(crate) async fn take(&self, tenant: &Arc<Tenant>, used: Duration) -> Option<Place> {
        let (place, mine) = oneshot::channel();
        {
            let mut state = self.state();
            let level = state.level;
            let had = state.had.entry(tenant.name().clone()).or_default();
            *had = level.max(*had);
            state.waiting.push(Waiting { tenant: Arc::clone(tenant), used, place });
        }
        self.let_in();
        mine.await.ok()
    }

    /// Gives the free places to those who are next.
    fn let_in(&self) {
        while let Some(next) = self.next() {
            let place = Place { queue: self.clone(), tenant: next.tenant, since: tokio::time::Instant::now() };
            // Where nobody wants it any more the place comes back, and is free again.
            drop(next.place.send(place));
        }
    }

    /// Who is next, if there is a place. It is taken.
    fn next(&self) -> Option<Waiting> {
        let mut state = self.state();
        if state.taken.values().sum::<usize>() >= self.0.places {
            return None;
        }
        // Guests may have been ended while they waited.
        state.waiting.retain(|waiting| !waiting.place.is_closed());
        let had = |waiting: &Waiting| state.had.get(waiting.tenant.name()).copied().unwrap_or_default();
        let has = |waiting: &Waiting| state.taken.get(waiting.tenant.name()).copied().unwrap_or_default();
        // Of equals the first one.
        let (at, level) = (state.waiting.iter().enumerate())
            .filter(|(_, waiting)| has(waiting) < self.0.of_one)
            .map(|(at, waiting)| (at, (had(waiting), waiting.used)))
            .min_by_key(|(_, rank)| *rank)
            .map(|(at, (had, _))| (at, had))?;
        state.level = state.level.max(level);
        let next = state.waiting.remove(at);
        *state.taken.entry(next.tenant.name().clone()).or_default() += 1;
        Some(next)
    }

    /// How many wait.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.state().waiting.len()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut state = self.queue.state();
            if let Some(taken) = state.taken.get_mut(self.tenant.name()) {
                *taken = taken.saturating_sub(1);
            }
            let nanos = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let had = state.had.entry(self.tenant.name().clone()).or_default();
            *had = had.saturating_add(nanos / u64::from(self.tenant.weight().get()));
        }
        self.queue.let_in();
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use nala_tenant::{Declared, Directory, Key, Presented, Roster, Shown, SystemClock, Totals};

    use super::*;

    fn turns(cpu: usize, texts: usize) -> Turns {
        Turns::new(cpu, texts, Entrance::of_this_thread())
    }

    /// Tenants of these weights, `t0` and so on.
    fn tenants(weights: &[u32]) -> Vec<Arc<Tenant>> {
        let mut roster = Roster::new();
        let mut keys = Vec::new();
        for (n, weight) in weights.iter().enumerate() {
            let (secret, stored) = Key::generate().unwrap();
            let weight = NonZeroU32::new(*weight).unwrap();
            let declared = Declared::new(format!("t{n}").parse().unwrap());
            roster.add(Declared { keys: vec![stored], weight, ..declared }).unwrap();
            keys.push(secret);
        }
        let directory = Directory::new(roster, &Totals::default(), Arc::new(SystemClock::new()));
        let tenant = |key: &nala_tenant::Secret| {
            directory.identify(&Presented { by: Shown::Key(key.expose()), host: None, path: "/" }).unwrap().tenant
        };
        keys.iter().map(tenant).collect()
    }

    /// Has guests compute by turns, `counts` of each tenant, and says how many slices
    /// each tenant had of the first `slices`.
    async fn race(weights: &[u32], counts: &[usize], slices: usize) -> Vec<usize> {
        let turns = Arc::new(turns(1, 1));
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut guests = tokio::task::JoinSet::new();
        for (n, (tenant, count)) in tenants(weights).into_iter().zip(counts).enumerate() {
            for _ in 0..*count {
                let (turns, order, tenant) = (Arc::clone(&turns), Arc::clone(&order), Arc::clone(&tenant));
                guests.spawn(async move {
                    for slice in 0.. {
                        let place = turns.cpu.take(&tenant, Duration::from_millis(slice)).await.unwrap();
                        // The others come and wait meanwhile.
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        order.lock().unwrap().push(n);
                        drop(place);
                        tokio::task::yield_now().await;
                    }
                });
            }
        }
        while order.lock().unwrap().len() < slices {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let order = order.lock().unwrap();
        (0..weights.len()).map(|n| order.iter().take(slices).filter(|had| **had == n).count()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn many_guests_of_one_tenant_get_no_more_than_one_of_another() {
        let had = race(&[1, 1], &[31, 1], 200).await;
        assert!((85..=115).contains(&had[1]), "{had:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn weights_share_the_turns_out() {
        let had = race(&[3, 1], &[4, 4], 200).await;
        assert!((130..=170).contains(&had[0]), "{had:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_away_has_saved_nothing_up() {
        let (turns, tenants) = (turns(1, 1), tenants(&[1, 1]));
        for _ in 0..20 {
            let place = turns.cpu.take(&tenants[0], Duration::ZERO).await;
            tokio::time::advance(Duration::from_millis(1)).await;
            drop(place);
        }
        let had = |n: usize| turns.cpu.state().had.get(tenants[n].name()).copied().unwrap_or_default();
        assert_eq!(had(1), 0);
        drop(turns.cpu.take(&tenants[1], Duration::ZERO).await);
        assert!(had(1) > had(0) / 2, "{} of {}", had(1), had(0));
    }

    #[tokio::test]
    async fn nobody_has_all_places_where_a_turn_is_long() {
        let (turns, tenants) = (turns(1, 2), tenants(&[1, 1]));
        let take = |n: usize| turns.texts.take(&tenants[n], Duration::ZERO);
        let held = [take(0).await, take(0).await];
        let mut third = Box::pin(take(0));
        assert!(poll(&mut third).is_none(), "it has two");
        assert!(poll(&mut Box::pin(take(1))).is_some(), "another has room");
        drop(held);
        assert!(poll(&mut third).is_some());
    }

    #[tokio::test]
    async fn who_no_longer_waits_keeps_no_place() {
        let (turns, tenants) = (turns(1, 1), tenants(&[1]));
        let place = turns.cpu.take(&tenants[0], Duration::ZERO).await;
        let gone = tokio::time::timeout(Duration::from_millis(10), turns.cpu.take(&tenants[0], Duration::ZERO)).await;
        assert!(gone.is_err());
        assert_eq!(turns.cpu.waiting(), 1);
        drop(place);
        assert_eq!(turns.cpu.waiting(), 0);
        // One that was let in and gone before it looked.
        let first = turns.cpu.take(&tenants[0], Duration::ZERO).await;
        let mut second = Box::pin(turns.cpu.take(&tenants[0], Duration::ZERO));
        assert!(poll(&mut second).is_none());
        drop(first);
        drop(second);
        assert!(turns.cpu.take(&tenants[0], Duration::ZERO).await.is_some());
    }

    fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn a_tenant_that_computes_now_and_then_needs_no_turns() {
        let (turns, tenants) = (turns(1, 1), tenants(&[1, 1]));
        assert!(turns.may_go_on(&tenants[0], AT_ONCE));
        assert!(!turns.may_go_on(&tenants[0], Duration::from_millis(10)));
        assert!(turns.may_go_on(&tenants[1], Duration::from_millis(10)), "another has its own");
        std::thread::sleep(Duration::from_millis(100));
        assert!(turns.may_go_on(&tenants[0], Duration::ZERO), "it was quiet for long enough");
    }
}
