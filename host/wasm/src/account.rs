//! Whom a store works for: what it holds and uses is theirs.
//!
//! There are two who can set limits: the operator for the tenant, over all that it
//! runs, and the manifest for the component, over all tenants that use it.

use std::sync::Arc;
use std::time::Duration;

use nala_engine as engine;
use nala_tenant::{Counter, Exceeded, Held, Meter, Rate, Stock, Tenant};

use crate::outflow::Outflow;

/// A component of a tenant. All stores that work for it share this.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) tenant: Arc<Tenant>,
    /// All who use the component.
    pub(crate) component: Arc<Tenant>,
    pub(crate) meter: Arc<Meter>,
    /// Who shares beginnings of texts and saved sessions. Made by the host, of what no
    /// guest can choose.
    pub(crate) scope: Arc<str>,
    /// What its answers have sent, where others have a part in the machine who would
    /// notice.
    pub(crate) outflow: Option<Outflow>,
}

/// Something that is held on an account, until it is dropped.
#[derive(Debug)]
pub(crate) struct Holding {
    of_tenant: Held,
    of_component: Held,
}

impl Holding {
    /// Takes more.
    pub(crate) fn grow(&mut self, by: u64) -> Result<(), Exceeded> {
        self.of_tenant.grow(by)?;
        self.of_component.grow(by).inspect_err(|_| self.of_tenant.shrink(by))
    }

    /// Gives a part back.
    pub(crate) fn shrink(&mut self, by: u64) {
        self.of_tenant.shrink(by);
        self.of_component.shrink(by);
    }

    /// Takes or gives back so much that `amount` is held.
    pub(crate) fn resize(&mut self, amount: u64) -> Result<(), Exceeded> {
        match amount.checked_sub(self.of_tenant.amount()) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.of_tenant.amount() - amount);
                Ok(())
            }
        }
    }
}

/// A request's place among the instances, and what one may hold.
#[derive(Debug)]
pub(crate) struct Place {
    _instance: Holding,
    _handles: Holding,
}

impl Account {
    pub(crate) fn new(tenant: Arc<Tenant>, component: Arc<Tenant>, app: &str) -> Self {
        let meter = tenant.meter(app);
        // Neither name can hold a zero, so no two pairs come to the same.
        let scope = format!("{}\0{app}", tenant.name()).into();
        let outflow = (!tenant.name().is_local()).then(Outflow::default);
        Self { tenant, component, meter, scope, outflow }
    }

    /// That of the one owner of a machine, for tests.
    #[cfg(test)]
    pub(crate) fn sole() -> Self {
        Self::new(Tenant::sole(), Tenant::sole(), "app")
    }

    /// The tenant as the engine knows it.
    pub(crate) fn worker(&self) -> engine::Tenant {
        let limit = |stock| self.both().map(|of| of.quota(stock).limit()).into_iter().min().unwrap_or(u64::MAX);
        let count = |stock| u32::try_from(limit(stock)).unwrap_or(u32::MAX);
        engine::Tenant {
            name: Arc::clone(self.tenant.name().shared()),
            weight: self.tenant.weight().get(),
            max_runs: count(Stock::Generations),
            max_saved: count(Stock::SavedSessions),
            saved_bytes: limit(Stock::SnapshotBytes),
        }
    }

    fn both(&self) -> [&Arc<Tenant>; 2] {
        [&self.tenant, &self.component]
    }

    /// Takes something until it is given back.
    pub(crate) fn hold(&self, stock: Stock, amount: u64) -> Result<Holding, Exceeded> {
        let of_tenant = self.tenant.hold(stock, amount)?;
        Ok(Holding { of_tenant, of_component: self.component.hold(stock, amount)? })
    }

    /// How much more could be held.
    pub(crate) fn room(&self, stock: Stock) -> u64 {
        let room = |of: &Arc<Tenant>| of.quota(stock).limit().saturating_sub(of.quota(stock).used());
        self.both().map(room).into_iter().min().unwrap_or(0)
    }

    /// Whether something of a minute is left.
    pub(crate) fn check(&self, rate: Rate) -> Result<(), Exceeded> {
        self.both().into_iter().try_for_each(|of| of.rate(rate).check())
    }

    fn charge(&self, rate: Rate, amount: u64) {
        for of in self.both() {
            of.rate(rate).charge(amount);
        }
    }

    /// Whether a request may begin: what it will use of a minute is known only when it
    /// is over, so there must be something left.
    pub(crate) fn may_begin(&self) -> Result<(), Exceeded> {
        [Rate::Cpu, Rate::TokensIn, Rate::TokensOut].into_iter().try_for_each(|rate| self.check(rate))
    }

    /// Sets aside what an instance may hold, with `handles` of them.
    pub(crate) fn place(&self, handles: u32) -> Result<Place, Exceeded> {
        Ok(Place { _instance: self.hold(Stock::Instances, 1)?, _handles: self.hold(Stock::Handles, handles.into())? })
    }

    /// Notes CPU time that a store has used.
    pub(crate) fn used_cpu(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.charge(Rate::Cpu, micros);
        self.meter.add(Counter::CpuMicroseconds, micros);
    }

    /// Notes tokens of a prompt: those that were computed, and those that were there.
    pub(crate) fn read(&self, computed: u64, cached: u64) {
        self.charge(Rate::TokensIn, computed);
        self.meter.add(Counter::TokensIn, computed);
        self.meter.add(Counter::TokensCached, cached);
    }

    /// Notes tokens that were generated.
    pub(crate) fn wrote(&self, tokens: u64) {
        self.charge(Rate::TokensOut, tokens);
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

#[cfg(test)]
mod tests {
    use nala_tenant::Limits;

    use super::*;

    fn account(of_tenant: u64, of_component: u64) -> Account {
        let within = |limit| Tenant::within(Limits::unlimited().with(Stock::Memory, limit));
        Account::new(within(of_tenant), within(of_component), "app")
    }

    #[test]
    fn both_limits_hold_and_nothing_is_kept_of_what_is_refused() {
        for account in [account(100, 60), account(60, 100)] {
            let mut first = account.hold(Stock::Memory, 40).unwrap();
            assert_eq!((account.hold(Stock::Memory, 30).unwrap_err().value, account.room(Stock::Memory)), (60, 20));
            assert!(first.grow(30).is_err());
            assert_eq!(account.room(Stock::Memory), 20);
            first.resize(60).unwrap();
            first.resize(10).unwrap();
            assert_eq!(account.room(Stock::Memory), 50);
            drop(first);
            assert_eq!(account.room(Stock::Memory), 60);
        }
    }
}
