//! What was used, by tenant and component: counters that only grow.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use enum_map::{Enum, EnumMap};

use crate::clock::Clock;
use crate::roster::TenantName;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enum)]
pub enum Counter {
    /// Requests that were let in.
    Requests,
    /// Requests that ended in an error.
    Errors,
    /// Tokens of prompts that were computed.
    TokensIn,
    /// Tokens of prompts that were found computed already.
    TokensCached,
    /// Tokens that were generated.
    TokensOut,
    /// CPU time of the component, in microseconds.
    CpuMicroseconds,
    /// KV cells that were held, times the milliseconds for which they were.
    KvCellMilliseconds,
    /// Bytes of requests.
    BytesIn,
    /// Bytes of responses.
    BytesOut,
    /// Bytes that the component sent to others and got from them.
    OutboundBytes,
    /// Bytes that the component logged.
    LogBytes,
}

impl Counter {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        EnumMap::<Self, ()>::default().into_iter().map(|(each, ())| each)
    }

    /// Its name in exports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Errors => "errors",
            Self::TokensIn => "tokens_in",
            Self::TokensCached => "tokens_cached",
            Self::TokensOut => "tokens_out",
            Self::CpuMicroseconds => "cpu_microseconds",
            Self::KvCellMilliseconds => "kv_cell_milliseconds",
            Self::BytesIn => "bytes_in",
            Self::BytesOut => "bytes_out",
            Self::OutboundBytes => "outbound_bytes",
            Self::LogBytes => "log_bytes",
        }
    }
}

/// A value of each counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage(EnumMap<Counter, u64>);

impl Usage {
    /// The value of a counter.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter]
    }

    /// All counters and their values.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        self.0.iter().map(|(counter, value)| (counter, *value))
    }

    /// Of each counter the greater value.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    /// Sets a value.
    pub(crate) fn set(&mut self, counter: Counter, value: u64) {
        self.0[counter] = value;
    }

    fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    fn zip(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self(self.0.map(|counter, value| of(value, other.get(counter))))
    }
}

/// Counts what one component of one tenant uses.
#[derive(Debug)]
pub struct Meter {
    clock: Arc<dyn Clock>,
    counters: EnumMap<Counter, AtomicU64>,
    cells: Mutex<CellTime>,
}

/// Cells times time. A change costs the same however many hold cells: what the
/// sum did so far is added up, and from then on the new sum counts.
#[derive(Debug)]
struct CellTime {
    cells: u64,
    since: Duration,
    /// Cells times microseconds.
    total: u128,
}

impl CellTime {
    fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.since).as_micros();
        self.total = self.total.saturating_add(passed.saturating_mul(u128::from(self.cells)));
        // Only whole microseconds were counted.
        let counted = Duration::from_micros(u64::try_from(passed).unwrap_or(u64::MAX));
        self.since = self.since.saturating_add(counted);
    }
}

impl Meter {
    pub(crate) fn new(start: Usage, clock: Arc<dyn Clock>) -> Self {
        let cells = Mutex::new(CellTime { cells: 0, since: clock.now(), total: 0 });
        Self { clock, counters: EnumMap::from_fn(|counter| AtomicU64::new(start.get(counter))), cells }
    }

    /// Adds to a counter, in its unit. At the end of the numbers it stays there.
    pub fn add(&self, counter: Counter, amount: u64) {
        let add = |value: u64| Some(value.saturating_add(amount));
        // The closure never refuses.
        let _ = self.counters[counter].fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Counts KV cells until the guard is dropped. What they are is for the
    /// caller to say, and to bound by a quota.
    pub fn hold_cells(self: &Arc<Self>, cells: u64) -> Cells {
        let mut held = Cells { meter: Arc::clone(self), cells: 0 };
        held.set(cells);
        held
    }

    /// What was used until now.
    #[must_use]
    pub fn snapshot(&self) -> Usage {
        let mut usage = Usage(EnumMap::from_fn(|counter| self.counters[counter].load(Ordering::Relaxed)));
        let milliseconds = u64::try_from(self.cells().total / 1_000).unwrap_or(u64::MAX);
        let counter = Counter::KvCellMilliseconds;
        usage.set(counter, usage.get(counter).saturating_add(milliseconds));
        usage
    }

    /// The cells, counted until now.
    fn cells(&self) -> MutexGuard<'_, CellTime> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        cells.advance(self.clock.now());
        cells
    }
}

/// KV cells whose time is counted.
#[derive(Debug)]
#[must_use = "time is counted until this is dropped"]
pub struct Cells {
    meter: Arc<Meter>,
    cells: u64,
}

