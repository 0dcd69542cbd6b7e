//! States of sessions in RAM: parked ones, and those saved by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Scheduler;
use super::sequence::{Sequence, Work};
use crate::clock::Clock;
use crate::command::SessionId;
use crate::constraint::Grammar;
use crate::metrics::EngineMetrics;
use crate::{SeqId, Token};

/// The state of a session outside of the backend.
pub(super) struct Snapshot {
    pub(super) state: Vec<u8>,
    /// How many tokens it is the state of.
    pub(super) len: u32,
    charge: Charge,
}

impl Snapshot {
    /// What it takes of the RAM for states.
    pub(super) fn bytes(&self) -> u64 {
        self.charge.bytes
    }
}

/// Bytes of the RAM that states may take, given back when dropped.
pub(super) struct Charge {
    held: Arc<AtomicU64>,
    bytes: u64,
    metrics: EngineMetrics,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let before = self.held.fetch_sub(self.bytes, Ordering::AcqRel);
        self.metrics.snapshot_bytes.set(i64::try_from(before.saturating_sub(self.bytes)).unwrap_or(i64::MAX));
    }
}

/// A session that was saved by name.
#[derive(Clone)]
pub(super) struct Saved {
    pub(super) tokens: Vec<Token>,
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) logits: Option<Vec<f32>>,
    pub(super) pure: usize,
    /// The adapter it was computed with.
    pub(super) adapter: Option<usize>,
    /// Its grammar, and where that began.
    pub(super) guide: Option<(Grammar, usize)>,
    /// The name of the tenant that keeps it.
    pub(super) tenant: Arc<str>,
    /// For all of it but the snapshot.
    pub(super) charge: Arc<Charge>,
}

impl Saved {
    /// What it takes of the RAM for states.
    fn bytes(&self) -> u64 {
        self.charge.bytes + self.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes())
    }
}

/// What a tenant has saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shelved {
    pub(super) count: u32,
    pub(super) bytes: u64,
}

impl Shelved {
    /// What `tenant` has saved, but for what stands under `key`.
    pub(super) fn of(shelf: &Shelf, tenant: &str, key: &(Arc<str>, String)) -> Self {
        let own = shelf.iter().filter(|(at, saved)| &*saved.tenant == tenant && *at != key);
        own.fold(Self::default(), |sum, (_, saved)| Self { count: sum.count + 1, bytes: sum.bytes + saved.bytes() })
    }
}

/// What is saved, by scope and name.
pub(super) type Shelf = BTreeMap<(Arc<str>, String), Saved>;

/// The RAM that states may take.
pub(super) struct Budget {
    held: Arc<AtomicU64>,
    most: u64,
}

impl Budget {
    pub(super) fn new(most: u64) -> Self {
        Self { held: Arc::default(), most }
    }

    fn left(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::Acquire))
    }

    fn charge(&self, bytes: u64, metrics: &EngineMetrics) -> Option<Charge> {
        let held = self.held.load(Ordering::Acquire).saturating_add(bytes);
        if held > self.most {
            return None;
        }
        self.held.store(held, Ordering::Release);
        metrics.snapshot_bytes.set(i64::try_from(held).unwrap_or(i64::MAX));
        Some(Charge { held: Arc::clone(&self.held), bytes, metrics: metrics.clone() })
    }
}

impl<C: Clock> Scheduler<C> {
    /// The state of a session as bytes. None: it has none, or there is no room
    /// for them.
    pub(super) fn snapshot(&mut self, id: SessionId) -> Option<Arc<Snapshot>> {
        let sequence = self.sequences.get(&id)?;
        if let Some(snapshot) = &sequence.snapshot {
            return Some(Arc::clone(snapshot));
        }
        let (seq, len) = (sequence.seq?, sequence.in_kv());
        if len == 0 || !self.abilities.snapshot {
            return None;
        }
        let logits = sequence.logits.as_ref().map_or(0, |row| std::mem::size_of_val(row.as_slice()));
        self.snapshot_of(seq, len, logits)
    }

