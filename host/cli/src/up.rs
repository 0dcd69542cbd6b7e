//! `nala-host up`: an application, from a manifest or built in.

use nala_models::DEFAULT_MODEL;
use nala_wasm::{Grant, Source};

use crate::answer::{Routing, Site};
use crate::application::{Chosen, Described};
use crate::args::UpArgs;
use crate::builtin;
use crate::console::Console;
use crate::ready::Sample;
use crate::serve::{self, Prepared, Preparing};
use crate::tenancy::Opened;
use crate::wall::{self, Needs};

/// Runs the verb.
///
/// # Errors
/// Whatever keeps the application from being served.
pub(crate) fn main(args: &UpArgs, console: Console) -> anyhow::Result<()> {
    let opened = Opened::read(&args.serve, console)?;
    match args.manifest.clone() {
        Some(manifest) => {
            // Read before anything is bound or loaded.
            let chosen = Chosen { profile: args.profile.clone(), variables: args.variable.clone() };
            let described = Described::read(&manifest, &chosen, console)?;
            wall::raise(&args.serve, &opened, &described.needs(&opened), console)?;
            serve::serve(&args.serve, opened, console, move |preparing| described.load(preparing))
        }
        None => {
            let needs = Needs { read: Vec::new(), write: Vec::new(), reach: opened.reach() };
            wall::raise(&args.serve, &opened, &needs, console)?;
            serve::serve(&args.serve, opened, console, built_in)
        }
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
        routing: Routing::All(Site::new(app)),
        models,
        what: format!("the OpenAI API with {}", names.join(", ")),
        sample: Sample::Chat { model: names.into_iter().next().unwrap_or_default() },
    })
}
