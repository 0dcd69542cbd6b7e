//! Applications that are deployed while the host serves: what is kept in the state
//! folder, loaded and routed, for each tenant apart.

mod api;
mod compile;
mod compose;
mod load;
mod routes;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use nala_deploy::{AppName, State, TenantLimits};
use nala_engine::ModelPool;
use nala_manifest::routes::RouteTable;
use nala_tenant::{Ceiling, Directory, Stock, Tenant};

pub(crate) use self::api::Gate;
pub(crate) use self::api::{Managed, Registries};
use self::compile::Compiler;
pub(crate) use self::compile::main as compile_in_jail;
use self::compose::Composer;
pub(crate) use self::compose::main as compose_in_jail;
use crate::answer::{Answering, Routes};
use crate::application::Members;
use crate::serve::Preparing;

/// Versions of an application that can be gone back to.
const VERSIONS: NonZeroU64 = NonZeroU64::new(10).unwrap();
/// Bytes of all components of a tenant, in units of its largest one.
const COMPONENTS_OF_FULL_SIZE: u64 = 16;

/// What is deployed, and serves.
pub(crate) struct Deployments {
    state: State,
    directory: Arc<Directory>,
    preparing: Arc<Preparing>,
    models: ModelPool,
    compiler: Compiler,
    composer: Composer,
    /// What answers for a tenant, by the tenant's name.
    served: RwLock<BTreeMap<String, Arc<Served>>>,
}

/// What a tenant has deployed.
#[derive(Default)]
struct Served {
    /// Each application, loaded.
    apps: BTreeMap<AppName, Arc<Loaded>>,
    /// The routes of all of them.
    routes: RouteTable<Answering>,
}

impl Served {
    /// The same with an application in place of what it was, or without it.
    fn with(&self, app: &AppName, loaded: Option<Arc<Loaded>>) -> anyhow::Result<Self> {
        let mut apps = self.apps.clone();
        match loaded {
            Some(loaded) => apps.insert(app.clone(), loaded),
            None => apps.remove(app),
        };
        let routes = routes::of(&apps)?;
        Ok(Self { apps, routes })
    }
}

/// A version that is loaded.
struct Loaded {
    routes: Routes,
    /// Held for each other.
    _members: Arc<Members>,
}

impl Deployments {
    /// Opens the state folder, and loads what is deployed there. What cannot be loaded
    /// any more is told and left out; the others serve.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub(crate) fn open(
        folder: &Path,
        directory: Arc<Directory>,
        preparing: Arc<Preparing>,
        models: ModelPool,
    ) -> anyhow::Result<Arc<Self>> {
        let state = State::open(folder.join("deployed"))?;
        let compiler = Compiler::new(&preparing, folder)?;
        let composer = Composer::new(folder)?;
        let deployments = Self { state, directory, preparing, models, compiler, composer, served: RwLock::default() };
        for listed in deployments.state.list(None) {
            if deployments.is_served_elsewhere(listed.tenant.as_str()) {
                continue;
            }
            let version = deployments.state.current(&listed.tenant, &listed.app);
            let served = version.map_err(anyhow::Error::from).and_then(|version| {
                let loaded = deployments.load(&listed.app, &version)?;
                deployments.serve(listed.tenant.as_str(), &listed.app, Some(loaded))
            });
            if let Err(error) = served {
                tracing::error!(
                    tenant = listed.tenant.as_str(),
                    app = listed.app.as_str(),
                    error = format!("{error:#}"),
                    "a deployed application cannot be served"
                );
            }
        }
        Ok(Arc::new(deployments))
    }

    /// Whether a tenant is of a class, whose process has what it deploys. What it has
    /// deployed here before it came into the class stays, and is not served.
    fn is_served_elsewhere(&self, tenant: &str) -> bool {
        self.directory.tenant(tenant).is_some_and(|tenant| tenant.class().is_some())
    }

    /// Who answers a path for a tenant.
    pub(crate) fn find(&self, tenant: &str, path: &str) -> Option<Answering> {
        let served = Arc::clone(self.served.read().unwrap_or_else(PoisonError::into_inner).get(tenant)?);
        served.routes.find(path).map(|(answering, _)| answering.clone())
    }

    /// Has a tenant served by an application in place of what it was, or not at all.
    /// Requests under way go on with what they came to.
    fn serve(&self, tenant: &str, app: &AppName, loaded: Option<Arc<Loaded>>) -> anyhow::Result<()> {
        let mut all = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let served = all.get(tenant).cloned().unwrap_or_default().with(app, loaded)?;
        all.insert(tenant.to_owned(), Arc::new(served));
        Ok(())
    }

    /// Whether the routes of an application are free, but for itself.
    fn fits(&self, tenant: &str, app: &AppName, loaded: &Arc<Loaded>) -> anyhow::Result<()> {
        let all = self.served.read().unwrap_or_else(PoisonError::into_inner);
        all.get(tenant).cloned().unwrap_or_default().with(app, Some(Arc::clone(loaded))).map(drop)
    }
}

/// CPU time to compile what was deployed before.
const COMPILE_TIME: Duration = Duration::from_secs(60);
/// The most that any tenant's component gets, whatever its limit.
const MOST_COMPILE_TIME: Duration = Duration::from_secs(600);

/// CPU time to compile a component of a tenant.
fn compile_time(tenant: &Tenant) -> Duration {
    Duration::from_micros(tenant.ceiling(Ceiling::CompileTime)).min(MOST_COMPILE_TIME)
}

/// What a tenant may deploy.
fn limits(tenant: &Tenant) -> TenantLimits {
    let component_bytes = tenant.ceiling(Ceiling::ComponentBytes);
    let components = tenant.quota(Stock::Components).limit();
    TenantLimits {
        component_bytes,
        components,
        bytes: component_bytes.saturating_mul(COMPONENTS_OF_FULL_SIZE.min(components)),
        applications: components,
        versions: VERSIONS,
    }
}
