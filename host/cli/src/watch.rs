//! `nala-host up --watch`: builds what changes, and exchanges what is served.
//!
//! Files are looked at, not listened to: that works on every file system, and what a
//! build writes in many steps is one change. Whatever cannot be built or loaded leaves
//! what is served as it is.

mod look;
mod watched;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use nala_engine::ModelPool;
use nala_http::ShutdownSignal;
use nala_manifest::Application;
use nala_wasm::LoadError;
use tokio_util::sync::CancellationToken;

use self::watched::{Change, Snapshot, Watched};
use crate::answer::Routing;
use crate::application::{Chosen, Described};
use crate::build::{self, Leash, Work};
use crate::console::{Console, Help};
use crate::serve::Preparing;

/// How long is waited between two looks, at least.
const LOOK: Duration = Duration::from_millis(300);
/// How often longer is waited than a look takes, so that many files cost no more time.
const SPARE: u32 = 10;
/// How long nothing must change before something is done.
const QUIET: Duration = Duration::from_millis(150);
/// How long is waited for that.
const RESTLESS: Duration = Duration::from_secs(3);
/// How often in a row a build may change what it is made from before it is taken for
/// its own doing.
const ECHOES: u32 = 3;

/// What is there while an application is watched.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) preparing: Arc<Preparing>,
    pub(crate) models: ModelPool,
    /// Serves something else from now on.
    pub(crate) open: Arc<dyn Fn(Routing) + Send + Sync>,
}

/// Watches an application.
pub(crate) struct Watcher {
    manifest: PathBuf,
    chosen: Chosen,
    console: Console,
    /// What the manifest says, unless it is wrong.
    described: Option<Described>,
    watched: Watched,
    seen: Snapshot,
    /// Models that were asked for at the start, or that were told not to be loaded.
    models: BTreeSet<String>,
    echoes: u32,
}

/// Builds the components whose code is not there yet.
///
/// # Errors
/// The first command that fails.
pub(crate) fn build_missing(described: &Described, console: Console) -> anyhow::Result<()> {
    unbuilt(described.application()).try_for_each(|work| build::run(work, &Leash::Terminal, console))
}

/// The components that can be built, and whose code is not there.
fn unbuilt(application: &Application) -> impl Iterator<Item = Work<'_>> {
    application.components.iter().filter_map(|(id, component)| {
        let (source, build) = (component.source.path()?, component.build.as_ref()?);
        (!source.exists()).then_some(Work { id, build })
    })
}

impl Watcher {
    /// From now on changes are seen.
    pub(crate) fn new(manifest: &Path, chosen: Chosen, described: Described, console: Console) -> Self {
        let watched = Watched::of(manifest, described.application());
        let seen = watched.snapshot();
        console.say(&format!("Watching {} and what it names, {} files", manifest.display(), seen.files()));
        for id in watched.unseen() {
            let help = "write its sources, such as `watch = [\"src/**/*.rs\"]`, under";
            console.warn(&format!("the component `{id}` is not built when it changes: {help} [component.{id}.build]"));
        }
        let models = named_models(described.application());
        Self {
            manifest: manifest.to_owned(),
            chosen,
            console,
            described: Some(described),
            watched,
            seen,
            models,
            echoes: 0,
        }
    }

    /// What the manifest says.
    ///
    /// # Errors
    /// It was wrong when it was read last.
    pub(crate) fn described(&self) -> anyhow::Result<&Described> {
        self.described.as_ref().with_context(|| format!("{} is wrong", self.manifest.display()))
    }

