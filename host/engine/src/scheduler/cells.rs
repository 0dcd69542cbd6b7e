//! Which sequences and KV cells of the backend are taken, and by whom.
//!
//! A cell holds one token's state and may be shared: sessions that were forked,
//! or that found their beginning in the prefix cache, hold the same cells. The
//! numbers here are the engine's own, not the backend's; both free a cell when
//! nobody holds it any more, so the counts agree.

use crate::SeqId;
use crate::backend::BackendLimits;
use crate::metrics::EngineMetrics;

/// Names a cell.
pub(super) type CellId = u32;

/// Who holds cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// An open session.
    Session,
    /// The prefix cache: given back when a session needs the cell.
    Cache,
}

#[derive(Clone, Copy, Default)]
struct Holders {
    sessions: u16,
    cached: u16,
}

/// The backend's sequences and cells. One token takes one cell.
pub(super) struct Cells {
    free_sequences: Vec<SeqId>,
    free: Vec<CellId>,
    holders: Vec<Holders>,
    /// Cells that only the cache holds.
    idle: u32,
    metrics: EngineMetrics,
}

impl Cells {
    pub(super) fn new(limits: BackendLimits, metrics: &EngineMetrics) -> Self {
        metrics.kv_cells.set(i64::from(limits.kv_cells));
        Self {
            // The lowest numbers are handed out first.
            free_sequences: (0..limits.sequences).rev().map(SeqId).collect(),
            free: (0..limits.kv_cells).rev().collect(),
            holders: vec![Holders::default(); limits.kv_cells as usize],
            idle: 0,
            metrics: metrics.clone(),
        }
    }

    pub(super) fn total(&self) -> u32 {
        u32::try_from(self.holders.len()).unwrap_or(u32::MAX)
    }

    /// How many cells these come to where those that several sessions hold are divided
    /// among them.
    pub(super) fn parts(&self, cells: &[CellId]) -> f64 {
        let holders = cells.iter().filter_map(|cell| self.holders.get(*cell as usize));
        holders.map(|holders| 1.0 / f64::from(holders.sessions.max(1))).sum()
    }

    /// Cells that nobody holds.
    pub(super) fn free(&self) -> u32 {
        u32::try_from(self.free.len()).unwrap_or(u32::MAX)
    }

    /// Cells that only the cache holds.
    pub(super) fn idle(&self) -> u32 {
        self.idle
    }

    /// Cells that can be had: free ones, and those that only the cache holds.
    pub(super) fn available(&self) -> u32 {
        self.free() + self.idle
    }

    pub(super) fn free_sequences(&self) -> u32 {
        u32::try_from(self.free_sequences.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn take_sequence(&mut self) -> Option<SeqId> {
        self.free_sequences.pop()
    }

    pub(super) fn give_sequence(&mut self, seq: SeqId) {
        self.free_sequences.push(seq);
    }

    /// Takes free cells for a session.
    pub(super) fn take(&mut self, n: u32, into: &mut Vec<CellId>) {
        let from = self.free.len().saturating_sub(n as usize);
        let taken = self.free.split_off(from);
        self.share(&taken, Holder::Session);
        into.extend(taken);
    }

    /// Adds a holder to cells.
    pub(super) fn share(&mut self, cells: &[CellId], by: Holder) {
        for &cell in cells {
            let Some(holders) = self.holders.get_mut(cell as usize) else { continue };
            match by {
                Holder::Session => {
                    self.idle -= u32::from(holders.sessions == 0 && holders.cached > 0);
                    holders.sessions += 1;
                }
                Holder::Cache => {
                    self.idle += u32::from(holders.sessions == 0 && holders.cached == 0);
                    holders.cached += 1;
                }
            }
        }
        self.report();
    }

    /// Takes a holder away; cells without one become free.
    pub(super) fn release(&mut self, cells: &[CellId], by: Holder) {
        for &cell in cells.iter().rev() {
            let Some(holders) = self.holders.get_mut(cell as usize) else { continue };
            match by {
                Holder::Session => {
                    holders.sessions = holders.sessions.saturating_sub(1);
                    self.idle += u32::from(holders.sessions == 0 && holders.cached > 0);
                }
                Holder::Cache => {
                    holders.cached = holders.cached.saturating_sub(1);
                    self.idle -= u32::from(holders.sessions == 0 && holders.cached == 0);
                }
            }
            if holders.sessions == 0 && holders.cached == 0 {
                self.free.push(cell);
            }
        }
        self.report();
    }

    /// Whether any of the cells has more than one holder.
    pub(super) fn any_shared(&self, cells: &[CellId]) -> bool {
        cells.iter().any(|&cell| self.holders.get(cell as usize).is_some_and(|h| h.sessions + h.cached > 1))
    }

    fn report(&self) {
        let used = self.total() - self.available();
        self.metrics.kv_cells_used.set(i64::from(used));
        self.metrics.kv_cells_cached.set(i64::from(self.idle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_free_when_its_last_holder_is_gone() {
        let limits = BackendLimits { kv_cells: 10, sequence_tokens: 10, batch_tokens: 4, sequences: 2, vocab: 9 };
        let metrics = EngineMetrics::default();
        let mut cells = Cells::new(limits, &metrics);
        let mut mine = Vec::new();
        cells.take(6, &mut mine);
        cells.share(&mine[..4], Holder::Cache);
        cells.share(&mine[..2], Holder::Session);
        assert!(cells.any_shared(&mine) && !cells.any_shared(&mine[4..]));
        cells.release(&mine, Holder::Session);
        assert_eq!((cells.free(), cells.available()), (6, 8));
        assert_eq!((metrics.kv_cells_used.get(), metrics.kv_cells_cached.get()), (2, 2));
        cells.release(&mine[..2], Holder::Session);
        assert_eq!((cells.free(), cells.available()), (6, 10));
        cells.release(&mine[..4], Holder::Cache);
        assert_eq!((cells.free(), cells.available()), (10, 10));
    }
}
