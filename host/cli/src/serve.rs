//! The life of a serving host: listeners, then what they serve, then the end.

mod ending;
mod resident;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context;
use nala_engine::ModelPool;
use nala_http::{AdminHandler, HttpMetrics, Phase, Readiness, Server, Shutdown};
use nala_wasm::{CompileCache, MAX_COMPONENT_BYTES, Runtime, RuntimeConfig};
use prometheus_client::registry::Registry;

use crate::answer::{Front, Late, Routing};
use crate::args::{CodeArgs, ServeArgs};
use crate::console::{Console, Help};
use crate::deploy::{Deployments, Managed};
use crate::models::Loader;
use crate::ready::{self, Ready, Sample};
use crate::serve::ending::{GRACE, Patience};
use crate::services::Services;
use crate::signals::Signals;
use crate::tenancy::{Opened, Tenancy, TenantMetrics};
use crate::watch::{Serving, Watcher};

/// How long threads that still compile or load are waited for at the end.
const LEFTOVERS: Duration = Duration::from_millis(500);

/// How often it is looked whether the engines still live.
const LOOK: Duration = Duration::from_secs(1);

/// What a verb needs to prepare what is served.
pub(crate) struct Preparing {
    pub(crate) runtime: Runtime,
    pub(crate) loader: Loader,
    pub(crate) console: Console,
    /// Where compiled code is kept.
    pub(crate) cache: CompileCache,
    pub(crate) services: Services,
}

/// What a verb serves.
pub(crate) struct Prepared {
    pub(crate) routing: Routing,
    pub(crate) models: ModelPool,
    /// What it is, for the ready line.
    pub(crate) what: String,
    pub(crate) sample: Sample,
    /// Who exchanges it when it changes, if anybody does.
    pub(crate) watcher: Option<Watcher>,
}

/// Binds, prepares, serves until a signal comes, and drains.
///
/// # Errors
/// Whatever keeps the host from serving, and an engine that ends unasked: its
/// model is lost until the process is started anew.
pub(crate) fn serve<P>(args: &ServeArgs, opened: Opened, console: Console, prepare: P) -> anyhow::Result<()>
where
    P: FnOnce(&Preparing) -> anyhow::Result<Prepared> + Send + 'static,
{
    let workers = nala_machine::granted_cpus().threads.max(2);
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("nala worker")
        .enable_all()
        .build()
        .context("the worker threads cannot be started")?;
    let result = tokio.block_on(host(args, opened, console, prepare));
    tokio.shutdown_timeout(LEFTOVERS);
    result
}

async fn host<P>(args: &ServeArgs, mut opened: Opened, console: Console, prepare: P) -> anyhow::Result<()>
where
    P: FnOnce(&Preparing) -> anyhow::Result<Prepared> + Send + 'static,
{
    let mut signals = Signals::take()?;
    // Bound first: a port that is taken should not cost the loading of a model.
    let readiness = Readiness::new(Phase::Starting);
    let metrics = HttpMetrics::default();
    let server = Server::bind(opened.listen, args.http.config())
        .await?
        .with_metrics(metrics.clone())
        .with_readiness(readiness.clone());
    let mut registry = Registry::with_prefix("nala");
    metrics.register(&mut registry);
    registry.register_collector(Box::new(resident::ResidentMemory));
    registry.register_collector(Box::new(TenantMetrics(opened.tenancy.clone())));
    let registry = Arc::new(RwLock::new(registry));
    let managed = Arc::new(Managed::new(
        AdminHandler::new(Arc::clone(&registry), readiness.clone()),
        std::mem::take(&mut opened.admin_keys),
        opened.registries.take(),
    ));
    let admin = Admin::start(opened.admin, &managed, &readiness).await?;
    let address = server.local_addr();
    let shutdown = Shutdown::new();
    let served = Late::default();
    let mut serving = tokio::spawn(server.serve(served.clone(), shutdown.signal()));

    let preparing = prepare_apart(args.clone(), opened.state.clone(), console, Arc::clone(&registry), prepare);
    let prepared = tokio::select! {
        prepared = preparing => prepared?,
        () = signals.next() => {
            console.say("Stopped before anything was served.");
            return Ok(());
        }
    };
    let (preparing, Prepared { routing, models, what, sample, watcher }) = prepared;
    let preparing = Arc::new(preparing);
    let deployments = deployments(&opened, Arc::clone(&preparing), &models).await?;
    if let Some(deployments) = &deployments {
        managed.manage(Arc::clone(deployments));
    }
    let tenancy = opened.tenancy.clone();
    let open = move |routing| {
        served.open(Front { routing, tenancy: tenancy.clone(), deployments: deployments.clone() });
    };
    open(routing);
    let watching = watcher.map(|watcher| {
        let serving = Serving { preparing, models: models.clone(), open: Arc::new(open) };
        tokio::spawn(watcher.run(serving, shutdown.signal()))
    });
    let following = opened.follow();
    readiness.set(Phase::Ready);
    ready::announce(
        console,
        &Ready { what: &what, address, admin: admin.as_ref().map(|admin| admin.address), sample: &sample },
    );

    let patience = Patience::of(&args.http);
    let ending =
        tokio::spawn(ending::end(signals, shutdown.clone(), console, patience, move || ending::by_force(console)));
    let (report, lost) = tokio::select! {
        report = &mut serving => (report, None),
        lost = first_lost(&models) => {
            tracing::error!(model = lost, "the engine ended unasked; the host ends too");
            readiness.set(Phase::Draining);
            // What other models still answer is finished.
            shutdown.drain();
            (serving.await, Some(lost))
        }
    };
    let report = report.context("the server ended unexpectedly")?;
    ending::models(&models, console, GRACE).await;
    if let Some(following) = following {
        following.stop().await;
    }
    if let Some(watching) = watching {
        // A build is told to end; what is compiled is not waited for.
        let _late = tokio::time::timeout(GRACE, watching).await;
    }
    if let Some(admin) = admin {
        admin.stop().await;
    }
    match report.cut {
        0 => console.say("Stopped; every running response was finished."),
        1 => console.warn("Stopped; one connection was cut off."),
        n => console.warn(&format!("Stopped; {n} connections were cut off.")),
    }
    // To the very end a signal ends the process.
    ending.abort();
    match lost {
        None => Ok(()),
        Some(lost) => Err(Help {
            what: format!("the engine of the model {lost} ended unasked, so the host cannot go on"),
            help: "start nala-host again; the log above says what ended the engine, please report it".to_owned(),
        }
        .into()),
    }
}

