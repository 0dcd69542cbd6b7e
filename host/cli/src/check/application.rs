//! What is wrong with a manifest, and with what it names.

use std::collections::BTreeSet;

use nala_manifest::dependencies::Provider;
use nala_manifest::variables::{Missing, environment_name};
use nala_manifest::{Application, Component, Diagnostic, Error};
use nala_models::Store;
use nala_wasm::{Compiled, Limits, MAX_COMPONENT_BYTES, Offer, Prospect, Role, Runtime, RuntimeConfig, Source};

use super::{Finding, hosts, imports};
use crate::application::composing::Composing;
use crate::application::limits::of_request;
use crate::application::{Chosen, Code, unserved};
use crate::args::CheckArgs;
use crate::component;
use crate::console::Console;
use crate::serve;

/// Finds it.
///
/// # Errors
/// Components cannot be compiled on this machine at all.
pub(super) fn check(args: &CheckArgs, console: Console) -> anyhow::Result<Vec<Finding>> {
    let path = &args.manifest;
    let checked = match Application::check(path, args.profile.as_deref()) {
        Ok(checked) => checked,
        Err(Error::Read { path, source }) => {
            return Ok(vec![Finding::error(&path, source.to_string(), "give the path of a spin.toml")]);
        }
        Err(other) => return Ok(vec![Finding::error(path, other.to_string(), "")]),
    };
    let mut found = checked.diagnostics;
    if let Some(application) = &checked.application {
        let chosen = Chosen { profile: args.profile.clone(), variables: args.variable.clone() };
        found.extend(variables_and_hosts(application, &chosen));
        found.extend(unserved(application, Code::Named));
        found.extend(unknown_models(application)?);
        found.extend(components(application, args, console)?);
    }
    found.sort_by_key(|one| (one.line, one.column));
    Ok(found.into_iter().map(Finding::from).collect())
}

fn variables_and_hosts(application: &Application, chosen: &Chosen) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let values = match application.values(&|name| chosen.variable(name)) {
        Ok(values) => Some(values),
        Err(missing) => {
            found.extend(missing.0.iter().map(|missing| {
                let (name, variable) = (&missing.name, environment_name(&missing.name));
                let why = match missing.why {
                    Missing::NotGiven => "has no value",
                    Missing::NotUnicode => "has a value that is no Unicode",
                };
                let help = format!("give --variable {name}=VALUE, or set {variable}, here and where it is served");
                missing.place.error(format!("the variable `{name}` {why}"), help)
            }));
            None
        }
    };
    let reachable = application.reachable();
    for component in application.components.values() {
        found.extend(hosts::check(component, values.as_ref(), &reachable));
    }
    found
}

/// Models that are not on this machine; a name may be served from another file.
fn unknown_models(application: &Application) -> anyhow::Result<Vec<Diagnostic>> {
    let store = Store::open_default()?;
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for component in application.components.values() {
        for model in &component.ai_models {
            if let Err(error) = store.resolve(model)
                && told.insert(model)
            {
                let help = format!("or serve a file of your own by this name: nala-host up --model {model}=PATH");
                found.push(component.source_place.warning(error.to_string(), help));
            }
        }
    }
    Ok(found)
}

/// Compiles all components that are there, and links them with what they are granted.
fn components(application: &Application, args: &CheckArgs, console: Console) -> anyhow::Result<Vec<Diagnostic>> {
    let there: Vec<_> =
        application.components.iter().filter(|(_, component)| is_there(application, component)).collect();
    if there.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = Runtime::new(RuntimeConfig { cache: serve::cache(&args.code), ..RuntimeConfig::default() })?;
    let bar = console.bar(there.len() as u64, "Compiling {msg} [{bar:30}] {pos}/{len}");
    let mut found = Vec::new();
    for (id, component) in there {
        bar.set_message(id.clone());
        found.extend(one(&runtime, application, id, component));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(found)
}

/// Whether the code of a component and of its dependencies is there; what is not, is
/// found without it.
fn is_there(application: &Application, component: &Component) -> bool {
    let is_file = |component: &Component| component.source.path().is_some_and(std::path::Path::is_file);
    is_file(component)
        && component.dependencies.values().all(|dependency| match &dependency.from {
            Provider::Path(path) => path.is_file(),
            Provider::Component(id) => application.component(id).is_some_and(is_file),
            Provider::Url(_) | Provider::Registry(_) => false,
        })
}

fn one(runtime: &Runtime, application: &Application, id: &str, component: &Component) -> Vec<Diagnostic> {
    let compiled = match compiled(runtime, application, id, component) {
        Ok(compiled) => compiled,
        Err(diagnostic) => return vec![*diagnostic],
    };
    let (mut found, roles) = (Vec::new(), roles(application, id));
    for role in &roles {
        let role = *role;
        let defaults = match role {
            Role::Handler => Limits::default(),
            Role::Renderer => Limits::renderer(),
        };
        let prospect = Prospect {
            role,
            offer: Offer { models: !component.ai_models.is_empty(), renderer: component.renderer.is_some() },
            limits: of_request(defaults, &component.limits),
        };
        found.extend(imports::refused(id, component, runtime.check(&compiled, &prospect)));
    }
    // What is only a dependency has what it inherits.
    if !roles.is_empty() {
        found.extend(imports::empty(id, component, &compiled));
    }
    found
}

/// A component with its dependencies.
fn compiled(
    runtime: &Runtime,
    application: &Application,
    id: &str,
    component: &Component,
) -> Result<Compiled, Box<Diagnostic>> {
    let wrong = |error: anyhow::Error| Box::new(component.source_place.error(error.to_string(), ""));
    let path = component.source.path().ok_or_else(|| component.source_place.error("this is no file", ""))?;
    if component.dependencies.is_empty() {
        return component::compile(runtime, id, path, None).map_err(wrong);
    }
    let main = component::read(path, None).map_err(wrong)?;
    let composed = Composing::named(application).compose(id, component, &main, MAX_COMPONENT_BYTES)?;
    runtime.compile(id, Source::Bytes(&composed)).map_err(|error| wrong(error.into()))
}

/// What a component is loaded as; nothing, if nothing names it.
fn roles(application: &Application, id: &str) -> Vec<Role> {
    let renders = |one: &Component| one.renderer.as_ref().and_then(nala_manifest::Renderer::component) == Some(id);
    let mut roles = Vec::new();
    if application.reachable().contains(id) {
        roles.push(Role::Handler);
    }
    if application.components.values().any(renders) {
        roles.push(Role::Renderer);
    }
    roles
}
