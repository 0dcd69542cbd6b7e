//! What is wrong with a manifest, and with what it names.

use std::collections::BTreeSet;
use std::path::Path;

use nala_manifest::variables::{Missing, environment_name};
use nala_manifest::{Application, Component, Diagnostic, Error, HttpTrigger};
use nala_models::Store;
use nala_wasm::{Compiled, Limits, MAX_COMPONENT_BYTES, Offer, Prospect, Role, Runtime, RuntimeConfig, Source};

use super::{Finding, hosts, imports};
use crate::application::code::Code;
use crate::application::composing::Composing;
use crate::application::dotenv::{self, DotEnv};
use crate::application::limits::of_request;
use crate::application::{Chosen, Remote};
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
    let (mut found, mut unread) = (checked.diagnostics, Vec::new());
    if let Some(application) = &checked.application {
        let chosen =
            Chosen { profile: args.profile.clone(), variables: args.variable.clone(), fetch: args.fetch.clone() };
        let dotenv = DotEnv::beside(path).unwrap_or_else(|error| {
            unread.push(Finding::error(&dotenv::beside(path), error.to_string(), &error.help));
            DotEnv::default()
        });
        found.extend(variables_and_hosts(application, &chosen, &dotenv));
        found.extend(unknown_models(application)?);
        found.extend(components(application, args, console)?);
    }
    found.sort_by_key(|one| (one.line, one.column));
    Ok(unread.into_iter().chain(found.into_iter().map(Finding::from)).collect())
}

fn variables_and_hosts(application: &Application, chosen: &Chosen, dotenv: &DotEnv) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let values = match application.values(&|name| chosen.variable(name).or_else(|| dotenv.variable(name))) {
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
    let callable = hosts::Callable::of(application);
    for component in application.components.values() {
        found.extend(hosts::check(component, values.as_ref(), &callable));
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
    let (fetched, mut found) = Remote::new(&args.fetch, console)?.fetch_all(application);
    let code = Code::Named(fetched);
    let all = application.components.iter();
    let there: Vec<_> = all.filter(|(id, component)| is_there(application, &code, id, component)).collect();
    if there.is_empty() {
        return Ok(found);
    }
    let runtime = Runtime::new(RuntimeConfig { cache: serve::cache(&args.code), ..RuntimeConfig::default() })?;
    let bar = console.bar(there.len() as u64, "Compiling {msg} [{bar:30}] {pos}/{len}");
    for (id, component) in there {
        bar.set_message(id.clone());
        found.extend(one(&runtime, application, &code, id, component));
        bar.inc(1);
    }
    for trigger in application.triggers.iter().filter(|trigger| !trigger.middleware.is_empty()) {
        // What is wrong with the component alone was found before.
        for one in middleware(&runtime, application, &code, trigger) {
            if !found.contains(&one) {
                found.push(one);
            }
        }
    }
    bar.finish_and_clear();
    Ok(found)
}

/// Whether the code of a component and of its dependencies is there; what is not, was told.
fn is_there(application: &Application, code: &Code, id: &str, component: &Component) -> bool {
    let mut dependencies = component.dependencies.iter();
    code.of(id, component).is_some_and(Path::is_file)
        && dependencies
            .all(|(name, dependency)| code.of_dependency(application, id, name, dependency).is_some_and(Path::is_file))
}

fn one(runtime: &Runtime, application: &Application, code: &Code, id: &str, component: &Component) -> Vec<Diagnostic> {
    let compiled = match compiled(runtime, application, code, id, component) {
        Ok(compiled) => compiled,
        Err(diagnostic) => return vec![*diagnostic],
    };
    let (mut found, roles) = (Vec::new(), roles(application, id));
    for role in &roles {
        let role = *role;
        let defaults = match role {
            Role::Handler => Limits::default(),
            Role::Renderer => Limits::renderer(),
            Role::Tools => Limits::tool(),
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

/// What is wrong with a trigger's middleware, where all of it is there.
fn middleware(runtime: &Runtime, application: &Application, code: &Code, trigger: &HttpTrigger) -> Vec<Diagnostic> {
    let middleware = trigger.middleware.iter().enumerate();
    let mut paths = middleware.map(|(n, one)| code.of_middleware(application, &trigger.id, n, one));
    let component = trigger.answer.component().and_then(|id| Some((id, application.component(id)?)));
    let Some((id, component)) = component.filter(|(id, one)| is_there(application, code, id, one)) else {
        return Vec::new();
    };
    if !paths.all(|path| path.is_some_and(Path::is_file)) {
        return Vec::new();
    }
    let composed = main(application, code, id, component)
        .and_then(|main| Composing::new(application, code).behind(trigger, component, &main, MAX_COMPONENT_BYTES));
    let compiled = composed.and_then(|composed| {
        let compiled = runtime.compile(id, Source::Bytes(&composed));
        compiled.map_err(|error| Box::new(component.source_place.error(error.to_string(), "")))
    });
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(diagnostic) => return vec![*diagnostic],
    };
    let prospect = Prospect {
        role: Role::Handler,
        offer: Offer { models: !component.ai_models.is_empty(), renderer: component.renderer.is_some() },
        limits: of_request(Limits::default(), &component.limits),
    };
    let mut found = imports::refused(id, component, runtime.check(&compiled, &prospect));
    // What middleware inherits of the component, the component may not have.
    found.extend(imports::empty(id, component, &compiled));
    found
}

/// The Wasm of a component, with that of its dependencies.
fn main(application: &Application, code: &Code, id: &str, component: &Component) -> Result<Vec<u8>, Box<Diagnostic>> {
    let wrong = |error: anyhow::Error| Box::new(component.source_place.error(error.to_string(), ""));
    let path = code.of(id, component).ok_or_else(|| component.source_place.error("this is no file", ""))?;
    let main = component::read(path, None).map_err(wrong)?;
    match component.dependencies.is_empty() {
        true => Ok(main),
        false => Composing::new(application, code).compose(id, component, &main, MAX_COMPONENT_BYTES),
    }
}

/// A component with its dependencies.
fn compiled(
    runtime: &Runtime,
    application: &Application,
    code: &Code,
    id: &str,
    component: &Component,
) -> Result<Compiled, Box<Diagnostic>> {
    let wrong = |error: anyhow::Error| Box::new(component.source_place.error(error.to_string(), ""));
    let path = code.of(id, component).ok_or_else(|| component.source_place.error("this is no file", ""))?;
    if component.dependencies.is_empty() {
        return component::compile(runtime, id, path, None).map_err(wrong);
    }
    let composed = main(application, code, id, component)?;
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
    if application.tools().contains(id) {
        roles.push(Role::Tools);
    }
    roles
}
