//! What is set aside of a store's allowance, and given back by being dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nala_tenant::Stock;

use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::state::Usage;
use crate::account::{Account, Holding};

/// KV cells that a session has set aside of its store's allowance: those it
/// holds, and those that its run may still take.
pub(super) struct Cells {
    usage: Arc<Usage>,
    held: u64,
    /// The same of the sum over all stores of the account.
    of_account: Option<Holding>,
    account: Arc<Account>,
    metered: nala_tenant::Cells,
}

impl Cells {
    /// None yet.
    pub(super) fn none(usage: &Arc<Usage>, account: &Arc<Account>) -> Self {
        // Nothing is given whatever the limit.
        let of_account = account.hold(Stock::KvCells, 0).ok();
        let metered = account.meter.hold_cells(0);
        Self { usage: Arc::clone(usage), held: 0, of_account, account: Arc::clone(account), metered }
    }

    /// Sets aside `wanted` in all, if the store may have `max`.
    pub(super) fn set(&mut self, wanted: u64, max: u64) -> Result<(), Error> {
        if self.others().saturating_add(wanted) > max {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        if let Some(Err(_exceeded)) = self.of_account.as_mut().map(|held| held.resize(wanted)) {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        self.replace(wanted);
        Ok(())
    }

    /// Gives back all but `wanted`.
    pub(super) fn keep(&mut self, wanted: u64) {
        let wanted = wanted.min(self.held);
        if let Some(held) = &mut self.of_account {
            held.shrink(self.held - wanted);
        }
        self.replace(wanted);
    }

    /// How many are set aside.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// How many the session may have set aside in all, where the store may have
    /// `max`.
    pub(super) fn most(&self, max: u64) -> u64 {
        let of_account = self.account.room(Stock::KvCells).saturating_add(self.held);
        max.saturating_sub(self.others()).min(of_account)
    }

    /// What the store's other sessions have set aside.
    fn others(&self) -> u64 {
        self.usage.kv_cells.load(Ordering::Relaxed).saturating_sub(self.held)
    }

    fn replace(&mut self, wanted: u64) {
        self.usage.kv_cells.store(self.others().saturating_add(wanted), Ordering::Relaxed);
        self.held = wanted;
        self.metered.set(wanted);
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.replace(0);
    }
}

/// Bytes of a grammar that a handle or a session holds. The engine shares equal
/// grammars, but whoever holds one may come to be the last.
pub(super) struct GrammarBytes {
    usage: Arc<Usage>,
    held: u64,
    /// The same of what the host holds for the account.
    _of_account: Holding,
    account: Arc<Account>,
}

impl GrammarBytes {
    /// Sets aside `bytes`, if the store may have `max` in all.
    pub(super) fn take(usage: &Arc<Usage>, account: &Arc<Account>, bytes: u64, max: u64) -> Result<Self, Error> {
        if counter(usage).load(Ordering::Relaxed).saturating_add(bytes) > max {
            return Err(Error::Quota(QuotaKind::Memory));
        }
        let held = account.hold(Stock::HostBytes, bytes);
        let of_account = held.map_err(|_exceeded| Error::Quota(QuotaKind::Memory))?;
        counter(usage).fetch_add(bytes, Ordering::Relaxed);
        Ok(Self { usage: Arc::clone(usage), held: bytes, _of_account: of_account, account: Arc::clone(account) })
    }

    /// As many for another holder of the grammar.
    pub(super) fn again(&self, max: u64) -> Result<Self, Error> {
        Self::take(&self.usage, &self.account, self.held, max)
    }
}

fn counter(usage: &Usage) -> &AtomicU64 {
    &usage.grammar_bytes
}

impl Drop for GrammarBytes {
    fn drop(&mut self) {
        counter(&self.usage).fetch_sub(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_all_sessions_count_together() {
        let (usage, account) = (Arc::default(), Arc::new(Account::sole()));
        let (mut first, mut second) = (Cells::none(&usage, &account), Cells::none(&usage, &account));
        first.set(60, 100).unwrap();
        assert!(matches!(second.set(41, 100), Err(Error::Quota(QuotaKind::Kv))));
        second.set(40, 100).unwrap();
        first.keep(10);
        assert_eq!((usage.kv_cells.load(Ordering::Relaxed), second.most(100)), (50, 90));
        drop(first);
        assert_eq!(usage.kv_cells.load(Ordering::Relaxed), 40);
    }

    #[test]
    fn bytes_are_given_back_by_whoever_held_them() {
        let (usage, account) = (Arc::default(), Arc::new(Account::sole()));
        let first = GrammarBytes::take(&usage, &account, 60, 100).unwrap();
        assert!(matches!(first.again(100), Err(Error::Quota(QuotaKind::Memory))));
        drop(first);
        assert!(GrammarBytes::take(&usage, &account, 100, 100).is_ok());
    }
}
