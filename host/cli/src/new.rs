//! `nala-host new`: a handler to begin with.

mod name;
mod sdk;
mod template;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use nala_models::DEFAULT_MODEL;

pub(crate) use self::name::ProjectName;
pub(crate) use self::sdk::Sdk;
pub(crate) use self::template::Template;
use crate::args::NewArgs;
use crate::console::{Console, Help};

/// Runs the verb.
///
/// # Errors
/// Something is there already, cannot be written, or the SDK is not found.
pub(crate) fn main(args: &NewArgs, console: Console) -> anyhow::Result<()> {
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(args.name.as_str()));
    let made = begin(&folder)?;
    let result = sdk(args, &folder).and_then(|sdk| write(&folder, args, sdk.as_deref()));
    if let (Err(_), Made::Anew) = (&result, made) {
        // An empty folder that was not there before; one with files in it stays.
        let _not_empty = fs::remove_dir(&folder);
    }
    result?;
    console.say(&format!("Made {} in {}. Go on there:", args.name.as_str(), folder.display()));
    console.say("  nala-host build");
    if args.template.asks_a_model() {
        console.say(&format!("  nala-host model pull {DEFAULT_MODEL}"));
    }
    console.say("  nala-host up spin.toml --watch");
    Ok(())
}

/// What the manifest of Cargo says about the SDK, if the template needs it.
fn sdk(args: &NewArgs, folder: &Path) -> anyhow::Result<Option<String>> {
    match (args.template.asks_a_model(), &args.sdk) {
        (false, None) => Ok(None),
        (false, Some(_)) => Err(Help {
            what: format!("the template {} does not use the SDK", args.template.name()),
            help: "leave --sdk out, or choose --template rust-handler".to_owned(),
        }
        .into()),
        (true, Some(sdk)) => sdk.dependency(folder).map(Some),
        (true, None) => Sdk::find(folder)?.dependency(folder).map(Some),
    }
}

/// Whether a folder was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Anew,
    Before,
}

/// Makes the folder, or takes an empty one.
fn begin(folder: &Path) -> anyhow::Result<Made> {
    let taken = |what: &str| Help {
        what: format!("{} {what}, and nothing that is there is changed", folder.display()),
        help: "choose another NAME, or another folder by --path".to_owned(),
    };
    match fs::symlink_metadata(folder) {
        Ok(_) if !folder.is_dir() => Err(taken("is there already and is no folder").into()),
        Ok(_) => {
            let mut entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
            match entries.next() {
                None => Ok(Made::Before),
                Some(_) => Err(taken("is there already and is not empty").into()),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
            Ok(Made::Anew)
        }
        Err(error) => Err(anyhow::Error::new(error).context(format!("{} cannot be used", folder.display()))),
    }
}

fn write(folder: &Path, args: &NewArgs, sdk: Option<&str>) -> anyhow::Result<()> {
    for file in args.template.files() {
        let path = folder.join(file.path);
        let fail = || format!("{} cannot be written", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(fail)?;
        }
        let text = file.text(&args.name, sdk.unwrap_or_default());
        // Never what somebody else has put there meanwhile.
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path).with_context(fail)?;
        file.write_all(text.as_bytes()).with_context(fail)?;
    }
    Ok(())
}
