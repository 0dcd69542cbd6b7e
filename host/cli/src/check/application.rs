//! What is wrong with a manifest, and with what it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nala_manifest::variables::{Missing, environment_name};
use nala_manifest::{Application, Component, Diagnostic, Error};
use nala_models::Store;
use nala_wasm::{Limits, Offer, Prospect, Role, Runtime, RuntimeConfig};

use super::{Finding, hosts, imports};
use crate::application::limits::of_request;
use crate::application::{Chosen, Remote, unserved};
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
        let chosen =
            Chosen { profile: args.profile.clone(), variables: args.variable.clone(), fetch: args.fetch.clone() };
        found.extend(variables_and_hosts(application, &chosen));
        found.extend(unserved(application));
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

/// Fetches the components that are elsewhere, compiles all that can be had, and links them
/// with what they are granted.
fn components(application: &Application, args: &CheckArgs, console: Console) -> anyhow::Result<Vec<Diagnostic>> {
    let (there, mut found) = there(application, &Remote::new(&args.fetch, console)?);
    if there.is_empty() {
        return Ok(found);
    }
    let runtime = Runtime::new(RuntimeConfig { cache: serve::cache(&args.code), ..RuntimeConfig::default() })?;
    let bar = console.bar(there.len() as u64, "Compiling {msg} [{bar:30}] {pos}/{len}");
    for (id, path) in there {
        bar.set_message(id.to_owned());
        if let Some(component) = application.component(id) {
            found.extend(one(&runtime, application, id, component, &path));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(found)
}

/// Where the code of each component is that can be had, and why others cannot. A file that
/// is missing was told with the manifest.
fn there<'a>(application: &'a Application, remote: &Remote) -> (BTreeMap<&'a str, PathBuf>, Vec<Diagnostic>) {
    let (mut there, mut missing) = (BTreeMap::new(), Vec::new());
    for (id, component) in &application.components {
        match component.source.path() {
            Some(path) if path.is_file() => drop(there.insert(id.as_str(), path.to_owned())),
            Some(_) => {}
            None => match remote.fetch(id, component) {
                Ok(path) => there.extend(path.map(|path| (id.as_str(), path))),
                Err(diagnostic) => missing.push(*diagnostic),
            },
        }
    }
    (there, missing)
}

fn one(runtime: &Runtime, application: &Application, id: &str, component: &Component, path: &Path) -> Vec<Diagnostic> {
    let compiled = match component::compile(runtime, id, path, None) {
        Ok(compiled) => compiled,
        Err(error) => return vec![component.source_place.error(error.to_string(), "")],
    };
    let mut found = Vec::new();
    for role in roles(application, id) {
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
    found.extend(imports::empty(id, component, &compiled));
    found
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
