//! Loads what a manifest describes, each thing once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context;
use nala_engine::{ModelPool, PooledModel};
use nala_manifest::routes::RouteTable;
use nala_manifest::{Answer, Application, Component, HttpTrigger, TriggerRoute};
use nala_wasm::{Compiled, Elsewhere, Grant, Keyed, Limits, Provider, Renderer, SharedLimits, Source, Toolbox};

use super::servers::Named;
use super::{Described, Members, limits};
use crate::answer::{Answering, Routes, Routing, Site};
use crate::builtin;
use crate::component;
use crate::console::Help;
use crate::ready::Sample;
use crate::serve::{Prepared, Preparing};

/// Loads what a manifest describes, each thing once.
pub(crate) struct Loading<'a> {
    preparing: &'a Preparing,
    described: &'a Described,
    application: &'a Application,
    compiled: BTreeMap<String, Compiled>,
    /// What triggers have that have middleware, by their names.
    behind: BTreeMap<String, Compiled>,
    /// What all requests of a component may use, whatever trigger they come by.
    shared_limits: BTreeMap<String, SharedLimits>,
    renderers: BTreeMap<String, Arc<Renderer>>,
    tools: BTreeMap<String, Arc<Provider>>,
    sites: BTreeMap<String, Arc<Site>>,
    /// The components, for each other.
    members: Arc<Members>,
    /// The renderer that is part of this binary.
    builtin: Option<Arc<Renderer>>,
    /// The MCP servers elsewhere, once one of them is needed.
    servers: Option<BTreeMap<String, Arc<Named>>>,
}

impl<'a> Loading<'a> {
    pub(super) fn new(preparing: &'a Preparing, described: &'a Described) -> Self {
        let application = &described.application;
        Self {
            preparing,
            described,
            application,
            compiled: BTreeMap::new(),
            behind: BTreeMap::new(),
            shared_limits: BTreeMap::new(),
            renderers: BTreeMap::new(),
            tools: BTreeMap::new(),
            sites: BTreeMap::new(),
            members: Arc::new(Members::new(described.scratch.clone())),
            builtin: None,
            servers: None,
        }
    }

    pub(super) fn prepare(mut self) -> anyhow::Result<Prepared> {
        let models = self.load_models()?;
        let routing = self.routing(&models)?;
        let sample = self.sample(&models);
        let what = format!("{} ({})", self.application.name, self.described.manifest.display());
        Ok(Prepared { routing, models, what, sample, watcher: None })
    }

    /// A table of who answers which paths.
    pub(super) fn routing(&mut self, models: &ModelPool) -> anyhow::Result<Routing> {
        let mut table = RouteTable::new();
        for (route, answering) in self.routes(models)? {
            table.insert(route, answering).map_err(|route| {
                let manifest = self.described.manifest.display();
                anyhow::anyhow!("two triggers answer the route {route} in {manifest}")
            })?;
        }
        Ok(Routing::Table { routes: table, members: self.members() })
    }

    /// Who answers which paths.
    fn routes(&mut self, models: &ModelPool) -> anyhow::Result<Routes> {
        let mut routes = Vec::new();
        for trigger in &self.application.triggers {
            let answering = match &trigger.answer {
                Answer::Component(id) if has_middleware(trigger) => {
                    // For other components of the application.
                    self.site(id, models)?;
                    let component = self.component(id)?;
                    let compiled = self.compiled_behind(trigger, id, component)?;
                    Answering::Component(self.new_site(id, component, &compiled, models)?)
                }
                Answer::Component(id) => Answering::Component(self.site(id, models)?),
                Answer::Static(response) => Answering::Static(Arc::new(response.clone())),
            };
            // What is private is reached by other components only.
            if let TriggerRoute::Public(route) = &trigger.route {
                routes.push((route.clone(), answering));
            }
        }
        self.members.complete(self.sites.clone(), &routes);
        Ok(routes)
    }

    /// Who answers which paths, where the models are served already.
    pub(crate) fn routes_with_served(&mut self, models: &ModelPool) -> anyhow::Result<Routes> {
        let served: Vec<String> = models.models().map(|model| model.name().to_owned()).collect();
        for component in self.application.components.values() {
            if let Some(name) = component.ai_models.iter().find(|name| !served.contains(name)) {
                let what = format!("{}: the host does not serve the model {name}", component.place);
                return Err(Help { what, help: format!("it serves {}", served.join(", ")) }.into());
            }
        }
        self.routes(models)
    }

    /// The components, to be held for as long as they are served.
    pub(crate) fn members(&self) -> Arc<Members> {
        Arc::clone(&self.members)
    }

    /// The tools that any component may call, with the models that they need.
    pub(crate) fn tools(&mut self) -> anyhow::Result<Vec<Arc<Provider>>> {
        let application = self.application;
        let tools = application.tools();
        let loader = &self.preparing.loader;
        let needs_models = tools.iter().filter_map(|id| application.component(id)).any(|one| !one.ai_models.is_empty());
        let models = if needs_models { self.load_models()? } else { loader.pool(&[])? };
        tools.into_iter().map(|id| self.provider(id, &models)).collect()
    }

