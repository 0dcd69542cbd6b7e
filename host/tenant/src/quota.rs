//! What is held: counted up when it is taken, down when its guard is dropped,
//! and never above the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limit::{Exceeded, Limit, Stock};
use crate::waiting::Waiters;

/// When somebody else's part may be back: nobody knows, so a client is asked to
/// come again soon, but not at once.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// A sum with a limit. Shared by all who hold parts of it.
#[derive(Debug)]
pub struct Quota {
    stock: Stock,
    // Relaxed is enough for both: they guard no other data.
    limit: AtomicU64,
    used: AtomicU64,
    waiters: Waiters,
}

impl Quota {
    /// A sum of nothing, with a limit in the unit of `stock`.
    #[must_use]
    pub fn new(stock: Stock, limit: u64) -> Arc<Self> {
        let (limit, used) = (AtomicU64::new(limit), AtomicU64::new(0));
        Arc::new(Self { stock, limit, used, waiters: Waiters::default() })
    }

    /// What is held at the moment, by all together.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The limit.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets another limit. Who holds more than a smaller one keeps it, but
    /// nobody gets any more until enough came back.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
        self.waiters.wake();
    }

    /// Takes `amount` until the guard is dropped.
    ///
    /// # Errors
    /// The sum would be above the limit; nothing was taken.
    pub fn try_hold(self: &Arc<Self>, amount: u64) -> Result<Held, Exceeded> {
        self.take(amount)?;
        Ok(Held { quota: Arc::clone(self), amount })
    }

    pub(crate) fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    fn take(&self, amount: u64) -> Result<(), Exceeded> {
        // Nothing is always free: a guard can begin empty under any limit.
        if amount == 0 {
            return Ok(());
        }
        let limit = self.limit();
        let more = |used: u64| used.checked_add(amount).filter(|sum| *sum <= limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => {
                let retry_after = (amount <= limit).then_some(RETRY);
                Err(Exceeded { limit: Limit::Stock(self.stock), value: limit, retry_after })
            }
        }
    }

    fn give_back(&self, amount: u64) {
        if amount > 0 {
            self.used.fetch_sub(amount, Ordering::Relaxed);
            self.waiters.wake();
        }
    }
}

/// A part of a [`Quota`], given back when this is dropped.
#[derive(Debug)]
#[must_use = "what is held is given back when this is dropped"]
pub struct Held {
    quota: Arc<Quota>,
    amount: u64,
}

impl Held {
    /// How much this holds.
    #[must_use]
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Takes more.
    ///
    /// # Errors
    /// The sum would be above the limit; this holds what it held before.
    pub fn grow(&mut self, by: u64) -> Result<(), Exceeded> {
        self.quota.take(by)?;
        self.amount += by;
        Ok(())
    }

    /// Gives a part back, at most all of it.
    pub fn shrink(&mut self, by: u64) {
        let by = by.min(self.amount);
        self.amount -= by;
        self.quota.give_back(by);
    }

    /// Takes or gives back so much that `amount` is held.
    ///
    /// # Errors
    /// As [`Held::grow`].
    pub fn resize(&mut self, amount: u64) -> Result<(), Exceeded> {
        match amount.checked_sub(self.amount) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.amount - amount);
                Ok(())
            }
        }
    }

    /// Parts off a guard of its own, with at most what this holds: for a piece
    /// that is handed on. The sum does not change.
    pub fn split(&mut self, amount: u64) -> Self {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        Self { quota: Arc::clone(&self.quota), amount }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.quota.give_back(self.amount);
    }
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
