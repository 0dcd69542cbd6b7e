//! Beginnings that were computed before, kept for whoever begins the same way.
//!
//! An entry is the state of a sequence that no session uses, cut to whole blocks of
//! [`BLOCK`] tokens. Each block has a key: the hash of the key before it and of its
//! tokens, and the first follows the scope. So the longest known beginning of a
//! prompt is found by walking its keys; the tokens are then compared, so a hash that
//! collides costs a miss and never a wrong answer.
//!
//! The latest entries stay in their cells, from where they are shared without being
//! moved. Attention looks at idle cells too, though, so older ones are kept in RAM.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

use super::cells::CellId;
use super::fair::Owner;
use super::snapshot::Snapshot;
use crate::{SeqId, Token};

/// Tokens of a block of the prefix cache: beginnings are kept in whole ones.
pub(super) const BLOCK: usize = 16;

/// Names an entry for as long as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct EntryId(u64);

/// Where the state of an entry is.
pub(super) enum Kept {
    /// In a sequence of its own, and these cells.
    InCells(SeqId, Vec<CellId>),
    /// In RAM.
    InRam(Arc<Snapshot>),
}

/// A beginning that is kept.
pub(super) struct Entry {
    scope: Arc<str>,
    /// Who computed it.
    pub(super) owner: Owner,
    tokens: Vec<Token>,
    pub(super) kept: Kept,
    keys: Vec<u64>,
    /// When it was last used, see [`PrefixCache::uses`].
    used: u64,
}

impl Entry {
    /// `tokens` and the state are of whole blocks, whose keys are `keys`.
    pub(super) fn new(scope: Arc<str>, owner: Owner, tokens: Vec<Token>, kept: Kept, keys: Vec<u64>) -> Self {
        Self { scope, owner, tokens, kept, keys, used: 0 }
    }

    fn is_in_cells(&self) -> bool {
        matches!(self.kept, Kept::InCells(..))
    }
}

/// A beginning that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) id: EntryId,
    /// Tokens that are the same.
    pub(super) len: usize,
}

#[derive(Default)]
pub(super) struct PrefixCache {
    /// Keyed at random, so that nobody can make prompts that collide.
    hasher: RandomState,
    index: HashMap<u64, Vec<EntryId>>,
    entries: HashMap<EntryId, Entry>,
    /// The entries in cells by their last use, oldest first.
    in_cells: BTreeMap<u64, EntryId>,
    /// The same of those in RAM.
    in_ram: BTreeMap<u64, EntryId>,
    /// Bytes of those.
    ram_bytes: u64,
    /// Counts uses: the clock of the orders.
    uses: u64,
    /// Counts entries.
    made: u64,
}

impl PrefixCache {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries that have a sequence.
    pub(super) fn sequences(&self) -> usize {
        self.in_cells.len()
    }

    /// The keys of the whole blocks of `tokens`.
    pub(super) fn keys(&self, scope: &str, tokens: &[Token]) -> Vec<u64> {
        let mut key = self.hasher.hash_one(scope);
        tokens
            .chunks_exact(BLOCK)
            .map(|block| {
                key = self.hasher.hash_one((key, block));
                key
            })
            .collect()
    }

    /// The longest beginning of `tokens` that is known; `keys` are theirs. Of
    /// several as long, one in cells.
    pub(super) fn find(&self, scope: &str, tokens: &[Token], keys: &[u64]) -> Option<Hit> {
        let known = keys.iter().take_while(|key| self.index.contains_key(key)).count();
        let holders = self.index.get(keys.get(known.checked_sub(1)?)?)?;
        let hits = holders.iter().filter_map(|&id| {
            let entry = self.entries.get(&id).filter(|entry| &*entry.scope == scope)?;
            let len = entry.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
            (len >= BLOCK).then_some((entry.is_in_cells(), Hit { id, len }))
        });
        hits.max_by_key(|&(in_cells, hit)| (hit.len, in_cells)).map(|(_, hit)| hit)
    }

