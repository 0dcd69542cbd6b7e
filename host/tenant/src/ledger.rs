//! What a tenant holds and has used. It outlives a reload of the tenant's
//! declaration, and the declaration itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use enum_map::EnumMap;

use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::limit::{Ceiling, Limit, Limits, Rate, Stock};
use crate::meter::Meters;
use crate::quota::Quota;

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) quotas: EnumMap<Stock, Arc<Quota>>,
    pub(crate) buckets: EnumMap<Rate, Bucket>,
    ceilings: EnumMap<Ceiling, AtomicU64>,
    pub(crate) meters: Meters,
}

impl Ledger {
    pub(crate) fn new(limits: &Limits, meters: Meters, clock: &Arc<dyn Clock>) -> Self {
        Self {
            quotas: EnumMap::from_fn(|stock| Quota::new(stock, limits.get(stock))),
            buckets: EnumMap::from_fn(|rate| Bucket::new(rate, limits.get(rate), Arc::clone(clock))),
            ceilings: EnumMap::from_fn(|ceiling: Ceiling| AtomicU64::new(limits.get(ceiling))),
            meters,
        }
    }

    /// Puts other limits in force, for what is under way too.
    pub(crate) fn set_limits(&self, limits: &Limits) {
        for (limit, value) in limits.iter() {
            match limit {
                Limit::Stock(stock) => self.quotas[stock].set_limit(value),
                Limit::Rate(rate) => self.buckets[rate].set_limit(value),
                Limit::Ceiling(ceiling) => self.ceilings[ceiling].store(value, Ordering::Relaxed),
            }
        }
    }

    pub(crate) fn ceiling(&self, ceiling: Ceiling) -> u64 {
        self.ceilings[ceiling].load(Ordering::Relaxed)
    }
}
