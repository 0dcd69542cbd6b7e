//! `nala-host run`: one handler, no manifest.

use std::path::Path;

use nala_models::DEFAULT_MODEL;
use nala_wasm::{App, Grant, LoadError, Source};

use crate::answer::Routing;
use crate::args::RunArgs;
use crate::builtin;
use crate::console::Console;
use crate::ready::Sample;
use crate::serve::{self, Prepared, Preparing, load_error};

/// Runs the verb.
///
/// # Errors
/// Whatever keeps the handler from being served.
pub(crate) fn main(args: &RunArgs, console: Console) -> anyhow::Result<()> {
    let (component, model) = (args.component.clone(), args.serve.model.clone());
    serve::serve(&args.serve, console, move |preparing| prepare(preparing, &component, model.as_deref()))
}

fn prepare(preparing: &Preparing, path: &Path, model: Option<&str>) -> anyhow::Result<Prepared> {
    let name = path.file_stem().map_or_else(|| "app".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let runtime = &preparing.runtime;
    // Checked before a model is loaded, which takes longer.
    let needs_model = runtime.needs_model(&name, Source::File(path)).map_err(|error| load_error(error, None))?;
    let engines = match (needs_model, model) {
        (true, model) => vec![preparing.loader.load(model.unwrap_or(DEFAULT_MODEL))?],
        (false, Some(model)) => {
            preparing.console.warn(&format!("{name} imports no nala:llm, so the model {model} is not loaded"));
            Vec::new()
        }
        (false, None) => Vec::new(),
    };
    let grant = Grant { models: engines.clone(), ..Grant::default() };
    let app = load(preparing, &name, path, grant)?;
    let what = match engines.first() {
        Some(engine) => format!("{name} with {}", engine.name()),
        None => name,
    };
    let sample = if needs_model { Sample::Ask } else { Sample::Get { path: "/".to_owned() } };
    Ok(Prepared { routing: Routing::All(app), engines, what, sample })
}

/// Loads a handler, with the built-in renderer if it wants one.
fn load(preparing: &Preparing, name: &str, path: &Path, mut grant: Grant) -> anyhow::Result<App> {
    let runtime = &preparing.runtime;
    match runtime.load(name, Source::File(path), grant.clone()) {
        Err(LoadError::NotGranted { import, .. }) if import.starts_with("nala:chat/") => {
            grant.renderer = Some(builtin::renderer(runtime)?);
            runtime.load(name, Source::File(path), grant)
        }
        result => result,
    }
    .map_err(|error| load_error(error, None))
}
