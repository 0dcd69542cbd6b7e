//! A tenant as requests see it: what it may use, and guards for what it does.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::admission::{Admission, Admitting};
use crate::bucket::Bucket;
use crate::class::ClassName;
use crate::clock::{Clock, SystemClock};
use crate::ledger::Ledger;
use crate::limit::{Ceiling, Exceeded, Limits, Rate, Stock};
use crate::meter::{Meter, Meters, Usage};
use crate::quota::{Held, Quota};
use crate::roster::{Declared, TenantName};

/// Whom a request belongs to.
///
/// It is what was declared when the request came; the ledger behind it is the
/// same for all requests of the tenant, and has the limits of the last reload.
#[derive(Debug)]
pub struct Tenant {
    name: TenantName,
    class: Option<ClassName>,
    weight: NonZeroU32,
    models: Option<BTreeSet<String>>,
    reads_machine: bool,
    ledger: Arc<Ledger>,
}

impl Tenant {
    pub(crate) fn new(declared: &Declared, ledger: Arc<Ledger>) -> Self {
        Self {
            name: declared.name.clone(),
            class: declared.class.clone(),
            weight: declared.weight,
            models: declared.models.clone(),
            reads_machine: declared.reads_machine,
            ledger,
        }
    }

    /// The one owner of a machine for which no tenants are declared. Nothing limits it
    /// as a tenant; what it uses is counted.
    #[must_use]
    pub fn sole() -> Arc<Self> {
        Self::within(Limits::unlimited())
    }

    /// Somebody of whom no more is known than the limits: the users of one component,
    /// all together.
    #[must_use]
    pub fn within(limits: Limits) -> Arc<Self> {
        let declared = Declared { limits, ..Declared::new(TenantName::local()) };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let ledger = Ledger::new(&declared.limits, Meters::new(&clock), &clock);
        Arc::new(Self::new(&declared, Arc::new(ledger)))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &TenantName {
        &self.name
    }

    /// The class in whose process it is served, if that is not this one.
    #[must_use]
    pub fn class(&self) -> Option<&ClassName> {
        self.class.as_ref()
    }

    /// Its part of the whole, beside the weights of the others.
    #[must_use]
    pub fn weight(&self) -> NonZeroU32 {
        self.weight
    }

    /// Whether it may use a model that is served.
    #[must_use]
    pub fn may_use_model(&self, name: &str) -> bool {
        self.models.as_ref().is_none_or(|models| models.contains(name))
    }

    /// Whether applications that it deploys may read what the machine does.
    #[must_use]
    pub fn may_read_machine(&self) -> bool {
        self.reads_machine
    }

    /// Lets a request in: one of [`Stock::Requests`] until it is done, one of
    /// [`Rate::Requests`] for good. It does not pass those that wait by
    /// [`Tenant::admit_or_wait`].
    ///
    /// # Errors
    /// There is no place, somebody waits for one, or the minute is used up;
    /// nothing was taken.
    pub fn admit(self: &Arc<Self>) -> Result<Admission, Exceeded> {
        Admission::now(self)
    }

    /// Lets a request in as soon as there is a place, first come first served,
    /// while [`Stock::Queued`] has room for it. Dropping it gives the place in
    /// the queue up, so a caller bounds the wait by a timeout around it.
    #[must_use = "nothing is asked before the first poll"]
    pub fn admit_or_wait(self: &Arc<Self>) -> Admitting {
        Admitting::new(Arc::clone(self))
    }

    /// Takes `amount` of what is held, in the unit of `stock`, until the guard
    /// is dropped. An `amount` of 0 is always given, for a guard that grows.
    ///
    /// # Errors
    /// The tenant would hold more than its limit.
    pub fn hold(&self, stock: Stock, amount: u64) -> Result<Held, Exceeded> {
        self.quota(stock).try_hold(amount)
    }

    /// The sum of what is held.
    #[must_use]
    pub fn quota(&self, stock: Stock) -> &Arc<Quota> {
        &self.ledger.quotas[stock]
    }

    pub(crate) fn quotas(&self) -> impl Iterator<Item = (Stock, &Arc<Quota>)> {
        self.ledger.quotas.iter()
    }

    /// What is left of a minute: [`Bucket::take`] what is known beforehand,
    /// [`Bucket::check`] before and [`Bucket::charge`] after what is not.
    #[must_use]
    pub fn rate(&self, rate: Rate) -> &Bucket {
        &self.ledger.buckets[rate]
    }

    /// How large one thing may be, in the unit of `ceiling`.
    #[must_use]
    pub fn ceiling(&self, ceiling: Ceiling) -> u64 {
        self.ledger.ceiling(ceiling)
    }

    /// Asks whether one thing is small enough.
    ///
    /// # Errors
    /// It is larger than the limit.
    pub fn fits(&self, ceiling: Ceiling, size: u64) -> Result<(), Exceeded> {
        let value = self.ceiling(ceiling);
        if size <= value { Ok(()) } else { Err(Exceeded { limit: ceiling.into(), value, retry_after: None }) }
    }

    /// Where the usage of one of its components is counted. `component` is a
    /// name that the host gives, from the application's manifest.
    #[must_use]
    pub fn meter(&self, component: &str) -> Arc<Meter> {
        self.ledger.meters.of(component)
    }

    /// What all its components used, since counting began.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.ledger.meters.sum()
    }
}
