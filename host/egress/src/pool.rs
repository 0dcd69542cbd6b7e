//! Connections that nobody uses, kept for whoever is next of the same tenant.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::time::Instant;

use crate::config::Idle;
use crate::target::Target;
use crate::tls::TrustNumber;
use crate::wire::Wire;

/// Whose connection it is, and to where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) tenant: Arc<str>,
    pub(crate) target: Target,
    /// By whose word it is known who is there.
    pub(crate) trust: TrustNumber,
}

/// A connection, with what it was judged by.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) address: IpAddr,
    pub(crate) opened: Instant,
}

#[derive(Debug)]
struct Kept {
    connection: Connection,
    since: Instant,
}

#[derive(Debug, Default)]
struct State {
    kept: HashMap<Key, Vec<Kept>>,
    /// Whether somebody looks after those whose time is over.
    watched: bool,
}

/// The connections.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    idle: Idle,
    /// How many wait for a place; none is kept from them.
    waiting: AtomicUsize,
}

/// Somebody waits for a place, as long as this lives.
pub(crate) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    pub(crate) fn new(idle: Idle) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), idle, waiting: AtomicUsize::new(0) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for a key whose address is good for this request, the one
    /// that was used last.
    pub(crate) fn take(&self, key: &Key, good: impl Fn(IpAddr) -> bool) -> Option<Connection> {
        let mut state = self.state();
        let kept = state.kept.get_mut(key)?;
        kept.retain(|kept| self.is_fresh(kept));
        let at = kept.iter().rposition(|kept| good(kept.connection.address))?;
        let one = kept.get_mut(at)?;
        let shared = match &one.connection.wire {
            Wire::Two(sender) => {
                one.since = Instant::now();
                let Connection { address, opened, .. } = one.connection;
                Some(Connection { wire: Wire::Two(sender.clone()), address, opened })
            }
            Wire::One(..) => None,
        };
        let taken = shared.or_else(|| Some(kept.remove(at).connection));
        if kept.is_empty() {
            state.kept.remove(key);
        }
        taken
    }

    fn is_fresh(&self, kept: &Kept) -> bool {
        let Kept { connection, since } = kept;
        since.elapsed() < self.idle.time && connection.opened.elapsed() < self.idle.age && !connection.wire.is_closed()
    }

    /// Keeps a connection that is free.
    pub(crate) fn put(self: &Arc<Self>, key: Key, connection: Connection) {
        let kept = Kept { connection, since: Instant::now() };
        if self.waiting.load(Ordering::Relaxed) > 0 || !self.is_fresh(&kept) || self.idle.each == 0 {
            return;
        }
        let mut state = self.state();
        if state.count(Some(&key.tenant)) >= self.idle.each {
            state.remove_oldest(Some(&key.tenant));
        }
        if state.count(None) >= self.idle.all {
            state.remove_oldest(None);
        }
        state.kept.entry(key).or_default().push(kept);
        if !std::mem::replace(&mut state.watched, true) {
            tokio::spawn(watch(Arc::downgrade(self), self.idle));
        }
    }

    /// Says that a tenant waits for a place, and gives up idle connections for
    /// it: one of its own, and one of anybody.
    pub(crate) fn make_room(&self, tenant: &str) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        state.remove_oldest(Some(tenant));
        state.remove_oldest(None);
        Waiting(&self.waiting)
    }

    /// Ends those whose time is over; whether any are left to watch.
    fn sweep(&self) -> bool {
        let mut state = self.state();
        for kept in state.kept.values_mut() {
            kept.retain(|kept| self.is_fresh(kept));
        }
        state.kept.retain(|_, kept| !kept.is_empty());
        state.watched = !state.kept.is_empty();
        state.watched
    }
}

impl State {
    fn count(&self, tenant: Option<&str>) -> usize {
        let of = self.kept.iter().filter(|(key, _)| tenant.is_none_or(|tenant| *key.tenant == *tenant));
        of.map(|(_, kept)| kept.len()).sum()
    }

    fn remove_oldest(&mut self, tenant: Option<&str>) {
        let of = self.kept.iter().filter(|(key, _)| tenant.is_none_or(|tenant| *key.tenant == *tenant));
        // Each list is in the order in which they became free, but for those of
        // HTTP/2, which stay where they are.
        let all = of.flat_map(|(key, kept)| kept.iter().enumerate().map(move |(at, kept)| (kept.since, key, at)));
        let Some((key, at)) = all.min_by_key(|(since, ..)| *since).map(|(_, key, at)| (key.clone(), at)) else {
            return;
        };
        if let Some(kept) = self.kept.get_mut(&key) {
            kept.remove(at);
            if kept.is_empty() {
                self.kept.remove(&key);
            }
        }
    }
}

/// Sweeps as long as there is something to sweep.
async fn watch(pool: Weak<Pool>, idle: Idle) {
    loop {
        tokio::time::sleep(idle.time.max(std::time::Duration::from_millis(10))).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.sweep() {
            return;
        }
    }
}
