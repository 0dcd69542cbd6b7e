//! Giving sessions a sequence of the backend, with as much of their state as is
//! known already, and taking it back.

use std::sync::Arc;

use super::Scheduler;
use super::cells::{CellId, Holder};
use super::prefix::{BLOCK, Entry, EntryId, Hit, Kept};
use super::sequence::{Sequence, Work};
use super::snapshot::Snapshot;
use crate::SeqId;
use crate::clock::Clock;
use crate::command::SessionId;

/// Cells that beginnings which nobody uses may keep beside runs. llama.cpp looks at
/// cells by 256, so fewer would gain nothing.
const IDLE_CELLS: u32 = 512;

/// What is known of the state of a session that has no sequence.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// The state of how many of its first tokens.
    pub(super) tokens: u32,
    /// Whether it must be copied into cells.
    pub(super) is_in_ram: bool,
}

impl<C: Clock> Scheduler<C> {
    /// Sequences that can be had: free ones and those of the prefix cache.
    pub(super) fn available_sequences(&self) -> u32 {
        self.cells.free_sequences() + u32::try_from(self.prefixes.sequences()).unwrap_or(u32::MAX)
    }

    /// Takes a sequence, from the prefix cache if none is free.
    pub(super) fn take_sequence(&mut self) -> Option<SeqId> {
        if self.cells.free_sequences() == 0 {
            let oldest = self.prefixes.oldest_in_cells()?;
            self.shelve(oldest);
        }
        self.cells.take_sequence()
    }

    /// Frees cells of the prefix cache until `n` are free. False: there are not
    /// so many.
    pub(super) fn make_room(&mut self, n: u32) -> bool {
        if self.cells.available() < n {
            return false;
        }
        while self.cells.free() < n {
            let Some(oldest) = self.prefixes.oldest_in_cells() else { return false };
            self.shelve(oldest);
        }
        true
    }

    /// Moves beginnings that nobody uses to RAM, oldest first, until few of their
    /// cells are left: every token of a batch looks at all cells in use. One at a
    /// time, so that no step is much longer for it.
    pub(super) fn tidy_cells(&mut self) {
        if self.cells.idle() > IDLE_CELLS
            && let Some(oldest) = self.prefixes.oldest_in_cells()
        {
            // Where there is no room for it, it is better slow than lost.
            self.put_away(oldest);
        }
    }

    /// Moves an entry of the prefix cache from its cells to RAM, or drops it where
    /// there is no room.
    fn shelve(&mut self, id: EntryId) {
        if !self.put_away(id) {
            self.forget(id);
        }
    }

    /// Moves an entry to RAM, for which others may wait. One of a tenant that has held
    /// others up enough is dropped. False: there is no room.
    fn put_away(&mut self, id: EntryId) -> bool {
        let Some(owner) = self.prefixes.get(id).map(|entry| entry.owner.clone()) else { return false };
        if self.must_wait(&owner, self.clock.now()) {
            self.forget(id);
            return true;
        }
        self.move_to_ram(id)
    }

    fn move_to_ram(&mut self, id: EntryId) -> bool {
        let Some(Kept::InCells(seq, cells)) = self.prefixes.get(id).map(|entry| &entry.kept) else { return false };
        let (seq, len) = (*seq, u32::try_from(cells.len()).unwrap_or(u32::MAX));
        let Some(snapshot) = self.snapshot_of(seq, len, 0) else { return false };
        if let Some(was) = self.prefixes.moved_to_ram(id, snapshot) {
            self.give_back(was);
        }
        true
    }

    /// Drops an entry of the prefix cache.
    pub(super) fn forget(&mut self, id: EntryId) {
        if let Some(entry) = self.prefixes.remove(id) {
            self.give_back(entry.kept);
        }
    }

    /// Frees what an entry of the prefix cache held.
    fn give_back(&mut self, kept: Kept) {
        if let Kept::InCells(seq, cells) = kept {
            self.backend.truncate(seq, 0);
            self.cells.release(&cells, Holder::Cache);
            self.cells.give_sequence(seq);
        }
    }

    /// How much of a session without a sequence is known.
    pub(super) fn known(&mut self, id: SessionId) -> Known {
        let unplaced = self.sequences.get(&id).filter(|sequence| sequence.seq.is_none());
        let Some(sequence) = unplaced else { return Known::default() };
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(0);
        if let Some(snapshot) = &sequence.snapshot {
            let tokens = snapshot.len.min(count(sequence.tokens.len().saturating_sub(1)));
            return Known { tokens, is_in_ram: true };
        }
        let Some(hit) = self.hit(id) else { return Known::default() };
        let is_in_ram = self.prefixes.get(hit.id).is_some_and(|entry| matches!(entry.kept, Kept::InRam(_)));
        Known { tokens: count(hit.len), is_in_ram }
    }

