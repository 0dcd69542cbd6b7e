//! The life of a serving host: listeners, then what they serve, then the end.

mod ending;
mod entrances;
mod resident;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context;
use nala_engine::ModelPool;
use nala_http::{AdminHandler, HttpMetrics, Phase, Readiness, Shutdown, ShutdownSignal};
use nala_tenant::ClassName;
use nala_wasm::{CompileCache, Runtime, RuntimeConfig};
use prometheus_client::registry::Registry;

use crate::answer::{Front, Late, Routing};
use crate::args::{CodeArgs, ServeArgs};
use crate::classes::Classes;
use crate::console::{Console, Help};
use crate::deploy::{Deployments, Gate, Managed};
use crate::models::Loader;
use crate::ready::{self, Sample};
use crate::serve::ending::{GRACE, Patience};
pub(crate) use crate::serve::entrances::Place;
use crate::serve::entrances::{Admin, Entrances};
use crate::services::{Outside, Services};
use crate::tenancy::{Doors, Follow, Opened, Tenancy, TenantMetrics};
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

async fn host<P>(args: &ServeArgs, opened: Opened, console: Console, prepare: P) -> anyhow::Result<()>
where
    P: FnOnce(&Preparing) -> anyhow::Result<Prepared> + Send + 'static,
{
    // Bound first: a port that is taken should not cost the loading of a model.
    let Opened { tenancy, doors, keepers, admin_keys, registries, outside, state, follow, .. } = opened;
    let gate = match &doors {
        Doors::Listen { .. } => Gate::Keys(admin_keys),
        Doors::Link { .. } => Gate::Front,
    };
    let Entrances { server, admin, mut signals, place } = Entrances::open(doors, &args.http).await?;
    let classes = Classes::follow(keepers)?;
    // Before a model is loaded, so that they are there when the first request comes.
    let issuers = tenancy.follow_issuers(&outside)?;
    let readiness = Readiness::new(Phase::Starting);
    let metrics = HttpMetrics::default();
    let server = server.with_metrics(metrics.clone()).with_readiness(readiness.clone());
    let mut registry = Registry::with_prefix("nala");
    metrics.register(&mut registry);
    registry.register_collector(Box::new(resident::ResidentMemory));
    registry.register_collector(Box::new(TenantMetrics(tenancy.clone())));
    registry.register_collector(Box::new(classes.clone()));
    let registry = Arc::new(RwLock::new(registry));
    let managed = Arc::new(Managed::new(
        AdminHandler::new(Arc::clone(&registry), readiness.clone()),
        gate,
        registries,
        tenancy.clone(),
        classes.clone(),
    ));
    let admin = admin.map(|server| Admin::start(server, &managed, &readiness));
    let shutdown = Shutdown::new();
    let served = Late::default();
    let mut serving = tokio::spawn(server.serve(served.clone(), shutdown.signal()));

    let preparing = prepare_apart(args.clone(), (state.clone(), outside), console, Arc::clone(&registry), prepare);
    let prepared = tokio::select! {
        prepared = preparing => prepared?,
        () = signals.next() => {
            console.say("Stopped before anything was served.");
            classes.stop().await;
            return Ok(());
        }
    };
    let (preparing, Prepared { routing, models, what, sample, watcher }) = prepared;
    let preparing = Arc::new(preparing);
    let deployments = deployments(&tenancy, state, Arc::clone(&preparing), &models).await?;
    if let Some(deployments) = &deployments {
        managed.manage(Arc::clone(deployments));
    }
    let others = classes.clone();
    let open = move |routing| {
        let (tenancy, classes, deployments) = (tenancy.clone(), others.clone(), deployments.clone());
        served.open(Front { routing, tenancy, classes, deployments });
    };
    open(routing);
    let watching = watcher.map(|watcher| {
        let serving = Serving { preparing, models: models.clone(), open: Arc::new(open) };
        tokio::spawn(watcher.run(serving, shutdown.signal()))
    });
    let following = follow.map(Follow::begin);
    readiness.set(Phase::Ready);
    ready::announce(console, &what, &place, &sample);

    let patience = Patience::of(&args.http, &classes);
    let ending =
        tokio::spawn(ending::end(signals, shutdown.clone(), console, patience, move || ending::by_force(console)));
    let (report, lost) = tokio::select! {
        report = &mut serving => (report, None),
        lost = first_lost(&models, &classes, shutdown.signal()) => {
            tracing::error!("{lost} ended unasked; the host ends too");
            readiness.set(Phase::Draining);
            // What other models still answer is finished.
            shutdown.drain();
            (serving.await, Some(lost))
        }
    };
    let report = report.context("the server ended unexpectedly")?;
    // Those of other processes have nothing more to answer either.
    tokio::join!(ending::models(&models, console, GRACE), classes.stop());
    if let Some(following) = following {
        following.stop().await;
    }
    if let Some(issuers) = issuers {
        issuers.abort();
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
            what: format!("{lost} ended unasked, so the host cannot go on"),
            help: "start nala-host again; the log above says what ended it, please report it".to_owned(),
        }
        .into()),
    }
}

/// Opens what tenants have deployed, where there are tenants and a folder for it.
async fn deployments(
    tenancy: &Tenancy,
    state: Option<PathBuf>,
    preparing: Arc<Preparing>,
    models: &ModelPool,
) -> anyhow::Result<Option<Arc<Deployments>>> {
    let (Tenancy::Declared(directory, _), Some(folder)) = (tenancy, state) else { return Ok(None) };
    let (directory, models) = (Arc::clone(directory), models.clone());
    let open = move || Deployments::open(&folder, directory, preparing, models);
    let opened = tokio::task::spawn_blocking(open).await.context("loading ended unexpectedly")??;
    Ok(Some(opened))
}

/// Waits until something has ended that nobody has ended and that cannot be started
/// again by this process, and says what it was.
async fn first_lost(models: &ModelPool, classes: &Classes, end: ShutdownSignal) -> String {
    let engine = async {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            if let Some(lost) = models.lost() {
                return lost;
            }
        }
    };
    tokio::select! {
        model = engine => format!("the engine of the model {model}"),
        class = lost_for_good(classes, end) => format!("the keeper of the class {class}"),
    }
}

/// A signal for a whole group of processes may reach a keeper before this process.
async fn lost_for_good(classes: &Classes, end: ShutdownSignal) -> ClassName {
    let class = classes.first_lost().await;
    tokio::select! {
        () = tokio::time::sleep(LOOK) => class,
        () = end.draining() => std::future::pending().await,
    }
}

/// Loads and compiles where blocking is fine.
async fn prepare_apart<P>(
    args: ServeArgs,
    (state, outside): (Option<PathBuf>, Outside),
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
            Services::open(state.as_deref(), outside, &mut registry)?
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
