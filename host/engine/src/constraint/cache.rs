//! Which compiled grammars are kept.

use std::collections::HashMap;

use tokio::sync::watch;

use super::grammar::Grammar;
use super::source::GrammarSource;
use crate::error::Error;

/// What came of a source; None while it is being compiled.
pub(super) type Outcome = Option<Result<Grammar, Error>>;

/// The outcomes of the sources that were used last, refusals too: nobody can have
/// the same bad grammar compiled again and again.
#[derive(Default)]
pub(super) struct Cache {
    entries: HashMap<GrammarSource, Entry>,
    /// Counts uses, to know the oldest.
    uses: u64,
}

struct Entry {
    outcome: watch::Receiver<Outcome>,
    used: u64,
}

impl Entry {
    /// What it takes beside its source, in bytes. Nothing is known of what is
    /// being compiled.
    fn bytes(&self) -> usize {
        match &*self.outcome.borrow() {
            Some(Ok(grammar)) => grammar.bytes(),
            Some(Err(_)) | None => 0,
        }
    }
}

impl Cache {
    pub(super) fn get(&mut self, source: &GrammarSource) -> Option<watch::Receiver<Outcome>> {
        let entry = self.entries.get_mut(source)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(entry.outcome.clone())
    }

    pub(super) fn insert(&mut self, source: GrammarSource, outcome: watch::Receiver<Outcome>) {
        self.uses += 1;
        self.entries.insert(source, Entry { outcome, used: self.uses });
    }

    pub(super) fn remove(&mut self, source: &GrammarSource) {
        self.entries.remove(source);
    }

    /// Lets go of what was not used for the longest time until no more than
    /// `count` outcomes and `bytes` bytes are kept.
    ///
    /// What is being compiled is let go of too, so that the bound holds; those who
    /// wait for it still get it.
    pub(super) fn shrink(&mut self, count: usize, bytes: usize) {
        let mut kept: usize = self.entries.iter().map(|(source, entry)| source.text().len() + entry.bytes()).sum();
        while self.entries.len() > count || kept > bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(source, _)| source.clone());
            let Some((source, entry)) = oldest.and_then(|source| self.entries.remove_entry(&source)) else { break };
            kept -= source.text().len() + entry.bytes();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