    /// The beginning of a session in the prefix cache, the last token left out:
    /// it is computed in any case, for its logits.
    fn hit(&mut self, id: SessionId) -> Option<Hit> {
        if self.prefixes.is_empty() {
            return None;
        }
        let sequence = self.sequences.get_mut(&id)?;
        if sequence.keys.is_none() {
            sequence.keys = Some(self.prefixes.keys(&sequence.kin, &sequence.tokens));
        }
        let keys = sequence.keys.as_deref().unwrap_or_default();
        let hit = self.prefixes.find(&sequence.kin, &sequence.tokens, keys)?;
        let len = hit.len.min(sequence.tokens.len().saturating_sub(1));
        (len > 0).then_some(Hit { len, ..hit })
    }

    /// Gives a session a sequence and puts into it what is known of its state:
    /// its own snapshot, or a beginning out of the prefix cache. False: there is
    /// no sequence, or no room for the snapshot.
    pub(super) fn place(&mut self, id: SessionId) -> bool {
        match self.sequences.get(&id) {
            Some(sequence) if sequence.seq.is_none() => {}
            Some(_) => return true,
            None => return false,
        }
        if !self.holding_up(id, |scheduler| scheduler.place_afresh(id)) {
            return false;
        }
        let now = self.clock.now();
        self.changed_hands = now;
        if let Some(sequence) = self.sequences.get_mut(&id) {
            sequence.placed_at = Some(now);
        }
        true
    }

    /// [`Scheduler::place`] for a session that has no sequence.
    fn place_afresh(&mut self, id: SessionId) -> bool {
        if let Some(snapshot) = self.sequences.get(&id).and_then(|sequence| sequence.snapshot.clone()) {
            let room = self.make_room(snapshot.len);
            let Some(seq) = room.then(|| self.take_sequence()).flatten() else { return false };
            let loaded = self.backend.load(seq, &snapshot.state, snapshot.len);
            let Some(sequence) = self.sequences.get_mut(&id) else { return false };
            sequence.seq = Some(seq);
            sequence.snapshot = None;
            if loaded {
                self.cells.take(snapshot.len, &mut sequence.cells);
            } else {
                // What cannot be loaded is computed from the tokens.
                sequence.pure = usize::MAX;
            }
            if sequence.todo() == 0 && !matches!(sequence.work, Work::Idle) {
                self.cut(id, snapshot.len.saturating_sub(1));
            }
            return true;
        }
        // Looked up before a sequence is taken, which may move an entry: the one
        // just used is the last to go.
        let hit = self.hit(id);
        if let Some(hit) = hit {
            self.prefixes.touch(hit.id);
        }
        let Some(seq) = self.take_sequence() else { return false };
        let Some(sequence) = self.sequences.get_mut(&id) else { return false };
        sequence.seq = Some(seq);
        if let Some(hit) = hit {
            self.begin_with(id, seq, hit);
        }
        true
    }

    /// Puts a beginning out of the prefix cache into the sequence of a session.
    fn begin_with(&mut self, id: SessionId, seq: SeqId, hit: Hit) {
        let len = u32::try_from(hit.len).unwrap_or(0);
        let mut cells = Vec::new();
        let begun = match self.prefixes.get(hit.id).map(|entry| &entry.kept) {
            None => false,
            Some(Kept::InCells(from, shared)) => {
                let copied = self.backend.copy(*from, seq, len);
                if copied {
                    cells.extend_from_slice(shared.get(..hit.len).unwrap_or_default());
                    self.cells.share(&cells, Holder::Session);
                }
                copied
            }
            Some(Kept::InRam(snapshot)) => {
                let snapshot = Arc::clone(snapshot);
                self.load_beginning(seq, &snapshot, len, &mut cells)
            }
        };
        let Some(sequence) = self.sequences.get_mut(&id).filter(|_| begun) else { return };
        sequence.cells = cells;
        sequence.note_cached(len);
        self.metrics.cached_tokens.inc_by(u64::from(len));
    }

    /// Loads a state from RAM and cuts it to `len` tokens. False: there is no room
    /// for it, or it cannot be cut there, and the sequence is still empty.
    fn load_beginning(&mut self, seq: SeqId, snapshot: &Snapshot, len: u32, cells: &mut Vec<CellId>) -> bool {
        if !self.make_room(snapshot.len) || !self.backend.load(seq, &snapshot.state, snapshot.len) {
            return false;
        }
        if len < snapshot.len && !self.backend.truncate(seq, len) {
            self.backend.truncate(seq, 0);
            return false;
        }
        self.cells.take(len, cells);
        true
    }

