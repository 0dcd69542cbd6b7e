//! Giving sessions a sequence of the backend, with as much of their state as is
//! known already, and taking it back.

use std::sync::Arc;

use super::Scheduler;
use super::cells::Holder;
use super::prefix::{BLOCK, Entry, Hit};
use super::sequence::{Sequence, Work};
use crate::SeqId;
use crate::clock::Clock;
use crate::command::SessionId;

impl<C: Clock> Scheduler<C> {
    /// Sequences that can be had: free ones and those of the prefix cache.
    pub(super) fn available_sequences(&self) -> u32 {
        self.cells.free_sequences() + u32::try_from(self.prefixes.len()).unwrap_or(u32::MAX)
    }

    /// Takes a sequence, from the prefix cache if none is free.
    pub(super) fn take_sequence(&mut self) -> Option<SeqId> {
        if self.cells.free_sequences() == 0 {
            let oldest = self.prefixes.oldest()?;
            self.forget(oldest);
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
            let Some(oldest) = self.prefixes.oldest() else { return false };
            self.forget(oldest);
        }
        true
    }

    /// Drops an entry of the prefix cache.
    fn forget(&mut self, seq: SeqId) {
        let Some(entry) = self.prefixes.remove(seq) else { return };
        self.backend.truncate(seq, 0);
        self.cells.release(&entry.cells, Holder::Cache);
        self.cells.give_sequence(seq);
    }

    /// How much of a session without a sequence is known.
    pub(super) fn known(&mut self, id: SessionId) -> usize {
        let Some(sequence) = self.sequences.get(&id).filter(|sequence| sequence.seq.is_none()) else { return 0 };
        match &sequence.snapshot {
            Some(snapshot) => (snapshot.len as usize).min(sequence.tokens.len().saturating_sub(1)),
            None => self.hit(id).map_or(0, |hit| hit.len),
        }
    }

    /// The beginning of a session in the prefix cache, the last token left out:
    /// it is computed in any case, for its logits.
    fn hit(&mut self, id: SessionId) -> Option<Hit> {
        if self.prefixes.len() == 0 {
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
        // Looked up before a sequence is taken, which may drop an entry: the one
        // just used is the last to go, and if it goes there is no other.
        let hit = self.hit(id);
        if let Some(hit) = hit {
            self.prefixes.touch(hit.seq);
        }
        let Some(seq) = self.take_sequence() else { return false };
        let hit = hit.filter(|hit| self.prefixes.holds(hit.seq));
        let Some(sequence) = self.sequences.get_mut(&id) else { return false };
        sequence.seq = Some(seq);
        if let Some(hit) = hit {
            let len = u32::try_from(hit.len).unwrap_or(0);
            if self.backend.copy(hit.seq, seq, len) {
                let shared = self.prefixes.cells(hit.seq).get(..hit.len).unwrap_or_default();
                sequence.cells.extend_from_slice(shared);
                self.cells.share(shared, Holder::Session);
                sequence.note_cached(len);
                self.metrics.cached_tokens.inc_by(u64::from(len));
            }
        }
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
        let Some(seq) = self.take_sequence() else { return };
        if !self.backend.copy(from, seq, u32::try_from(len).unwrap_or(0)) {
            return self.cells.give_sequence(seq);
        }
        self.keep(seq, Entry::new(scope, tokens, cells, keys));
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
        self.keep(seq, Entry::new(sequence.kin, sequence.tokens, kept, keys));
        self.cells.release(&sequence.cells, Holder::Session);
    }

    /// Makes a sequence an entry of the prefix cache, in place of those that it
    /// covers.
    fn keep(&mut self, seq: SeqId, entry: Entry) {
        self.cells.share(&entry.cells, Holder::Cache);
        for covered in self.prefixes.insert(seq, entry) {
            self.forget(covered);
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
