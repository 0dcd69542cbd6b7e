//! Where tools come from: an application's manifest, or one component.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nala_manifest::operator::Operator;
use nala_tenant::TenantName;
use nala_wasm::{Elsewhere, Grant, Limits, Provider, Runtime, RuntimeConfig, Tool};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use super::{By, Found};
use crate::application::{Chosen, Described};
use crate::args::ToolSourceArgs;
use crate::component;
use crate::console::{Console, Help};
use crate::credentials::Credentials;
use crate::models::Loader;
use crate::serve::{self, Preparing};
use crate::services::{Outside, Services};
use crate::tenancy;

/// What the operator's file says about servers outside. Whoever calls by hand is the
/// operator, and has what is for all tenants and for one called `local`.
///
/// # Errors
/// The file is wrong.
fn outside(file: Option<&Path>) -> anyhow::Result<Outside> {
    let Some(file) = file else { return Ok(Outside::default()) };
    let egress = Operator::read(file)?.egress;
    let networks = tenancy::networks(file, &egress)?;
    let credentials = Credentials::open(file, &egress.credentials, |name| *name == TenantName::local())?;
    Ok(Outside { networks, credentials })
}

/// Tools that are loaded.
pub(crate) struct Tools {
    runtime: Runtime,
    providers: Vec<Arc<Provider>>,
    /// Those of MCP servers elsewhere.
    elsewhere: Vec<Arc<dyn Elsewhere>>,
    /// What is known of each component.
    facts: BTreeMap<String, Value>,
    /// What they were loaded from: the copies of their files go with it.
    _described: Option<Described>,
}

impl Tools {
    /// Loads them.
    ///
    /// # Errors
    /// Whatever keeps them from being called, and that there are none.
    pub(crate) fn load(args: &ToolSourceArgs, console: Console) -> anyhow::Result<Self> {
        let cache = serve::cache(&args.code);
        let runtime = Runtime::new(RuntimeConfig { cache: cache.clone(), ..RuntimeConfig::default() })?;
        if args.from.extension().is_some_and(|extension| extension == "wasm") {
            return Self::of_component(args, &runtime);
        }
        let loader = Loader::new(&args.engine, &args.models, console)?;
        let services =
            Services::open(args.state_dir.as_deref(), outside(args.config.as_deref())?, &mut Registry::default())?;
        let preparing = Preparing { runtime: runtime.clone(), loader, console, cache, services };
        let chosen =
            Chosen { profile: args.profile.clone(), variables: args.variable.clone(), fetch: args.fetch.clone() };
        let described = Described::read(&args.from, &chosen, console)?;
        let mut loading = described.loading(&preparing);
        let providers = loading.tools()?;
        let elsewhere = loading.all_elsewhere()?;
        if providers.is_empty() && elsewhere.is_empty() {
            let what = format!("no component in {} may call tools", args.from.display());
            let help = "name components that export nala:tools/provider: `tools = [\"NAME\"]` under \
                        [component.ID.tool.nala]";
            return Err(Help { what, help: help.to_owned() }.into());
        }
        let facts = |provider: &Arc<Provider>| Ok((provider.name().to_owned(), loading.facts(provider.name())?));
        let facts = providers.iter().map(facts).collect::<anyhow::Result<_>>()?;
        drop(loading);
        Ok(Self { runtime, providers, elsewhere, facts, _described: Some(described) })
    }

    /// Those of a file, which is granted nothing.
    fn of_component(args: &ToolSourceArgs, runtime: &Runtime) -> anyhow::Result<Self> {
        let name = args.from.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let compiled = component::compile(runtime, &name, &args.from, None)?;
        let grant = Grant { limits: Limits::tool(), ..Grant::default() };
        let provider = runtime.load_tools(&compiled, grant, None).map_err(|error| component::explain(error, None))?;
        let facts = json!({ "imports": compiled.imports().collect::<Vec<_>>() });
        Ok(Self {
            runtime: runtime.clone(),
            providers: vec![Arc::new(provider)],
            elsewhere: Vec::new(),
            facts: BTreeMap::from([(name, facts)]),
            _described: None,
        })
    }

    /// What they run in.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The components that have them.
    pub(crate) fn providers(&self) -> &[Arc<Provider>] {
        &self.providers
    }

    /// The MCP servers elsewhere that have more.
    pub(crate) fn elsewhere(&self) -> &[Arc<dyn Elsewhere>] {
        &self.elsewhere
    }

    /// All of them, each with the name of whoever has it.
    pub(super) fn all(&self) -> Vec<(String, Tool)> {
        let own = self
            .providers
            .iter()
            .flat_map(|provider| provider.tools().iter().map(move |tool| (provider.name().to_owned(), tool.clone())));
        let others = self
            .elsewhere
            .iter()
            .flat_map(|elsewhere| elsewhere.tools().into_iter().map(move |tool| (elsewhere.name().to_owned(), tool)));
        own.chain(others).collect()
    }

    /// What is known of a component.
    pub(super) fn facts(&self, component: &str) -> Value {
        self.facts.get(component).cloned().unwrap_or_default()
    }

    /// The tool of a name, or of a component and a name.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub(super) fn find(&self, name: &str) -> anyhow::Result<Found> {
        let (component, tool) = match name.split_once('/') {
            Some((component, tool)) => (Some(component), tool),
            None => (None, name),
        };
        let is_meant = |of: &str| component.is_none_or(|component| component == of);
        let own = self.providers.iter().filter(|provider| is_meant(provider.name())).filter_map(|provider| {
            let found = provider.tools().iter().find(|known| known.name == tool)?.clone();
            Some(Found { by: By::Component(Arc::clone(provider)), tool: found })
        });
        let others =
            self.elsewhere.iter().filter(|elsewhere| is_meant(elsewhere.name())).filter_map(|elsewhere| {
                Some(Found { by: By::Server(Arc::clone(elsewhere)), tool: elsewhere.tool(tool)? })
            });
        let mut found: Vec<Found> = own.chain(others).collect();
        let last = found.pop();
        match (last, found.as_slice()) {
            (Some(one), []) => Ok(one),
            (None, _) => {
                let names: Vec<String> = self.all().into_iter().map(|(_, tool)| tool.name).collect();
                let what = format!("there is no tool {name:?}");
                Err(Help { what, help: format!("there are {}", names.join(", ")) }.into())
            }
            (Some(last), several) => {
                let several = several.iter().chain([&last]);
                let names: Vec<String> = several.map(|found| format!("{}/{tool}", found.by.name())).collect();
                let what = format!("several components have a tool {name:?}");
                Err(Help { what, help: format!("name one of {}", names.join(", ")) }.into())
            }
        }
    }
}