    /// The state of a sequence of `len` tokens as bytes, with `more` bytes that are
    /// kept beside it. Beginnings that are kept in RAM give way to it.
    pub(super) fn snapshot_of(&mut self, seq: SeqId, len: u32, more: usize) -> Option<Arc<Snapshot>> {
        if !self.abilities.snapshot {
            return None;
        }
        let expected = f64::from(len) * self.bytes_a_token;
        if !self.make_ram(expected as u64) {
            return None;
        }
        let state = self.backend.save(seq)?;
        self.bytes_a_token = state.len() as f64 / f64::from(len.max(1));
        let charge = self.charge((state.len() + more) as u64)?;
        Some(Arc::new(Snapshot { state, len, charge }))
    }

    /// Takes bytes of the RAM for states; beginnings that are kept there give way.
    pub(super) fn charge(&mut self, bytes: u64) -> Option<Charge> {
        if !self.make_ram(bytes) {
            return None;
        }
        self.budget.charge(bytes, &self.metrics)
    }

    /// Drops beginnings kept in RAM until there is room for so many bytes. False:
    /// there is none, and nothing was dropped.
    fn make_ram(&mut self, bytes: u64) -> bool {
        if bytes > self.budget.left().saturating_add(self.prefixes.ram_bytes()) {
            return false;
        }
        while bytes > self.budget.left() {
            let Some(oldest) = self.prefixes.oldest_in_ram() else { return false };
            self.forget(oldest);
        }
        true
    }

    /// Moves a session's state out of its cells into RAM. False: there is no
    /// room, and nothing has changed.
    pub(super) fn park(&mut self, id: SessionId) -> bool {
        let Some(snapshot) = self.moving_away(id, |scheduler| scheduler.snapshot(id)) else { return false };
        let Some(mut sequence) = self.sequences.remove(&id) else { return false };
        if sequence.seq.is_some() {
            let (logits, pure) = (sequence.logits.take(), sequence.pure);
            self.release(&mut sequence);
            (sequence.logits, sequence.pure) = (logits, pure);
            sequence.snapshot = Some(snapshot);
            self.metrics.parked.inc();
        }
        self.sequences.insert(id, sequence);
        true
    }

    /// Parks the session that has done nothing for the longest time, of the tenant that
    /// holds most, or else a run that cannot go on. False: there is none, or no room.
    pub(super) fn park_an_idle_one(&mut self) -> bool {
        let holdings = self.holdings();
        let held = |sequence: &Sequence| holdings.get(&sequence.owner.tenant.name).copied().unwrap_or_default();
        let idle = self.sequences.iter().filter(|(_, s)| matches!(s.work, Work::Idle) && s.in_kv() > 0);
        let mut idle: Vec<(SessionId, &Sequence)> = idle.map(|(&id, sequence)| (id, sequence)).collect();
        idle.sort_by(|(a, a_sequence), (b, b_sequence)| {
            let more = held(b_sequence).more_than(&held(a_sequence));
            more.then(a_sequence.used.cmp(&b_sequence.used)).then(a.cmp(b))
        });
        let idle: Vec<SessionId> = idle.into_iter().map(|(id, _)| id).collect();
        // One whose state cannot be kept stays, and the next one goes.
        idle.into_iter().any(|id| self.park(id)) || self.park_a_stalled_one()
    }

    /// Parks the session of this tenant that has done nothing for the longest time, so that
    /// another one of it has room. False: there is none, or no room.
    pub(super) fn park_one_of(&mut self, tenant: &str) -> bool {
        let own = self.sequences.iter().filter(|(_, s)| *s.owner.tenant.name == *tenant);
        let mut idle: Vec<(u64, SessionId)> =
            own.filter(|(_, s)| matches!(s.work, Work::Idle) && s.in_kv() > 0).map(|(&id, s)| (s.used, id)).collect();
        idle.sort_unstable();
        idle.into_iter().any(|(_, id)| self.park(id))
    }

    /// Parks a run that cannot go on before its reader takes what it said, or before
    /// another run of its tenant is over: neither may keep a place from others.
    fn park_a_stalled_one(&mut self) -> bool {
        let stalled = self.at_work.iter().copied().find(|id| {
            self.sequences.get(id).is_some_and(|sequence| {
                let Work::Run(run) = &sequence.work else { return false };
                sequence.seq.is_some() && (self.held_back.contains(id) || !run.outbox.has_room())
            })
        });
        let Some(id) = stalled else { return false };
        if !self.park(id) {
            // Its tokens say how to compute it again.
            self.release_by_id(id);
        }
        true
    }
}
