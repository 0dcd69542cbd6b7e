//! `nala-host up`: an application, from a manifest or built in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use nala_engine::{ModelPool, PooledModel};
use nala_manifest::routes::RouteTable;
use nala_manifest::{Application, Component};
use nala_models::DEFAULT_MODEL;
use nala_wasm::{App, Compiled, Grant, Limits, Renderer, Source};

use crate::answer::Routing;
use crate::args::UpArgs;
use crate::builtin;
use crate::component;
use crate::console::{Console, Help};
use crate::ready::Sample;
use crate::serve::{self, Prepared, Preparing};

/// Runs the verb.
///
/// # Errors
/// Whatever keeps the application from being served.
pub(crate) fn main(args: &UpArgs, console: Console) -> anyhow::Result<()> {
    match args.manifest.clone() {
        Some(manifest) => {
            // Read before anything is bound or loaded.
            let application = Application::read(&manifest)?;
            for warning in &application.warnings {
                console.warn(&warning.to_string());
            }
            serve::serve(&args.serve, console, move |preparing| {
                Loading::new(preparing, &application).prepare(&manifest)
            })
        }
        None => serve::serve(&args.serve, console, built_in),
    }
}

fn built_in(preparing: &Preparing) -> anyhow::Result<Prepared> {
    let models = preparing.loader.pool(&preparing.loader.asked(&[DEFAULT_MODEL]))?;
    let names: Vec<String> = models.models().map(|model| model.name().to_owned()).collect();
    let renderer = builtin::renderer(&preparing.runtime)?;
    let grant = Grant { models: models.models().collect(), renderer: Some(renderer), ..Grant::default() };
    let openai = preparing.runtime.compile("openai", Source::Bytes(builtin::OPENAI))?;
    let app = preparing.runtime.load(&openai, grant)?;
    Ok(Prepared {
        routing: Routing::All(app),
        models,
        what: format!("the OpenAI API with {}", names.join(", ")),
        sample: Sample::Chat { model: names.into_iter().next().unwrap_or_default() },
    })
}

/// Loads what a manifest describes, each thing once.
struct Loading<'a> {
    preparing: &'a Preparing,
    application: &'a Application,
    compiled: BTreeMap<String, Compiled>,
    renderers: BTreeMap<String, Arc<Renderer>>,
    apps: BTreeMap<String, App>,
}

impl<'a> Loading<'a> {
    fn new(preparing: &'a Preparing, application: &'a Application) -> Self {
        Self { preparing, application, compiled: BTreeMap::new(), renderers: BTreeMap::new(), apps: BTreeMap::new() }
    }

    fn prepare(mut self, manifest: &Path) -> anyhow::Result<Prepared> {
        let models = self.load_models()?;
        let mut table = RouteTable::new();
        for trigger in &self.application.triggers {
            let app = self.app(&trigger.component, &models)?;
            table
                .insert(trigger.route.clone(), app)
                .map_err(|route| anyhow::anyhow!("two triggers answer the route {route} in {}", manifest.display()))?;
        }
        let sample = self.sample(&models);
        Ok(Prepared {
            routing: Routing::Table(table),
            models,
            what: format!("{} ({})", self.application.name, manifest.display()),
            sample,
        })
    }

    /// The models that components are granted and import; `--model` names the
    /// only ones.
    fn load_models(&mut self) -> anyhow::Result<ModelPool> {
        let mut granted: Vec<&str> = Vec::new();
        let mut needed = false;
        let application = self.application;
        for trigger in &application.triggers {
            let component = self.component(&trigger.component)?;
            needed |= self.compiled(&trigger.component, component)?.imports_models();
            for model in &component.ai_models {
                if !granted.contains(&model.as_str()) {
                    granted.push(model);
                }
            }
        }
        let loader = &self.preparing.loader;
        let asked = if needed { loader.asked(&granted) } else { Vec::new() };
        let models = loader.pool(&asked)?;
        let ungranted = models.models().find(|model| !granted.contains(&model.name()));
        match ungranted {
            None => Ok(models),
            Some(model) => {
                let name = model.name();
                let what = format!("no component of the application is granted the model {name}");
                let help = format!("add it to `ai_models` in the manifest: ai_models = [\"{name}\"]");
                Err(Help { what, help }.into())
            }
        }
    }

