//! `nala-host up`: an application, from a manifest or built in.

use std::path::Path;

use nala_models::DEFAULT_MODEL;
use nala_wasm::{Grant, Source};

use crate::answer::{Routing, Site};
use crate::application::{Chosen, Described};
use crate::args::{SandboxPolicy, ServeArgs, UpArgs};
use crate::builtin;
use crate::classes::{self, Keepers};
use crate::console::{Console, Help};
use crate::ready::Sample;
use crate::serve::{self, Prepared, Preparing};
use crate::tenancy::Opened;
use crate::wall::{self, Needs, Sensors};
use crate::watch::{self, Watcher};

/// Runs the verb.
///
/// # Errors
/// Whatever keeps the application from being served.
pub(crate) fn main(args: &UpArgs, console: Console) -> anyhow::Result<()> {
    let console = classes::console(&args.serve, console);
    let mut opened = Opened::read(&args.serve, console)?;
    let serve = classes::settings(&args.serve, &opened);
    match args.manifest.clone() {
        Some(manifest) => {
            // Read before anything is bound or loaded.
            let chosen = Chosen {
                profile: args.profile.clone(),
                variables: args.variable.clone(),
                fetch: args.serve.fetch.clone(),
            };
            let described = Described::read(&manifest, &chosen, console)?;
            warn_of_unknown(&described, &opened, console);
            if args.watch {
                return watch(args, opened, &manifest, chosen, described, console);
            }
            opened.keepers = Keepers::start(&opened.classes, &opened.withheld)?;
            described.start_keeper()?;
            wall::raise(&serve, &opened, &described.needs(&opened), console)?;
            serve::serve(&serve, opened, console, move |preparing| described.load(preparing))
        }
        None => {
            let needs = Needs { read: Vec::new(), write: Vec::new(), reach: opened.reach(), sensors: Sensors::GivenUp };
            opened.keepers = Keepers::start(&opened.classes, &opened.withheld)?;
            wall::raise(&serve, &opened, &needs, console)?;
            serve::serve(&serve, opened, console, built_in)
        }
    }
}

/// Tells which credentials are for components that are not there.
fn warn_of_unknown(described: &Described, opened: &Opened, console: Console) {
    let application = described.application();
    for (component, origin) in opened.outside.credentials.unknown(|id| application.component(id).is_some()) {
        console.warn(&format!(
            "the manifest has no component `{component}`, which the operator's file has a credential for {origin} for"
        ));
    }
}

/// Serves an application, and what becomes of it.
fn watch(
    args: &UpArgs,
    opened: Opened,
    manifest: &Path,
    chosen: Chosen,
    described: Described,
    console: Console,
) -> anyhow::Result<()> {
    if let Some(class) = opened.classes.first() {
        let what = format!("--watch exchanges what one process serves, and the class {} has its own", class.name);
        let help = "leave --watch out, or use an operator's file without classes".to_owned();
        return Err(Help { what, help }.into());
    }
    let serve = unconfined(&args.serve, console)?;
    wall::raise(&serve, &opened, &described.needs(&opened), console)?;
    watch::build_missing(&described, console)?;
    // Before it is loaded: what changes meanwhile is seen.
    let watcher = Watcher::new(manifest, chosen, described, console);
    let load = move |preparing: &Preparing| {
        let prepared = watcher.described()?.load(preparing)?;
        Ok(Prepared { watcher: Some(watcher), ..prepared })
    };
    serve::serve(&serve, opened, console, load)
}

/// The same settings without the walls, which would be around the builds, too.
fn unconfined(serve: &ServeArgs, console: Console) -> anyhow::Result<ServeArgs> {
    match serve.sandbox {
        SandboxPolicy::Required => Err(Help {
            what: "--watch runs builds, which --sandbox required does not allow".to_owned(),
            help: "use --watch where you write the application, and leave it out where others use it".to_owned(),
        }
        .into()),
        SandboxPolicy::BestEffort => {
            console.warn("--watch runs builds, so the walls around this process stay down, as by --sandbox off.");
            Ok(ServeArgs { sandbox: SandboxPolicy::Off, ..serve.clone() })
        }
        SandboxPolicy::Off => Ok(serve.clone()),
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
        watcher: None,
    })
}
