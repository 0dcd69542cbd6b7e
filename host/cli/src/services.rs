//! What all applications of a host share: the store of key-value data, and the way to
//! servers outside.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use nala_egress::{
    AllowList, ConnectionLimit, Egress, EgressMetrics, Gate, GateConfig, Networks, Owner, SystemResolver,
};
use nala_keyvalue::{Config, KeyValue, Scope, Store};
use nala_tenant::{Stock, Tenant};
use prometheus_client::registry::Registry;

use crate::application::servers::Logins;
use crate::credentials::{Credentials, Home};

/// Connections of all tenants together.
const CONNECTIONS: usize = 1024;

/// What the operator says about servers outside.
#[derive(Clone, Default)]
pub(crate) struct Outside {
    /// Which addresses are granted and refused.
    pub(crate) networks: Networks,
    /// What is added to requests.
    pub(crate) credentials: Credentials,
}

/// A way to servers outside, for so many connections at a time.
///
/// # Errors
/// The system has no certificates to trust.
pub(crate) fn gate(networks: Networks, connections: usize, metrics: EgressMetrics) -> anyhow::Result<Gate> {
    let admit = Arc::new(ConnectionLimit::new(connections, connections));
    let config = GateConfig { networks, ..GateConfig::default() };
    Gate::new(config, Arc::new(SystemResolver::default()), admit, metrics)
        .context("the way to servers outside cannot be opened")
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Services {
    key_value: KeyValue,
    egress: EgressMetrics,
    /// Made when the first component is granted a host: what it needs of the system
    /// need not be there before.
    gate: Arc<OnceLock<Gate>>,
    /// What the operator says about them.
    outside: Outside,
    /// Tokens for MCP servers.
    logins: Logins,
}

impl Services {
    /// Opens them. Without a folder data is kept in memory, and gone with the process.
    ///
    /// # Errors
    /// The data cannot be opened, or there are no roots of trust.
    pub(crate) fn open(state: Option<&Path>, outside: Outside, registry: &mut Registry) -> anyhow::Result<Self> {
        let key_value = match state {
            None => KeyValue::in_memory(Config::default()),
            Some(folder) => KeyValue::open(&folder.join("key-value"), Config::default()),
        };
        let key_value = key_value.context("key-value data cannot be kept")?;
        let metrics = EgressMetrics::default();
        metrics.register(registry);
        Ok(Self { key_value, egress: metrics, gate: Arc::default(), outside, logins: Logins::beside(state) })
    }

    /// Opens the way to servers outside.
    ///
    /// # Errors
    /// The system has no certificates to trust.
    pub(crate) fn open_gate(&self) -> anyhow::Result<()> {
        if self.gate.get().is_none() {
            // What each tenant may have is a quota of its own.
            let gate = gate(self.outside.networks.clone(), CONNECTIONS, self.egress.clone())?;
            // Somebody else may have made one meanwhile.
            let _ = self.gate.set(gate);
        }
        Ok(())
    }

    /// A tenant's store of an application.
    ///
    /// # Errors
    /// The store cannot be made.
    pub(crate) fn store(&self, tenant: &Tenant, application: &str, label: &str) -> anyhow::Result<Store> {
        let scope = Scope::new(tenant.name().as_str(), application)?;
        let store = self.key_value.store(&scope, label)?;
        Ok(store.within(tenant.quota(Stock::KeyValueBytes).limit()))
    }

    /// The tokens that somebody has got by logging in at MCP servers.
    pub(crate) fn logins(&self) -> &Logins {
        &self.logins
    }

    /// A way to what the host itself asks on somebody's behalf, once the gate is open:
    /// without what the operator adds to requests of components.
    pub(crate) fn bare_egress(&self, tenant: &str, name: &str, allowed: AllowList) -> Option<Egress> {
        Some(self.gate.get()?.egress(Owner::new(tenant, name), allowed))
    }

    /// A tenant's way to what a component may reach, once the gate is open.
    pub(crate) fn egress(&self, tenant: &Tenant, home: &Home, component: &str, allowed: AllowList) -> Option<Egress> {
        let tenant = tenant.name().as_str();
        let credentials = self.outside.credentials.of(tenant, home, component);
        let egress = self.gate.get()?.egress(Owner::new(tenant, component), allowed);
        Some(egress.with_credentials(credentials))
    }
}
