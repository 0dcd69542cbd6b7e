//! `nala-host run`: one handler, no manifest.

use std::path::Path;

use nala_models::DEFAULT_MODEL;
use nala_wasm::Grant;

use crate::answer::{Routing, Site};
use crate::args::RunArgs;
use crate::builtin;
use crate::classes::{self, Keepers};
use crate::component;
use crate::console::Console;
use crate::ready::Sample;
use crate::serve::{self, Prepared, Preparing};
use crate::tenancy::Opened;
use crate::wall::{self, Connect, Needs};

/// Runs the verb.
///
/// # Errors
/// Whatever keeps the handler from being served.
pub(crate) fn main(args: &RunArgs, console: Console) -> anyhow::Result<()> {
    let component = args.component.clone();
    // Before anything is bound or loaded.
    let console = classes::console(&args.serve, console);
    let mut opened = Opened::read(&args.serve, console)?;
    let serve = classes::settings(&args.serve, &opened);
    opened.keepers = Keepers::start(&opened.classes)?;
    let needs = Needs { read: vec![component.clone()], write: Vec::new(), reach: Connect::None };
    wall::raise(&serve, &opened, &needs, console)?;
    serve::serve(&serve, opened, console, move |preparing| prepare(preparing, &component))
}

fn prepare(preparing: &Preparing, path: &Path) -> anyhow::Result<Prepared> {
    let name = path.file_stem().map_or_else(|| "app".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let runtime = &preparing.runtime;
    // Before a model is loaded, which takes longer.
    let compiled = component::compile(runtime, &name, path, None)?;
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
