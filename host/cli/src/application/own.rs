//! What each tenant has of its own of an application: stores, the way out, and the
//! application's components on its account.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use nala_egress::AllowList;
use nala_manifest::routes::RouteTable;
use nala_tenant::Tenant;
use nala_wasm::{Callee, Chain, ChainError, Chained, GuestBody, Outbound, Own, Owning};
use tempfile::TempDir;

use crate::answer::{Answering, Routes, Site};
use crate::credentials::Home;
use crate::services::Services;

/// The components of an application by their identifiers, and its public routes.
#[derive(Default)]
pub(crate) struct Members {
    sites: OnceLock<BTreeMap<String, Arc<Site>>>,
    routes: OnceLock<RouteTable<Answering>>,
    /// Where the copies of their files are, which go with them.
    _scratch: Option<Arc<TempDir>>,
}

impl Members {
    /// None are loaded yet.
    pub(super) fn new(scratch: Option<Arc<TempDir>>) -> Self {
        Self { _scratch: scratch, ..Self::default() }
    }

    /// They are all loaded.
    pub(super) fn complete(&self, sites: BTreeMap<String, Arc<Site>>, routes: &Routes) {
        let mut table = RouteTable::new();
        for (route, answering) in routes {
            // Doubles were refused when the manifest was read.
            let _ = table.insert(route.clone(), answering.clone());
        }
        let _ = self.routes.set(table);
        let _ = self.sites.set(sites);
    }
}

/// Gives a component what a tenant has of its own.
pub(crate) struct Binder {
    pub(super) services: Services,
    pub(super) application: String,
    /// Whose application that is.
    pub(super) home: Home,
    pub(super) component: String,
    pub(super) stores: Vec<String>,
    pub(super) allowed: AllowList,
    /// Held by whoever serves the application: components that hold each other would
    /// never be gone.
    pub(super) members: Weak<Members>,
}

impl Owning for Binder {
    fn of(&self, tenant: &Arc<Tenant>) -> Own {
        self.bind(tenant)
    }
}

impl Binder {
    /// For a tenant.
    pub(crate) fn bind(&self, tenant: &Arc<Tenant>) -> Own {
        let mut own = Own::default();
        for label in &self.stores {
            match self.services.store(tenant, &self.application, label) {
                Ok(store) => drop(own.key_value.insert(label.clone(), store)),
                Err(error) => {
                    tracing::error!(
                        component = self.component,
                        label,
                        error = format!("{error:#}"),
                        "a store cannot be had"
                    );
                }
            }
        }
        let egress = self.services.egress(tenant, &self.home, &self.component, self.allowed.clone());
        if let Some(egress) = egress.filter(|_| !self.allowed.is_empty()) {
            let chain: Arc<dyn Chain> =
                Arc::new(TenantChain { members: Weak::clone(&self.members), tenant: Arc::clone(tenant) });
            own.outbound = Some(Outbound { egress, chain: Some(chain) });
        }
        own
    }
}

/// The components of an application on a tenant's account, for each other.
struct TenantChain {
    members: Weak<Members>,
    tenant: Arc<Tenant>,
}

impl Chain for TenantChain {
    fn call(&self, callee: Callee, request: http::Request<GuestBody>) -> Chained {
        let site = self.members.upgrade().and_then(|members| match callee {
            Callee::Component(id) => members.sites.get()?.get(&*id).cloned(),
            Callee::Application => match members.routes.get()?.find(request.uri().path())?.0 {
                Answering::Component(site) => Some(Arc::clone(site)),
                Answering::Static(_) => None,
            },
        });
        let tenant = Arc::clone(&self.tenant);
        Box::pin(async move {
            let site = site.ok_or(ChainError::NotFound)?;
            Ok(site.of(&tenant).handle(request).await?)
        })
    }
}
