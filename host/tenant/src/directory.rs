//! Who a request belongs to, while what is declared may change.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::clock::Clock;
use crate::host_name::HostName;
use crate::key::Rejected;
use crate::ledger::Ledger;
use crate::limit::{Limits, Stock};
use crate::meter::{Meters, Sample, Totals};
use crate::prefix::{beginnings, readings};
use crate::roster::{Declared, Roster, TenantName};
use crate::tenant::Tenant;

/// What a request shows of whom it is from. Nothing of it is believed but what it is
/// shown by; host name and path say where somebody wants to be served.
#[derive(Clone, Copy)]
pub struct Presented<'a> {
    /// By what it shows whose it is.
    pub by: Shown<'a>,
    /// The host with or without a port, as the request names it.
    pub host: Option<&'a str>,
    /// The path as it was sent, without a query.
    pub path: &'a str,
}

/// By what a request shows whose it is.
#[derive(Clone, Copy)]
pub enum Shown<'a> {
    /// Nothing.
    Nothing,
    /// A key; an empty one is a wrong one.
    Key(&'a str),
    /// A token that names a tenant, and was found to be right.
    Token {
        /// The tenant.
        tenant: &'a str,
    },
}

/// Without the key.
impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Key(_) => f.write_str("Key(not shown)"),
            Self::Token { tenant } => f.debug_struct("Token").field("tenant", tenant).finish(),
        }
    }
}

/// Without the key.
impl fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented").field("by", &self.by).field("host", &self.host).field("path", &self.path).finish()
    }
}

/// Whom a request belongs to.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// How many bytes of the path are the tenant's prefix. The router sees what
    /// is behind them, and `/` where that is nothing.
    pub path_prefix: usize,
}

/// Why a request belongs to nobody. None of the texts tells who else there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No key, where one is needed: 401.
    #[error("a key is needed: send it as `Authorization: Bearer nala_…`")]
    NoKey,
    /// Nobody has this key: 401.
    #[error("this key is not known: check that it is whole, or ask the operator for a new one")]
    UnknownKey,
    /// The key was good until a while ago: 401.
    #[error("this key has expired: ask the operator for a new one")]
    Expired,
    /// The token names a tenant that is not declared: 403.
    #[error("the token names nobody who is served here: ask the operator")]
    UnknownTenant,
    /// The key is somebody's to whom this place does not belong: 403.
    #[error("this key is not for this address")]
    WrongTenant,
    /// The host name is none, or not one at which the key's owner is served:
    /// 421.
    #[error("nobody is served with this key at this address: use the host name or the path that the operator gave")]
    UnknownHost,
    /// The path reads as one tenant's or another's, by who reads it: 400.
    #[error(
        "the path can be read in two ways: send it without `..`, `//`, `\\` and without encoding letters or slashes"
    )]
    AmbiguousPath,
}

/// All tenants that are served. It is asked for each request, and may be given
/// another roster at any time.
#[derive(Debug)]
pub struct Directory {
    clock: Arc<dyn Clock>,
    served: RwLock<Arc<Served>>,
    /// Of all tenants that there ever were, so that one who comes back has the
    /// debts and the counters of before.
    ledgers: Mutex<BTreeMap<TenantName, Arc<Ledger>>>,
}

#[derive(Debug)]
struct Served {
    roster: Roster,
    tenants: BTreeMap<TenantName, Arc<Tenant>>,
}

/// A place that belongs to somebody.
struct Place<'a> {
    owner: &'a TenantName,
    path_prefix: usize,
}

impl Directory {
    /// Serves a roster. Counting goes on from `totals`, those of tenants that
    /// are not declared any more included.
    #[must_use]
    pub fn new(roster: Roster, totals: &Totals, clock: Arc<dyn Clock>) -> Self {
        let ledgers = totals
            .by_tenant()
            .map(|(name, components)| {
                let meters = Meters::restored(components, &clock);
                (name.clone(), Arc::new(Ledger::new(&Limits::default(), meters, &clock)))
            })
            .collect();
        let nobody = Served { roster: Roster::new(), tenants: BTreeMap::new() };
        let directory = Self { clock, served: RwLock::new(Arc::new(nobody)), ledgers: Mutex::new(ledgers) };
        directory.reload(roster);
        directory
    }

    /// Serves another roster from now on. Requests that are under way keep their
    /// tenant, and what they hold; limits are the new ones at once, for them
    /// too. A tenant that is gone is refused from now on.
    pub fn reload(&self, roster: Roster) {
        // Held to the end, so that two reloads do not mix.
        let mut ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        let tenants = roster
            .tenants()
            .map(|declared: &Declared| {
                let ledger = ledgers
                    .entry(declared.name.clone())
                    .or_insert_with(|| Arc::new(Ledger::new(&declared.limits, Meters::new(&self.clock), &self.clock)));
                ledger.set_limits(&declared.limits);
                (declared.name.clone(), Arc::new(Tenant::new(declared, Arc::clone(ledger))))
            })
            .collect();
        let served = Arc::new(Served { roster, tenants });
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = served;
    }