    /// Keeps the beginning of a session for others that begin the same way.
    pub(super) fn publish(&mut self, id: SessionId) {
        let Some(sequence) = self.sequences.get(&id) else { return };
        let Some(from) = sequence.seq else { return };
        let len = sequence.whole_blocks();
        let Some(keys) = self.keys_of_news(sequence, len) else { return };
        let (scope, tokens) = (Arc::clone(&sequence.kin), sequence.tokens.get(..len).unwrap_or_default().to_vec());
        let cells = sequence.cells.get(..len).unwrap_or_default().to_vec();
        let owner = sequence.owner.clone();
        let Some(seq) = self.take_sequence() else { return };
        if !self.backend.copy(from, seq, u32::try_from(len).unwrap_or(0)) {
            return self.cells.give_sequence(seq);
        }
        self.keep(Entry::new(scope, owner, tokens, Kept::InCells(seq, cells), keys));
    }

    /// Makes the sequence of a session that is gone an entry of the prefix
    /// cache, or frees it.
    pub(super) fn retire(&mut self, mut sequence: Sequence) {
        let len = sequence.whole_blocks();
        let news = sequence.seq.and_then(|seq| Some((seq, self.keys_of_news(&sequence, len)?)));
        let Some((seq, keys)) = news else { return self.release(&mut sequence) };
        if !self.backend.truncate(seq, u32::try_from(len).unwrap_or(0)) {
            return self.release(&mut sequence);
        }
        let kept = sequence.cells.get(..len).unwrap_or_default().to_vec();
        sequence.tokens.truncate(len);
        self.keep(Entry::new(sequence.kin, sequence.owner, sequence.tokens, Kept::InCells(seq, kept), keys));
        self.cells.release(&sequence.cells, Holder::Session);
    }

    /// Adds an entry in cells to the prefix cache, in place of those that it covers.
    fn keep(&mut self, entry: Entry) {
        if let Kept::InCells(_, cells) = &entry.kept {
            self.cells.share(cells, Holder::Cache);
        }
        for covered in self.prefixes.insert(entry) {
            self.give_back(covered.kept);
        }
    }

    /// The keys of the first `len` tokens of a session, if the prefix cache can
    /// keep them and does not know them yet.
    fn keys_of_news(&self, sequence: &Sequence, len: usize) -> Option<Vec<u64>> {
        if len == 0 || !self.abilities.copy {
            return None;
        }
        let tokens = sequence.tokens.get(..len).unwrap_or_default();
        let keys = self.prefixes.keys(&sequence.kin, tokens);
        let known = self.prefixes.find(&sequence.kin, tokens, &keys).is_some_and(|hit| hit.len >= len);
        (!known).then_some(keys)
    }

    /// Cuts a session's state back to `len` tokens. Where the model cannot step
    /// back, the state is given up and computed anew when it is needed.
    pub(super) fn cut(&mut self, id: SessionId, len: u32) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        sequence.logits = None;
        sequence.keys = None;
        if sequence.snapshot.as_ref().is_some_and(|snapshot| snapshot.len > len) {
            sequence.snapshot = None;
        }
        let Some(seq) = sequence.seq.filter(|_| sequence.in_kv() > len) else { return };
        if self.backend.truncate(seq, len) {
            let given = sequence.cells.split_off(len as usize);
            self.cells.release(&given, Holder::Session);
        } else {
            self.release_by_id(id);
        }
    }

    pub(super) fn release_by_id(&mut self, id: SessionId) {
        if let Some(mut sequence) = self.sequences.remove(&id) {
            self.release(&mut sequence);
            self.sequences.insert(id, sequence);
        }
    }

    /// Gives back a session's cells and its sequence.
    pub(super) fn release(&mut self, sequence: &mut Sequence) {
        sequence.turn = 0;
        sequence.placed_at = None;
        if let Some(seq) = sequence.seq.take() {
            self.backend.truncate(seq, 0);
            self.cells.give_sequence(seq);
        }
        self.cells.release(&std::mem::take(&mut sequence.cells), Holder::Session);
        sequence.logits = None;
        // Computed anew, the state follows from the tokens alone.
        sequence.pure = usize::MAX;
    }
}

impl Sequence {
    /// Tokens of the whole blocks whose state follows from them alone.
    fn whole_blocks(&self) -> usize {
        self.cells.len().min(self.pure).min(self.tokens.len()) / BLOCK * BLOCK
    }
}
