//! `nala-host run`: one handler, no manifest.

use std::path::PathBuf;

use nala_fetch::Wanted;
use nala_models::DEFAULT_MODEL;
use nala_oci::Reference;
use nala_wasm::Grant;

use crate::answer::{Routing, Site};
use crate::args::{RunArgs, Runnable};
use crate::builtin;
use crate::classes::{self, Keepers};
use crate::component;
use crate::console::{Console, Help};
use crate::fetching;
use crate::ready::Sample;
use crate::serve::{self, Prepared, Preparing};
use crate::tenancy::Opened;
use crate::wall::{self, Needs, Sensors};

/// Runs the verb.
///
/// # Errors
/// Whatever keeps the handler from being served.
pub(crate) fn main(args: &RunArgs, console: Console) -> anyhow::Result<()> {
    // Before anything is bound or loaded.
    let console = classes::console(&args.serve, console);
    let mut opened = Opened::read(&args.serve, console)?;
    let component = match &args.component {
        Runnable::File(path) => {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            Handler { name: stem.unwrap_or_else(|| "app".to_owned()), path: path.clone() }
        }
        Runnable::Remote(reference) => fetch(reference, args, console)?,
    };
    let serve = classes::settings(&args.serve, &opened);
    opened.keepers = Keepers::start(&opened.classes, &opened.withheld)?;
    let read = vec![component.path.clone()];
    let needs = Needs { read, write: Vec::new(), reach: opened.reach(), sensors: Sensors::GivenUp };
    wall::raise(&serve, &opened, &needs, console)?;
    serve::serve(&serve, opened, console, move |preparing| prepare(preparing, component))
}

/// The component that is run.
struct Handler {
    name: String,
    path: PathBuf,
}

/// Has a component here that is in a registry.
fn fetch(reference: &Reference, args: &RunArgs, console: Console) -> anyhow::Result<Handler> {
    let fetcher = fetching::fetcher(&args.serve.fetch)?;
    if reference.digest().is_none() && !args.allow_tag {
        let what = format!("{reference} may be another component at the next start, since a tag can be moved");
        let pinned = match fetcher.pin(reference) {
            Ok(pinned) => format!("run what it is now: nala-host run {pinned}"),
            Err(error) => format!("name its digest, which could not be looked up: {error}"),
        };
        return Err(Help { what, help: format!("{pinned}; or take what it is at each start, by --allow-tag") }.into());
    }
    let wanted = Wanted::Reference(reference.clone());
    let path = fetching::fetch(&fetcher, &wanted, &reference.to_string(), console)?.path;
    Ok(Handler { name: reference.name().to_owned(), path })
}

fn prepare(preparing: &Preparing, component: Handler) -> anyhow::Result<Prepared> {
    let Handler { name, path } = component;
    let runtime = &preparing.runtime;
    // Before a model is loaded, which takes longer.
    let compiled = component::compile(runtime, &name, &path, None)?;
    let needs_model = compiled.imports_models();
    let asked = match needs_model {
        true => preparing.loader.asked(&[DEFAULT_MODEL]),
        false => {
            for model in preparing.loader.asked(&[]) {
                preparing.console.warn(&format!("{name} imports no models, so the model {model} is not loaded"));
            }
            Vec::new()
        }
    };
    let models = preparing.loader.pool(&asked)?;
    let renderer = if compiled.imports_renderer() { Some(builtin::renderer(runtime)?) } else { None };
    let grant = Grant { models: models.models().collect(), renderer, ..Grant::default() };
    let app = runtime.load(&compiled, grant).map_err(|error| component::explain(error, None))?;
    let names: Vec<String> = models.models().map(|model| model.name().to_owned()).collect();
    let what = if names.is_empty() { name } else { format!("{name} with {}", names.join(", ")) };
    let sample = if needs_model { Sample::Ask } else { Sample::Get { path: "/".to_owned() } };
    Ok(Prepared { routing: Routing::All(Site::new(app)), models, what, sample, watcher: None })
}
