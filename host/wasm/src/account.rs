//! Whom a store works for: what it holds and uses is theirs.

use std::sync::Arc;
use std::time::Duration;

use nala_engine as engine;
use nala_tenant::{Counter, Exceeded, Held, Meter, Rate, Stock, Tenant};

/// A component of a tenant. All stores that work for it share this.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) meter: Arc<Meter>,
    /// Who shares beginnings of texts and saved sessions. Made by the host, of what no
    /// guest can choose.
    pub(crate) scope: Arc<str>,
}

/// A request's place among the instances of its tenant, and what one may hold.
#[derive(Debug)]
pub(crate) struct Place {
    _instance: Held,
    _handles: Held,
}

impl Account {
    pub(crate) fn new(tenant: Arc<Tenant>, app: &str) -> Self {
        let meter = tenant.meter(app);
        // Neither name can hold a zero, so no two pairs come to the same.
        let scope = format!("{}\0{app}", tenant.name()).into();
        Self { tenant, meter, scope }
    }

    /// The tenant as the engine knows it.
    pub(crate) fn worker(&self) -> engine::Tenant {
        let count = |stock| u32::try_from(self.tenant.quota(stock).limit()).unwrap_or(u32::MAX);
        engine::Tenant {
            name: self.tenant.name().as_str().into(),
            weight: self.tenant.weight().get(),
            max_runs: count(Stock::Generations),
            max_saved: count(Stock::SavedSessions),
            saved_bytes: self.tenant.quota(Stock::SnapshotBytes).limit(),
        }
    }

    /// Whether a request may begin: what it will use of a minute is known only when it
    /// is over, so there must be something left.
    pub(crate) fn may_begin(&self) -> Result<(), Exceeded> {
        [Rate::Cpu, Rate::TokensIn, Rate::TokensOut].into_iter().try_for_each(|rate| self.tenant.rate(rate).check())
    }

    /// Sets aside what an instance may hold, with `handles` of them.
    pub(crate) fn place(&self, handles: u32) -> Result<Place, Exceeded> {
        Ok(Place {
            _instance: self.tenant.hold(Stock::Instances, 1)?,
            _handles: self.tenant.hold(Stock::Handles, handles.into())?,
        })
    }

    /// Notes CPU time that a store has used.
    pub(crate) fn used_cpu(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.tenant.rate(Rate::Cpu).charge(micros);
        self.meter.add(Counter::CpuMicroseconds, micros);
    }

    /// Notes tokens of a prompt: those that were computed, and those that were there.
    pub(crate) fn read(&self, computed: u64, cached: u64) {
        self.tenant.rate(Rate::TokensIn).charge(computed);
        self.meter.add(Counter::TokensIn, computed);
        self.meter.add(Counter::TokensCached, cached);
    }

    /// Notes tokens that were generated.
    pub(crate) fn wrote(&self, tokens: u64) {
        self.tenant.rate(Rate::TokensOut).charge(tokens);
        self.meter.add(Counter::TokensOut, tokens);
    }

    /// Whether so many bytes may be logged; if so, they are noted.
    pub(crate) fn may_log(&self, bytes: u64) -> bool {
        let may = self.tenant.rate(Rate::LogBytes).take(bytes).is_ok();
        if may {
            self.meter.add(Counter::LogBytes, bytes);
        }
        may
    }
}