    /// What is known of a component, for whoever has deployed it. Middleware runs on its
    /// account and with what it is granted, so what that imports is told with it.
    pub(crate) fn facts(&mut self, id: &str) -> anyhow::Result<serde_json::Value> {
        let component = self.component(id)?;
        let mut imports: BTreeSet<String> = self.compiled(id, component)?.imports().map(str::to_owned).collect();
        let application = self.application;
        let is_its = |trigger: &&HttpTrigger| trigger.answer.component() == Some(id) && has_middleware(trigger);
        for trigger in application.triggers.iter().filter(is_its) {
            imports.extend(self.compiled_behind(trigger, id, component)?.imports().map(str::to_owned));
        }
        let defaults = if application.reachable().contains(id) { Limits::default() } else { Limits::tool() };
        let limits = limits::of_request(defaults, &component.limits);
        let limits: serde_json::Map<_, _> =
            limits.entries().map(|entry| (entry.name.to_owned(), entry.value.into())).collect();
        // Their values are in the manifest, for those who may see them.
        let environment: Vec<&String> = component.environment.keys().collect();
        let variables: Vec<&String> = component.variables.keys().collect();
        let hosts: Vec<String> =
            component.allowed_outbound_hosts.iter().map(|host| host.template.to_string()).collect();
        Ok(serde_json::json!({
            "imports": imports,
            "granted": {
                "models": component.ai_models,
                "tools": component.tools,
                "mcp_servers": component.mcp,
                "telemetry": component.telemetry,
                "key_value_stores": component.key_value_stores,
                "allowed_outbound_hosts": hosts,
                "variables": variables,
                "environment": environment,
            },
            "limits": limits,
        }))
    }

    /// The models that components are granted and import; `--model` names the
    /// only ones.
    fn load_models(&mut self) -> anyhow::Result<ModelPool> {
        let mut granted: Vec<&str> = Vec::new();
        let mut needed = false;
        let application = self.application;
        for id in application.reachable().union(&application.tools()) {
            let component = self.component(id)?;
            needed |= self.compiled(id, component)?.imports_models();
            for model in &component.ai_models {
                if !granted.contains(&model.as_str()) {
                    granted.push(model);
                }
            }
        }
        for trigger in application.triggers.iter().filter(|trigger| has_middleware(trigger)) {
            let Some(id) = trigger.answer.component() else { continue };
            needed |= self.compiled_behind(trigger, id, self.component(id)?)?.imports_models();
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
        let compiled = self.compile(id, component).with_context(|| component.place.clone())?;
        self.compiled.insert(id.to_owned(), compiled.clone());
        Ok(compiled)
    }

    fn compile(&self, id: &str, component: &Component) -> anyhow::Result<Compiled> {
        let (runtime, build) = (&self.preparing.runtime, build(component));
        if component.dependencies.is_empty() {
            return component::compile(runtime, id, self.described.source(id, component)?, build.as_deref());
        }
        let composed = self.described.composed(id, component, build.as_deref())?;
        Ok(runtime.compile(id, Source::Bytes(&composed))?)
    }

    /// The component of a trigger with the trigger's middleware, compiled the first time it
    /// is asked for.
    fn compiled_behind(&mut self, trigger: &HttpTrigger, id: &str, component: &Component) -> anyhow::Result<Compiled> {
        if let Some(compiled) = self.behind.get(&trigger.id) {
            return Ok(compiled.clone());
        }
        let composed = self.described.behind(trigger, component, build(component).as_deref())?;
        let compiled = self.preparing.runtime.compile(id, Source::Bytes(&composed));
        let compiled = compiled.map_err(anyhow::Error::from).with_context(|| component.place.clone())?;
        self.behind.insert(trigger.id.clone(), compiled.clone());
        Ok(compiled)
    }

    fn site(&mut self, id: &str, models: &ModelPool) -> anyhow::Result<Arc<Site>> {
        if let Some(site) = self.sites.get(id) {
            return Ok(Arc::clone(site));
        }
        let component = self.component(id)?;
        let compiled = self.compiled(id, component)?;
        let site = self.new_site(id, component, &compiled, models)?;
        self.sites.insert(id.to_owned(), Arc::clone(&site));
        Ok(site)
    }

    fn new_site(
        &mut self,
        id: &str,
        component: &Component,
        compiled: &Compiled,
        models: &ModelPool,
    ) -> anyhow::Result<Arc<Site>> {
        let grant = self.grant(id, component, Limits::default(), models)?;
        let app = self
            .preparing
            .runtime
            .load(compiled, grant)
            .map_err(|error| component::explain(error, build(component).as_deref()))
            .with_context(|| component.place.clone())?;
        let binder = self.described.binder(id, component, &self.preparing.services, &self.members)?;
        Ok(Site::bound(app, binder))
    }

    /// What a component is given, with the limits that it has where it sets none.
    fn grant(
        &mut self,
        id: &str,
        component: &Component,
        defaults: Limits,
        models: &ModelPool,
    ) -> anyhow::Result<Grant> {
        let renderer = component.renderer.as_ref().map(|renderer| self.renderer(renderer)).transpose()?;
        let tools = self.toolbox(component, models)?;
        let (granted, withheld) = self.granted(component, models);
        let telemetry = self.described.telemetry(component, models, &granted);
        let shared = self.shared_limits.entry(id.to_owned());
        Ok(Grant {
            models: granted,
            withheld,
            renderer,
            tools,
            telemetry,
            limits: limits::of_request(defaults, &component.limits),
            keyed: component.keyed.as_ref().map(|keyed| Keyed {
                argument: keyed.by.clone(),
                idle: keyed.idle,
                most: keyed.most,
            }),
            shared_limits: shared.or_insert_with(|| limits::of_component(&component.limits)).clone(),
            capabilities: self.described.capabilities(component)?,
            application: self.application.name.clone(),
            tenant: None,
        })
    }

    /// The tools that a component may call.
    fn toolbox(&mut self, component: &Component, models: &ModelPool) -> anyhow::Result<Arc<Toolbox>> {
        let tools = component.tools.iter().map(|id| self.provider(id, models));
        let tools = tools.collect::<anyhow::Result<Vec<_>>>()?;
        let toolbox = Toolbox::new(tools).with_context(|| component.place.clone())?;
        Ok(Arc::new(toolbox.with_elsewhere(self.elsewhere(&component.mcp)?)))
    }

    /// Tools of MCP servers elsewhere, by the names of those.
    fn elsewhere(&mut self, names: &[String]) -> anyhow::Result<Vec<Arc<dyn Elsewhere>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let servers = match &self.servers {
            Some(servers) => servers,
            None => {
                let servers = self.described.servers(&self.preparing.services, self.preparing.console)?;
                self.servers.insert(servers)
            }
        };
        let named = names.iter().filter_map(|name| servers.get(name));
        Ok(named.map(|named| Arc::clone(named) as Arc<dyn Elsewhere>).collect())
    }

