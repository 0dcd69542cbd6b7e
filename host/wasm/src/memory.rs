//! Bounds the linear memories and tables of a store, summed over all of them.

use std::sync::Arc;

use nala_tenant::Stock;
use wasmtime::{Error, ResourceLimiter, Result};

use crate::account::{Account, Holding};
use crate::limits::Limits;
use crate::outcome::Outcome;

/// Counts what the store's memories and tables hold.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: u64,
    held: u64,
    /// What the growth that is being tried would add.
    trying: u64,
    outcome: Arc<Outcome>,
    /// The same of the sum over all stores of the account.
    of_account: Option<Holding>,
    table_limit: u64,
    table_held: u64,
    table_trying: u64,
    instances: usize,
}

impl MemoryLimiter {
    pub(crate) fn new(limits: &Limits, account: &Account, outcome: Arc<Outcome>) -> Self {
        Self {
            limit: limits.memory_bytes,
            held: 0,
            trying: 0,
            outcome,
            // Nothing is given whatever the limit.
            of_account: account.hold(Stock::Memory, 0).ok(),
            table_limit: limits.table_elements.into(),
            table_held: 0,
            table_trying: 0,
            instances: limits.core_instances as usize,
        }
    }

    /// From now on it is noted elsewhere that memory was refused.
    pub(crate) fn tell(&mut self, outcome: Arc<Outcome>) {
        self.outcome = outcome;
    }

    /// Bytes of all linear memories now.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        // The module's own maximum is its own affair and not our refusal.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let added = desired.saturating_sub(current) as u64;
        if self.held.saturating_add(added) > self.limit {
            self.outcome.refuse_memory();
            return Ok(false);
        }
        if let Some(Err(exceeded)) = self.of_account.as_mut().map(|held| held.grow(added)) {
            self.outcome.refuse_memory_of_tenant(exceeded);
            return Ok(false);
        }
        self.held += added;
        self.trying = added;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: Error) -> Result<()> {
        // Within the limit, and yet there is none: the guest must not look at fault.
        self.outcome.refuse_memory();
        let trying = std::mem::take(&mut self.trying);
        self.held = self.held.saturating_sub(trying);
        if let Some(held) = &mut self.of_account {
            held.shrink(trying);
        }
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let added = desired.saturating_sub(current) as u64;
        if self.table_held.saturating_add(added) > self.table_limit {
            self.outcome.refuse_memory();
            return Ok(false);
        }
        self.table_held += added;
        self.table_trying = added;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _error: Error) -> Result<()> {
        self.table_held = self.table_held.saturating_sub(std::mem::take(&mut self.table_trying));
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_count_together() {
        let mut limiter =
            MemoryLimiter::new(&Limits { memory_bytes: 100, ..Limits::default() }, &Account::sole(), Arc::default());
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap(), "a second memory");
        assert!(limiter.outcome.memory_refused());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        limiter.memory_grow_failed(wasmtime::format_err!("no room")).unwrap();
        assert_eq!(limiter.held(), 60, "what failed is given back");
    }

    #[test]
    fn memory_that_the_host_does_not_have_is_refused_memory() {
        let mut limiter = MemoryLimiter::new(&Limits::default(), &Account::sole(), Arc::default());
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.outcome.memory_refused());
        limiter.memory_grow_failed(wasmtime::format_err!("no room")).unwrap();
        assert!(limiter.outcome.memory_refused());
    }

    #[test]
    fn tables_count_together() {
        let limits = Limits { table_elements: 100, ..Limits::default() };
        let mut limiter = MemoryLimiter::new(&limits, &Account::sole(), Arc::default());
        assert!(limiter.table_growing(0, 60, None).unwrap());
        assert!(!limiter.table_growing(0, 60, None).unwrap(), "a second table");
        assert!(limiter.outcome.memory_refused());
        assert!(limiter.table_growing(0, 40, None).unwrap());
        limiter.table_grow_failed(wasmtime::format_err!("no room")).unwrap();
        assert!(limiter.table_growing(60, 100, None).unwrap(), "what failed is given back");
    }

    #[test]
    fn the_modules_own_maximum_is_not_our_refusal() {
        let mut limiter = MemoryLimiter::new(&Limits::default(), &Account::sole(), Arc::default());
        assert!(!limiter.memory_growing(0, 60, Some(50)).unwrap());
        assert!(!limiter.outcome.memory_refused());
    }
}
