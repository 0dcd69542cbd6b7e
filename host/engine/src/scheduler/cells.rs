//! Which sequences and KV cells of the backend are taken.

use crate::SeqId;
use crate::backend::BackendLimits;
use crate::metrics::EngineMetrics;

/// The backend's sequences and cells. One token takes one cell.
pub(super) struct Cells {
    free_sequences: Vec<SeqId>,
    total: u32,
    used: u32,
}

impl Cells {
    pub(super) fn new(limits: BackendLimits, metrics: &EngineMetrics) -> Self {
        metrics.kv_cells.set(i64::from(limits.kv_cells));
        // The lowest numbers are handed out first.
        let free_sequences = (0..limits.sequences).rev().map(SeqId).collect();
        Self { free_sequences, total: limits.kv_cells, used: 0 }
    }

    pub(super) fn total(&self) -> u32 {
        self.total
    }

    pub(super) fn free(&self) -> u32 {
        self.total - self.used
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

    pub(super) fn take(&mut self, cells: u32, metrics: &EngineMetrics) {
        self.used = self.used.saturating_add(cells).min(self.total);
        metrics.kv_cells_used.set(i64::from(self.used));
    }

    pub(super) fn give(&mut self, cells: u32, metrics: &EngineMetrics) {
        self.used = self.used.saturating_sub(cells);
        metrics.kv_cells_used.set(i64::from(self.used));
    }
}