/// Opens what tenants have deployed, where there are tenants and a folder for it.
async fn deployments(
    opened: &Opened,
    preparing: Arc<Preparing>,
    models: &ModelPool,
) -> anyhow::Result<Option<Arc<Deployments>>> {
    let (Tenancy::Declared(directory), Some(folder)) = (&opened.tenancy, opened.state.clone()) else { return Ok(None) };
    let (directory, models) = (Arc::clone(directory), models.clone());
    let open = move || Deployments::open(&folder, directory, preparing, models);
    let opened = tokio::task::spawn_blocking(open).await.context("loading ended unexpectedly")??;
    Ok(Some(opened))
}

/// Waits until an engine has ended that nobody has ended, and says whose it was.
async fn first_lost(models: &ModelPool) -> String {
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        if let Some(lost) = models.lost() {
            return lost;
        }
    }
}

/// The operator's listener.
struct Admin {
    address: std::net::SocketAddr,
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<nala_http::DrainReport>,
}

impl Admin {
    async fn start(
        address: Option<SocketAddr>,
        handler: &Arc<Managed>,
        readiness: &Readiness,
    ) -> anyhow::Result<Option<Self>> {
        let Some(address) = address else { return Ok(None) };
        let server =
            Server::bind(address, nala_http::HttpConfig { max_body_bytes: MAX_COMPONENT_BYTES, ..Default::default() })
                .await
                .map_err(|error| {
                    anyhow::Error::new(error).context("the admin listener (--admin-listen) cannot be opened")
                })?
                .with_readiness(readiness.clone())
                .with_access_log(tracing::Level::DEBUG);
        let address = server.local_addr();
        let shutdown = Shutdown::new();
        let task = tokio::spawn(server.serve(Arc::clone(handler), shutdown.signal()));
        Ok(Some(Self { address, shutdown, task }))
    }

    /// Ends it, the last of all, so that probes see the drain.
    async fn stop(self) {
        self.shutdown.cut();
        let _ended = self.task.await;
    }
}

/// Loads and compiles where blocking is fine.
async fn prepare_apart<P>(
    args: ServeArgs,
    state: Option<PathBuf>,
    console: Console,
    registry: Arc<RwLock<Registry>>,
    prepare: P,
) -> anyhow::Result<(Preparing, Prepared)>
where
    P: FnOnce(&Preparing) -> anyhow::Result<Prepared> + Send + 'static,
{
    let work = tokio::task::spawn_blocking(move || {
        let cache = cache(&args.code);
        let runtime = Runtime::new(RuntimeConfig { cache: cache.clone(), ..RuntimeConfig::default() })?;
        let loader = Loader::new(&args.engine, &args.models, console)?;
        let services = {
            let mut registry = registry.write().unwrap_or_else(PoisonError::into_inner);
            Services::open(state.as_deref(), &mut registry)?
        };
        let preparing = Preparing { runtime, loader, console, cache, services };
        let prepared = prepare(&preparing)?;
        let mut registry = registry.write().unwrap_or_else(PoisonError::into_inner);
        preparing.runtime.metrics().register(&mut registry);
        prepared.models.metrics().register(&mut registry);
        for model in prepared.models.models() {
            let label = ("model".into(), model.name().to_owned().into());
            model.metrics().register(registry.sub_registry_with_label(label));
        }
        drop(registry);
        Ok((preparing, prepared))
    });
    work.await.context("loading ended unexpectedly")?
}

/// Where compiled components are kept: next to what else the user caches.
pub(crate) fn cache(args: &CodeArgs) -> CompileCache {
    if args.no_cache {
        return CompileCache::Off;
    }
    let own = || directories::ProjectDirs::from("", "", "nala").map(|dirs| dirs.cache_dir().join("components"));
    match args.cache_dir.clone().or_else(own) {
        Some(dir) => CompileCache::Directory(dir),
        None => CompileCache::Off,
    }
}

#[cfg(test)]
mod tests;