    /// Watches until the host ends.
    pub(crate) async fn run(mut self, serving: Serving, end: ShutdownSignal) {
        let stop = CancellationToken::new();
        let mut pause = LOOK;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = end.draining() => return,
            }
            let (with, token) = (serving.clone(), stop.clone());
            let mut work = tokio::task::spawn_blocking(move || {
                let pause = self.step(&with, &token);
                (self, pause)
            });
            let done = tokio::select! {
                done = &mut work => done,
                () = end.draining() => {
                    stop.cancel();
                    work.await
                }
            };
            match done {
                Ok((watcher, next)) => {
                    self = watcher;
                    pause = next;
                }
                // The runtime is ending.
                Err(_) => return,
            }
        }
    }

    /// Looks once, and does what there is to do; says how long to wait.
    fn step(&mut self, serving: &Serving, stop: &CancellationToken) -> Duration {
        let begin = Instant::now();
        let now = self.watched.snapshot();
        let pause = LOOK.max(begin.elapsed() * SPARE);
        if now.since(&self.seen).is_nothing() {
            return pause;
        }
        let now = self.settled(now, stop);
        let change = now.since(&self.seen);
        self.seen = now;
        if change.is_nothing() || stop.is_cancelled() {
            return pause;
        }
        let begin = Instant::now();
        match self.renewed(&change, serving, stop) {
            Ok(routing) => {
                (serving.open)(routing);
                self.console.say(&format!("Serving the change after {:.1} s", begin.elapsed().as_secs_f64()));
            }
            // What was told to end has nothing to say.
            Err(_) if stop.is_cancelled() => {}
            Err(error) => {
                self.console.error(&error);
                self.console.say("What was served before is served on, until something changes.");
            }
        }
        pause
    }

    /// Waits until nothing changes any more, or for long enough.
    fn settled(&self, mut now: Snapshot, stop: &CancellationToken) -> Snapshot {
        let end = Instant::now() + RESTLESS;
        while Instant::now() < end && !stop.is_cancelled() {
            std::thread::sleep(QUIET);
            let next = self.watched.snapshot();
            if next == now {
                break;
            }
            now = next;
        }
        now
    }

    /// Builds and loads what a change asks for.
    fn renewed(&mut self, change: &Change, serving: &Serving, stop: &CancellationToken) -> anyhow::Result<Routing> {
        let mut to_build = change.sources.clone();
        if change.manifest {
            self.described = None;
        }
        if self.described.is_none() {
            let described = Described::read(&self.manifest, &self.chosen, self.console)?;
            self.watched = Watched::of(&self.manifest, described.application());
            self.see_more();
            self.tell_new_models(described.application());
            to_build.extend(unbuilt(described.application()).map(|work| work.id.to_owned()));
            self.described = Some(described);
        }
        to_build.sort();
        to_build.dedup();
        let built = self.build(&to_build, stop);
        self.absorb(&to_build);
        built?;
        let routing = self.described()?.routing(&serving.preparing, &serving.models);
        routing.map_err(|error| without_models(error, &serving.models))
    }

    fn build(&self, ids: &[String], stop: &CancellationToken) -> anyhow::Result<()> {
        for id in ids {
            if let Some(build) = self.watched.build(id) {
                build::run(Work { id, build }, &Leash::Token(stop.clone()), self.console)?;
            }
        }
        Ok(())
    }

    /// Takes what a build has made as seen; it is loaded next. What it was made from may
    /// have been changed meanwhile, and is then built again.
    fn absorb(&mut self, built: &[String]) {
        if built.is_empty() {
            return;
        }
        let now = self.watched.snapshot();
        let changed = now.since(&self.seen).sources;
        self.echoes = if built.iter().any(|id| changed.contains(id)) { self.echoes + 1 } else { 0 };
        if self.echoes >= ECHOES {
            self.console.warn(&format!(
                "each build changes what `watch` names of {}: leave out what the build writes",
                changed.join(", ")
            ));
            self.echoes = 0;
            self.seen.sources = now.sources;
        }
        self.seen.served = now.served;
    }

    /// Takes files as seen that are watched from now on. What was watched before may have
    /// changed since it was looked at.
    fn see_more(&mut self) {
        let mut now = self.watched.snapshot();
        for (path, look) in &mut now.served {
            if let Some(seen) = self.seen.served.get(path) {
                *look = *seen;
            }
        }
        now.sources.extend(
            std::mem::take(&mut self.seen.sources).into_iter().filter(|(id, _)| self.watched.build(id).is_some()),
        );
        now.manifest = std::mem::take(&mut self.seen.manifest);
        self.seen = now;
    }

    /// Says which models a changed manifest names in vain.
    fn tell_new_models(&mut self, application: &Application) {
        for model in named_models(application) {
            if self.models.insert(model.clone()) {
                self.console.warn(&format!(
                    "the model {model} is not loaded while the application is watched: start nala-host again to serve it"
                ));
            }
        }
    }
}

/// The models that components may open.
fn named_models(application: &Application) -> BTreeSet<String> {
    application.components.values().flat_map(|component| component.ai_models.iter().cloned()).collect()
}

/// An error of loading, with the reason where it is that nothing asked for a model at the
/// start.
fn without_models(error: anyhow::Error, models: &ModelPool) -> anyhow::Error {
    let wants_a_model = matches!(
        error.downcast_ref::<LoadError>(),
        Some(LoadError::NotGranted { import, .. }) if !import.starts_with("nala:chat/")
    );
    if !wants_a_model || models.models().next().is_some() {
        return error;
    }
    error.context(Help {
        what: "a component asks for a model now, and none was loaded when the host started".to_owned(),
        help: "start nala-host again: models are not loaded while an application is watched".to_owned(),
    })
}
