//! `nala-host build`: runs the build commands of components.

mod command;
mod passing;

use std::path::Path;
use std::time::Instant;

use nala_manifest::{Application, Build};

pub(crate) use self::command::Leash;
use crate::args::BuildArgs;
use crate::console::{Console, Help};

/// A component and how it is built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) id: &'a str,
    pub(crate) build: &'a Build,
}

/// Runs the verb.
///
/// # Errors
/// The manifest is wrong, there is nothing to build, or the first command that fails.
pub(crate) fn main(args: &BuildArgs, console: Console) -> anyhow::Result<()> {
    let application = Application::read(&args.manifest, args.profile.as_deref())?;
    for warning in &application.warnings {
        console.warn(&warning.to_string());
    }
    for work in chosen(&application, &args.component, &args.manifest)? {
        run(work, &Leash::Terminal, console)?;
    }
    Ok(())
}

/// Runs the commands of a component, in order.
///
/// # Errors
/// The folder is not there, or the first command that fails.
pub(crate) fn run(work: Work<'_>, leash: &Leash, console: Console) -> anyhow::Result<()> {
    let Work { id, build } = work;
    let begin = Instant::now();
    refuse_no_folder(id, &build.workdir)?;
    for command in &build.commands {
        console.say(&format!("[{id}] $ {command}"));
        command::run(id, command, &build.workdir, leash, console)?;
    }
    console.say(&format!("Built {id} in {:.1} s", begin.elapsed().as_secs_f64()));
    Ok(())
}

/// The components that are to be built: those that are asked for, or else all that have
/// commands.
fn chosen<'a>(application: &'a Application, asked: &'a [String], manifest: &Path) -> anyhow::Result<Vec<Work<'a>>> {
    let components = application.components.iter();
    let buildable: Vec<Work<'_>> = components
        .filter_map(|(id, component)| Some(Work { id, build: component.build.as_ref()? }))
        .filter(|work| !work.build.commands.is_empty())
        .collect();
    if buildable.is_empty() {
        let what = format!("{} has no component with a build command", manifest.display());
        let help = "write [component.ID.build] with `command = \"cargo build --release --target wasm32-wasip2\"`";
        return Err(Help { what, help: help.to_owned() }.into());
    }
    let known = || buildable.iter().map(|work| work.id).collect::<Vec<_>>().join(", ");
    let wanted = |id: &'a String| match buildable.iter().find(|work| work.id == id) {
        Some(work) => Ok(*work),
        None => {
            let what = match application.component(id) {
                Some(_) => format!("the component `{id}` of {} has no build command", manifest.display()),
                None => format!("there is no component `{id}` in {}", manifest.display()),
            };
            Err(Help { what, help: format!("name one of those that can be built: {}", known()) }.into())
        }
    };
    match asked {
        [] => Ok(buildable),
        asked => asked.iter().map(wanted).collect(),
    }
}

fn refuse_no_folder(id: &str, folder: &Path) -> anyhow::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let what = format!("the component `{id}` is built in {}, and that is no folder", folder.display());
    Err(Help { what, help: "correct `build.workdir` in the manifest".to_owned() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
spin_manifest_version = 2
[application]
name = "x"
[[trigger.http]]
route = "/a"
component = { source = "a.wasm", build.command = "make a" }
[[trigger.http]]
route = "/b"
component = "b"
[component.b]
source = "b.wasm"
build = { command = ["make b", "make c"] }
[[trigger.http]]
route = "/c"
component = "c"
[component.c]
source = "c.wasm"
"#;

    #[test]
    fn all_that_have_commands_are_built_or_those_that_are_asked_for() {
        let application = Application::parse(MANIFEST, Path::new(""), None).unwrap();
        let ids = |asked: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|id| (*id).to_owned()).collect();
            let chosen = chosen(&application, &asked, Path::new("spin.toml"))?;
            anyhow::Ok(chosen.iter().map(|work| work.id.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(ids(&[]).unwrap().len(), 2);
        assert_eq!(ids(&["b"]).unwrap(), ["b"]);
        assert!(ids(&["c"]).unwrap_err().to_string().contains("has no build command"));
        let error = ids(&["b", "d"]).unwrap_err();
        assert!(error.to_string().contains("no component `d`"), "{error}");
        assert!(error.downcast_ref::<Help>().unwrap().help.contains("b"));
    }
}
