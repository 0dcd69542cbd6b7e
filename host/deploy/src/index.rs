//! What a state folder holds, as it is known in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use crate::digest::Digest;
use crate::name::{AppName, TenantName};
use crate::record::{Record, VersionNumber};
use crate::state::Usage;

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Bytes of each component that is there.
    pub(crate) blobs: BTreeMap<Digest, u64>,
    pub(crate) tenants: BTreeMap<TenantName, Tenant>,
}

/// What a tenant has.
#[derive(Debug, Default)]
pub(crate) struct Tenant {
    pub(crate) apps: BTreeMap<AppName, App>,
    /// Components that it has put and not deployed, and when.
    pub(crate) claims: BTreeMap<Digest, SystemTime>,
}

/// An application.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) record: Record,
    /// What each version that is kept is made of.
    pub(crate) versions: BTreeMap<VersionNumber, BTreeSet<Digest>>,
}

impl Tenant {
    /// The components that are its own: others' cannot be deployed by whoever
    /// knows their digest.
    pub(crate) fn components(&self) -> BTreeSet<Digest> {
        let deployed = self.apps.values().flat_map(|app| app.versions.values()).flatten();
        deployed.chain(self.claims.keys()).copied().collect()
    }
}

impl Index {
    pub(crate) fn app(&self, tenant: &TenantName, app: &AppName) -> Option<&App> {
        self.tenants.get(tenant)?.apps.get(app)
    }

    pub(crate) fn components(&self, tenant: &TenantName) -> BTreeSet<Digest> {
        self.tenants.get(tenant).map(Tenant::components).unwrap_or_default()
    }

    pub(crate) fn usage(&self, tenant: &TenantName) -> Usage {
        let components = self.components(tenant);
        let bytes = components.iter().filter_map(|digest| self.blobs.get(digest)).sum();
        let applications = self.tenants.get(tenant).map_or(0, |tenant| tenant.apps.len());
        Usage { components: count(components.len()), bytes, applications: count(applications) }
    }

    /// What nobody names any more.
    pub(crate) fn unnamed(&self) -> Vec<(Digest, u64)> {
        let named: BTreeSet<Digest> = self.tenants.values().flat_map(Tenant::components).collect();
        self.blobs
            .iter()
            .filter(|(digest, _)| !named.contains(*digest))
            .map(|(digest, size)| (*digest, *size))
            .collect()
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