impl Cells {
    /// Goes on with another number.
    pub fn set(&mut self, cells: u64) {
        let mut sum = self.meter.cells();
        sum.cells = sum.cells.saturating_sub(self.cells).saturating_add(cells);
        drop(sum);
        self.cells = cells;
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The meters of a tenant.
#[derive(Debug)]
pub(crate) struct Meters {
    clock: Arc<dyn Clock>,
    by_component: RwLock<BTreeMap<Arc<str>, Arc<Meter>>>,
}

impl Meters {
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self::restored(std::iter::empty(), clock)
    }

    pub(crate) fn restored<'a>(
        components: impl Iterator<Item = (&'a Arc<str>, &'a Usage)>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let meters =
            components.map(|(name, usage)| (Arc::clone(name), Arc::new(Meter::new(*usage, Arc::clone(clock)))));
        Self { clock: Arc::clone(clock), by_component: RwLock::new(meters.collect()) }
    }

    pub(crate) fn of(&self, component: &str) -> Arc<Meter> {
        if let Some(meter) = self.by_component.read().unwrap_or_else(PoisonError::into_inner).get(component) {
            return Arc::clone(meter);
        }
        let mut all = self.by_component.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Meter::new(Usage::default(), Arc::clone(&self.clock)));
        Arc::clone(all.entry(Arc::from(component)).or_insert_with(new))
    }

    pub(crate) fn sum(&self) -> Usage {
        let all = self.by_component.read().unwrap_or_else(PoisonError::into_inner);
        all.values().map(|meter| meter.snapshot()).fold(Usage::default(), Usage::plus)
    }

    pub(crate) fn all(&self, tenant: &TenantName) -> Vec<(TenantName, Arc<str>, Usage)> {
        let all = self.by_component.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(component, meter)| (tenant.clone(), Arc::clone(component), meter.snapshot())).collect()
    }
}

/// The value of one counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Whose.
    pub tenant: TenantName,
    /// Of which component.
    pub component: Arc<str>,
    /// What is counted.
    pub counter: Counter,
    /// How much, since counting began.
    pub value: u64,
}

/// What everybody used, by tenant and component.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals(BTreeMap<TenantName, BTreeMap<Arc<str>, Usage>>);

impl FromIterator<(TenantName, Arc<str>, Usage)> for Totals {
    fn from_iter<I: IntoIterator<Item = (TenantName, Arc<str>, Usage)>>(all: I) -> Self {
        let mut totals = Self::default();
        for (tenant, component, usage) in all {
            totals.raise(tenant, component, usage);
        }
        totals
    }
}

impl Totals {
    /// What a component used; nothing, if it is not there.
    #[must_use]
    pub fn get(&self, tenant: &str, component: &str) -> Usage {
        self.0.get(tenant).and_then(|components| components.get(component)).copied().unwrap_or_default()
    }

    /// Each tenant's component with its usage.
    pub fn iter(&self) -> impl Iterator<Item = (&TenantName, &Arc<str>, &Usage)> {
        let row =
            |(tenant, components)| BTreeMap::iter(components).map(move |(component, usage)| (tenant, component, usage));
        self.0.iter().flat_map(row)
    }

    /// Each counter by itself.
    pub fn into_samples(self) -> impl Iterator<Item = Sample> {
        let rows: Vec<_> =
            self.iter().map(|(tenant, component, usage)| (tenant.clone(), Arc::clone(component), *usage)).collect();
        rows.into_iter().flat_map(|(tenant, component, usage)| {
            Counter::all().map(move |counter| Sample {
                tenant: tenant.clone(),
                component: Arc::clone(&component),
                counter,
                value: usage.get(counter),
            })
        })
    }

    pub(crate) fn by_tenant(
        &self,
    ) -> impl Iterator<Item = (&TenantName, std::collections::btree_map::Iter<'_, Arc<str>, Usage>)> {
        self.0.iter().map(|(tenant, components)| (tenant, components.iter()))
    }

    /// Adds what a component used somewhere else.
    pub fn add(&mut self, tenant: TenantName, component: Arc<str>, usage: Usage) {
        let known = self.0.entry(tenant).or_default().entry(component).or_default();
        *known = known.plus(usage);
    }

    /// Sets each counter that is greater than before.
    pub(crate) fn raise(&mut self, tenant: TenantName, component: Arc<str>, usage: Usage) {
        let known = self.0.entry(tenant).or_default().entry(component).or_default();
        *known = known.max(usage);
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
