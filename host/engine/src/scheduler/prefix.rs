//! Beginnings that were computed before, kept for whoever begins the same way.
//!
//! An entry is a sequence of the backend that no session uses, cut to whole
//! blocks of [`BLOCK`] tokens. Each block has a key: the hash of the key before
//! it and of its tokens, and the first follows the scope. So the longest known
//! beginning of a prompt is found by walking its keys; the tokens are then
//! compared, so a hash that collides costs a miss and never a wrong answer.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

use super::cells::CellId;
use crate::{SeqId, Token};

/// Tokens of a block.
pub(super) const BLOCK: usize = 16;

/// A beginning that is kept.
pub(super) struct Entry {
    scope: Arc<str>,
    tokens: Vec<Token>,
    pub(super) cells: Vec<CellId>,
    keys: Vec<u64>,
    /// When it was last used, see [`PrefixCache::uses`].
    used: u64,
}

impl Entry {
    /// `tokens` and `cells` are of whole blocks, whose keys are `keys`.
    pub(super) fn new(scope: Arc<str>, tokens: Vec<Token>, cells: Vec<CellId>, keys: Vec<u64>) -> Self {
        Self { scope, tokens, cells, keys, used: 0 }
    }
}

/// A beginning that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) seq: SeqId,
    /// Tokens that are the same.
    pub(super) len: usize,
}

#[derive(Default)]
pub(super) struct PrefixCache {
    /// Keyed at random, so that nobody can make prompts that collide.
    hasher: RandomState,
    index: HashMap<u64, Vec<SeqId>>,
    entries: HashMap<SeqId, Entry>,
    /// The entries by their last use, oldest first.
    order: BTreeMap<u64, SeqId>,
    /// Counts uses: the clock of the order.
    uses: u64,
}

impl PrefixCache {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
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

    /// The longest beginning of `tokens` that is known; `keys` are theirs.
    pub(super) fn find(&self, scope: &str, tokens: &[Token], keys: &[u64]) -> Option<Hit> {
        let known = keys.iter().take_while(|key| self.index.contains_key(key)).count();
        let holders = self.index.get(keys.get(known.checked_sub(1)?)?)?;
        let hits = holders.iter().filter_map(|&seq| {
            let entry = self.entries.get(&seq).filter(|entry| &*entry.scope == scope)?;
            let len = entry.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
            (len >= BLOCK).then_some(Hit { seq, len })
        });
        hits.max_by_key(|hit| hit.len)
    }

    /// Notes that an entry is used.
    pub(super) fn touch(&mut self, seq: SeqId) {
        self.uses += 1;
        if let Some(entry) = self.entries.get_mut(&seq) {
            self.order.remove(&entry.used);
            entry.used = self.uses;
            self.order.insert(self.uses, seq);
        }
    }

    /// The cells of an entry.
    pub(super) fn cells(&self, seq: SeqId) -> &[CellId] {
        self.entries.get(&seq).map_or(&[], |entry| &entry.cells)
    }

    /// Whether a sequence is an entry.
    pub(super) fn holds(&self, seq: SeqId) -> bool {
        self.entries.contains_key(&seq)
    }

    /// Keeps a sequence.
    ///
    /// Gives back the entries that begin the same way and end earlier: they are
    /// of no more use.
    pub(super) fn insert(&mut self, seq: SeqId, entry: Entry) -> Vec<SeqId> {
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
        for &key in &entry.keys {
            self.index.entry(key).or_default().push(seq);
        }
        self.entries.insert(seq, entry);
        self.touch(seq);
        covered
    }

    /// The entry that was not used for the longest time.
    pub(super) fn oldest(&self) -> Option<SeqId> {
        self.order.first_key_value().map(|(_, &seq)| seq)
    }

    pub(super) fn remove(&mut self, seq: SeqId) -> Option<Entry> {
        let entry = self.entries.remove(&seq)?;
        self.order.remove(&entry.used);
        for key in &entry.keys {
            if let Some(holders) = self.index.get_mut(key) {
                holders.retain(|&holder| holder != seq);
                if holders.is_empty() {
                    self.index.remove(key);
                }
            }
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(cache: &mut PrefixCache, seq: u32, scope: &str, tokens: &[Token]) -> Vec<SeqId> {
        let keys = cache.keys(scope, tokens);
        cache.insert(SeqId(seq), Entry::new(scope.into(), tokens.to_vec(), Vec::new(), keys))
    }

    fn find(cache: &PrefixCache, scope: &str, tokens: &[Token]) -> Option<(u32, usize)> {
        cache.find(scope, tokens, &cache.keys(scope, tokens)).map(|hit| (hit.seq.0, hit.len))
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
        cache.remove(SeqId(2));
        assert_eq!(find(&cache, "a", &tokens), Some((1, 32)));
    }

    #[test]
    fn what_is_covered_is_given_back_and_the_oldest_goes_first() {
        let mut cache = PrefixCache::default();
        let tokens: Vec<Token> = (0..64).collect();
        insert(&mut cache, 1, "a", &tokens[..32]);
        insert(&mut cache, 2, "b", &tokens[..32]);
        assert_eq!(insert(&mut cache, 3, "a", &tokens), [SeqId(1)]);
        cache.remove(SeqId(1));
        assert_eq!(cache.oldest(), Some(SeqId(2)));
        cache.touch(SeqId(2));
        assert_eq!(cache.oldest(), Some(SeqId(3)));
        for seq in [2, 3] {
            cache.remove(SeqId(seq));
        }
        assert!(cache.index.is_empty() && cache.order.is_empty() && cache.len() == 0);
    }
}