    /// The tools of MCP servers elsewhere that any component may call.
    pub(crate) fn all_elsewhere(&mut self) -> anyhow::Result<Vec<Arc<dyn Elsewhere>>> {
        let components = self.application.components.values();
        let names: BTreeSet<&String> = components.flat_map(|component| &component.mcp).collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        self.elsewhere(&names)
    }

    /// The tools of a component.
    pub(crate) fn provider(&mut self, id: &str, models: &ModelPool) -> anyhow::Result<Arc<Provider>> {
        if let Some(provider) = self.tools.get(id) {
            return Ok(Arc::clone(provider));
        }
        let component = self.component(id)?;
        let compiled = self.compiled(id, component)?;
        let grant = self.grant(id, component, Limits::tool(), models)?;
        let binder = self.described.binder(id, component, &self.preparing.services, &self.members)?;
        let runtime = &self.preparing.runtime;
        let provider = runtime
            .load_tools(&compiled, grant, Some(Box::new(binder)))
            .map_err(|error| component::explain(error, build(component).as_deref()))
            .with_context(|| component.place.clone())?;
        let provider = Arc::new(provider);
        self.tools.insert(id.to_owned(), Arc::clone(&provider));
        Ok(provider)
    }

    fn renderer(&mut self, renderer: &nala_manifest::Renderer) -> anyhow::Result<Arc<Renderer>> {
        let Some(id) = renderer.component() else {
            if let Some(renderer) = &self.builtin {
                return Ok(Arc::clone(renderer));
            }
            let renderer = builtin::renderer(&self.preparing.runtime)?;
            return Ok(Arc::clone(self.builtin.insert(renderer)));
        };
        if let Some(renderer) = self.renderers.get(id) {
            return Ok(Arc::clone(renderer));
        }
        let component = self.component(id)?;
        let compiled = self.compiled(id, component)?;
        let renderer = self
            .preparing
            .runtime
            .load_renderer(&compiled, limits::of_request(Limits::renderer(), &component.limits))
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
        let chat = routes.find("/v1/chat/completions").is_some_and(|(answer, _)| answer.component() == Some("openai"));
        match models.models().next() {
            Some(model) if chat => Sample::Chat { model: model.name().to_owned() },
            _ if routes.find("/").is_some() => Sample::Get { path: "/".to_owned() },
            _ => Sample::Get { path: self.application.triggers.iter().find_map(path_of).unwrap_or("/".to_owned()) },
        }
    }
}

/// A path that a trigger answers, if it can be told from its route, and has nothing that a
/// shell would read.
fn path_of(trigger: &HttpTrigger) -> Option<String> {
    let TriggerRoute::Public(route) = &trigger.route else { return None };
    let route = route.to_string();
    let path = route.strip_suffix("/...").unwrap_or(&route);
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/-_.".contains(sign);
    path.chars().all(is_plain).then(|| path.to_owned())
}

fn has_middleware(trigger: &HttpTrigger) -> bool {
    !trigger.middleware.is_empty()
}

/// The commands that build a component, as one line for a shell.
fn build(component: &Component) -> Option<String> {
    component.build.as_ref().map(nala_manifest::Build::shell_line)
}