    pub(super) fn get(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// Notes that an entry is used.
    pub(super) fn touch(&mut self, id: EntryId) {
        if let Some(entry) = self.take_out(id) {
            self.put_in(id, entry);
        }
    }

    /// Keeps an entry.
    ///
    /// Gives back the entries that begin the same way and end earlier: they are
    /// of no more use.
    pub(super) fn insert(&mut self, entry: Entry) -> Vec<Entry> {
        let mut covered = Vec::new();
        for key in &entry.keys {
            for &other in self.index.get(key).map_or(&[][..], Vec::as_slice) {
                let ends_here = self.entries.get(&other).is_some_and(|e| {
                    e.keys.last() == Some(key) && e.scope == entry.scope && entry.tokens.starts_with(&e.tokens)
                });
                if ends_here {
                    covered.push(other);
                }
            }
        }
        self.made += 1;
        let id = EntryId(self.made);
        for &key in &entry.keys {
            self.index.entry(key).or_default().push(id);
        }
        self.put_in(id, entry);
        covered.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// The entry in cells that was not used for the longest time.
    pub(super) fn oldest_in_cells(&self) -> Option<EntryId> {
        self.in_cells.first_key_value().map(|(_, &id)| id)
    }

    /// The same of those in RAM.
    pub(super) fn oldest_in_ram(&self) -> Option<EntryId> {
        self.in_ram.first_key_value().map(|(_, &id)| id)
    }

    /// Bytes of the entries in RAM.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.ram_bytes
    }

    pub(super) fn remove(&mut self, id: EntryId) -> Option<Entry> {
        let entry = self.take_out(id)?;
        for key in &entry.keys {
            if let Some(holders) = self.index.get_mut(key) {
                holders.retain(|&holder| holder != id);
                if holders.is_empty() {
                    self.index.remove(key);
                }
            }
        }
        Some(entry)
    }

    /// Notes that the state of an entry in cells is in RAM now. Gives back where it
    /// was.
    pub(super) fn moved_to_ram(&mut self, id: EntryId, snapshot: Arc<Snapshot>) -> Option<Kept> {
        let entry = self.entries.get_mut(&id)?;
        self.ram_bytes += snapshot.bytes();
        let was = std::mem::replace(&mut entry.kept, Kept::InRam(snapshot));
        let used = entry.used;
        self.in_cells.remove(&used);
        self.in_ram.insert(used, id);
        Some(was)
    }

    fn take_out(&mut self, id: EntryId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        match &entry.kept {
            Kept::InCells(..) => drop(self.in_cells.remove(&entry.used)),
            Kept::InRam(snapshot) => {
                self.in_ram.remove(&entry.used);
                self.ram_bytes = self.ram_bytes.saturating_sub(snapshot.bytes());
            }
        }
        Some(entry)
    }

    /// As the latest one.
    fn put_in(&mut self, id: EntryId, mut entry: Entry) {
        self.uses += 1;
        entry.used = self.uses;
        match &entry.kept {
            Kept::InCells(..) => drop(self.in_cells.insert(entry.used, id)),
            Kept::InRam(snapshot) => {
                self.in_ram.insert(entry.used, id);
                self.ram_bytes += snapshot.bytes();
            }
        }
        self.entries.insert(id, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Priority, Tenant};

    fn nobody() -> Owner {
        Owner { tenant: Tenant::default(), priority: Priority::Normal }
    }

    fn insert(cache: &mut PrefixCache, seq: u32, scope: &str, tokens: &[Token]) -> Vec<u32> {
        let keys = cache.keys(scope, tokens);
        let kept = Kept::InCells(SeqId(seq), Vec::new());
        cache.insert(Entry::new(scope.into(), nobody(), tokens.to_vec(), kept, keys)).iter().map(seq_of).collect()
    }

    fn seq_of(entry: &Entry) -> u32 {
        match &entry.kept {
            Kept::InCells(seq, _) => seq.0,
            Kept::InRam(_) => panic!("nothing was moved"),
        }
    }

    fn find(cache: &PrefixCache, scope: &str, tokens: &[Token]) -> Option<(u32, usize)> {
        let hit = cache.find(scope, tokens, &cache.keys(scope, tokens))?;
        Some((seq_of(cache.get(hit.id).unwrap()), hit.len))
    }

    fn oldest(cache: &PrefixCache) -> u32 {
        seq_of(cache.get(cache.oldest_in_cells().unwrap()).unwrap())
    }

    fn id(cache: &PrefixCache, seq: u32) -> EntryId {
        *cache.entries.iter().find(|(_, entry)| seq_of(entry) == seq).unwrap().0
    }

    #[test]
    fn the_longest_beginning_is_found_in_its_scope_only() {
        let mut cache = PrefixCache::default();
        let tokens: Vec<Token> = (0..100).collect();
        insert(&mut cache, 1, "a", &tokens[..32]);
        let mut other = tokens[..64].to_vec();
        other[50] = 999;
        insert(&mut cache, 2, "a", &other);
        assert_eq!(find(&cache, "a", &tokens), Some((2, 50)), "within a block, token by token");
        assert_eq!(find(&cache, "a", &tokens[..15]), None);
        assert_eq!(find(&cache, "b", &tokens), None);
        cache.remove(id(&cache, 2));
        assert_eq!(find(&cache, "a", &tokens), None, "what the second one covered is gone");
    }

    #[test]
    fn what_is_covered_is_given_back_and_the_oldest_goes_first() {
        let mut cache = PrefixCache::default();
        let tokens: Vec<Token> = (0..64).collect();
        insert(&mut cache, 1, "a", &tokens[..32]);
        insert(&mut cache, 2, "b", &tokens[..32]);
        assert_eq!(insert(&mut cache, 3, "a", &tokens), [1]);
        assert_eq!(oldest(&cache), 2);
        cache.touch(id(&cache, 2));
        assert_eq!(oldest(&cache), 3);
        for seq in [2, 3] {
            cache.remove(id(&cache, seq));
        }
        assert!(cache.index.is_empty() && cache.in_cells.is_empty() && cache.is_empty());
    }
}