    /// Whom a request belongs to.
    ///
    /// A key or a token says who somebody is. A host name or a prefix that belongs to a
    /// tenant is for that tenant only, and a tenant that has such places is
    /// served there only. A host name that belongs to somebody decides alone:
    /// prefixes count on all others.
    ///
    /// # Errors
    /// It belongs to nobody. Without a key only the tenant of anonymous callers
    /// can be meant; with a wrong one nobody is.
    pub fn identify(&self, presented: &Presented<'_>) -> Result<Identity, Refusal> {
        let served = self.served();
        let roster = &served.roster;
        let shown = match presented.by {
            Shown::Nothing => None,
            Shown::Key(key) => Some(roster.keys.owner(key, self.clock.date()).map_err(|rejected| match rejected {
                Rejected::Unknown => Refusal::UnknownKey,
                Rejected::Expired => Refusal::Expired,
            })?),
            Shown::Token { tenant } => Some(roster.tenant(tenant).map(|own| &own.name).ok_or(Refusal::UnknownTenant)?),
        };
        let place = served.place(presented)?;
        let owner = shown.or(roster.anonymous()).ok_or(Refusal::NoKey)?;
        let (name, path_prefix) = match place {
            Some(place) if place.owner == owner => (owner, place.path_prefix),
            Some(_) if shown.is_some() => return Err(Refusal::WrongTenant),
            Some(_) => return Err(Refusal::NoKey),
            None if roster.tenant(owner.as_str()).is_some_and(Declared::has_places) => {
                return Err(if shown.is_some() { Refusal::UnknownHost } else { Refusal::NoKey });
            }
            None => (owner, 0),
        };
        // Every name of the roster has a tenant.
        let tenant = served.tenants.get(name).ok_or(Refusal::UnknownKey)?;
        Ok(Identity { tenant: Arc::clone(tenant), path_prefix })
    }

    /// The tenant with a name, for what the operator asks.
    #[must_use]
    pub fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        self.served().tenants.get(name).cloned()
    }

    /// All tenants that are served, by name.
    #[must_use]
    pub fn tenants(&self) -> Vec<Arc<Tenant>> {
        self.served().tenants.values().cloned().collect()
    }

    /// What everybody used since counting began, tenants that are gone
    /// included. No counter in it is ever less than before.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        ledgers.iter().flat_map(|(name, ledger)| ledger.meters.all(name)).collect()
    }

    /// The same, a counter at a time.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + use<> {
        self.totals().into_samples()
    }

    /// What everybody holds at the moment: the tenant, what, how much of it and
    /// the limit.
    pub fn levels(&self) -> impl Iterator<Item = (TenantName, Stock, u64, u64)> + use<> {
        let level = |tenant: Arc<Tenant>| {
            let quotas =
                tenant.quotas().map(|(stock, quota)| (tenant.name().clone(), stock, quota.used(), quota.limit()));
            quotas.collect::<Vec<_>>()
        };
        self.tenants().into_iter().flat_map(level)
    }

    fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Served {
    /// Whose place a request wants to be served at, if it is anybody's.
    fn place(&self, presented: &Presented<'_>) -> Result<Option<Place<'_>>, Refusal> {
        if let Some(host) = presented.host {
            let host = HostName::of_authority(host).map_err(|_| Refusal::UnknownHost)?;
            if let Some(owner) = self.roster.hosts.get(&host) {
                return Ok(Some(Place { owner, path_prefix: 0 }));
            }
        }
        if self.roster.prefixes.is_empty() {
            return Ok(None);
        }
        let path = presented.path.split(['?', '#']).next().unwrap_or_default();
        let place = self.prefix(path);
        let owner = place.as_ref().map(|place| place.owner);
        // Whoever is between here and the client, and whoever reads the path
        // later, must find the same owner.
        if readings(path).any(|read| self.prefix(&read).map(|place| place.owner) != owner) {
            return Err(Refusal::AmbiguousPath);
        }
        Ok(place)
    }

    /// The longest prefix that a path begins with.
    fn prefix(&self, path: &str) -> Option<Place<'_>> {
        let find = |beginning: &str| {
            let owner = self.roster.prefixes.get(beginning)?;
            Some(Place { owner, path_prefix: beginning.len() })
        };
        beginnings(path).find_map(find)
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