    /// What a component may open, the default one first, and the names of what
    /// it may not.
    fn granted(&self, component: &Component, models: &ModelPool) -> (Vec<PooledModel>, Vec<String>) {
        let place = |model: &PooledModel| component.ai_models.iter().position(|name| name == model.name());
        let (mut granted, withheld): (Vec<_>, Vec<_>) = models.models().partition(|model| place(model).is_some());
        // The operator's order, if there is one, else the component's own.
        if self.preparing.loader.asked(&[]).is_empty() {
            granted.sort_by_key(place);
        }
        (granted, withheld.into_iter().map(|model| model.name().to_owned()).collect())
    }

    fn component(&self, id: &str) -> anyhow::Result<&'a Component> {
        self.application.component(id).with_context(|| format!("the manifest has no component `{id}`"))
    }

    /// Compiles a component, the first time it is asked for.
    fn compiled(&mut self, id: &str, component: &Component) -> anyhow::Result<Compiled> {
        if let Some(compiled) = self.compiled.get(id) {
            return Ok(compiled.clone());
        }
        let compiled = component::compile(&self.preparing.runtime, id, &component.source, build(component).as_deref())
            .with_context(|| component.place.clone())?;
        self.compiled.insert(id.to_owned(), compiled.clone());
        Ok(compiled)
    }

    fn app(&mut self, id: &str, models: &ModelPool) -> anyhow::Result<App> {
        if let Some(app) = self.apps.get(id) {
            return Ok(app.clone());
        }
        let component = self.component(id)?;
        let renderer = component.renderer.as_deref().map(|renderer| self.renderer(renderer)).transpose()?;
        let (models, withheld) = self.granted(component, models);
        let limits = limits(Limits::default(), component);
        let grant = Grant { models, withheld, renderer, limits, ..Grant::default() };
        let compiled = self.compiled(id, component)?;
        let app = self
            .preparing
            .runtime
            .load(&compiled, grant)
            .map_err(|error| component::explain(error, build(component).as_deref()))
            .with_context(|| component.place.clone())?;
        self.apps.insert(id.to_owned(), app.clone());
        Ok(app)
    }

    fn renderer(&mut self, id: &str) -> anyhow::Result<Arc<Renderer>> {
        if let Some(renderer) = self.renderers.get(id) {
            return Ok(Arc::clone(renderer));
        }
        let component = self.component(id)?;
        let compiled = self.compiled(id, component)?;
        let renderer = self
            .preparing
            .runtime
            .load_renderer(&compiled, limits(Limits::renderer(), component))
            .map_err(|error| component::explain(error, build(component).as_deref()))
            .with_context(|| component.place.clone())?;
        let renderer = Arc::new(renderer);
        self.renderers.insert(id.to_owned(), Arc::clone(&renderer));
        Ok(renderer)
    }

    /// A request that the application should answer. What a handler of one's
    /// own wants to be asked is not known; the OpenAI component's is.
    fn sample(&self, models: &ModelPool) -> Sample {
        let routes = self.application.routes();
        let chat = routes.find("/v1/chat/completions").is_some_and(|(id, _)| id == "openai");
        match models.models().next() {
            Some(model) if chat => Sample::Chat { model: model.name().to_owned() },
            _ => Sample::Get { path: "/".to_owned() },
        }
    }
}

/// The limits in force: what the manifest sets, over `defaults`.
fn limits(defaults: Limits, component: &Component) -> Limits {
    let set = component.limits;
    Limits {
        memory_bytes: set.memory_bytes.unwrap_or(defaults.memory_bytes),
        cpu: set.cpu.unwrap_or(defaults.cpu),
        wall: set.wall.unwrap_or(defaults.wall),
        ..defaults
    }
}

/// The commands that build a component, as one line for a shell.
fn build(component: &Component) -> Option<String> {
    let build = component.build.as_ref()?;
    let commands = build.commands.join(" && ");
    match build.workdir.as_os_str().is_empty() {
        true => Some(commands),
        false => Some(format!("(cd {} && {commands})", build.workdir.display())),
    }
}
