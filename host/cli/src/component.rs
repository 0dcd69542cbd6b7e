//! Component files: which can be one, and what to say when one cannot be
//! loaded.

use std::fs;
use std::path::Path;

use nala_wasm::{Compiled, LoadError, Runtime, Source};

use crate::console::Help;

/// Reads and compiles a component. `build` is the command that makes it, where
/// one is known.
///
/// # Errors
/// The file is none that a component can be read from, and whatever is wrong
/// with the component.
pub(crate) fn compile(runtime: &Runtime, name: &str, path: &Path, build: Option<&str>) -> anyhow::Result<Compiled> {
    refuse_special(path)?;
    runtime.compile(name, Source::File(path)).map_err(|error| explain(error, build))
}

/// Reads a component without compiling it. `build` is the command that makes it, where
/// one is known.
///
/// # Errors
/// The file is none that a component can be read from.
pub(crate) fn read(path: &Path, build: Option<&str>) -> anyhow::Result<Vec<u8>> {
    refuse_special(path)?;
    nala_wasm::read_component(path).map_err(|error| explain(error, build))
}

/// A device has no end, and opening a pipe waits for whoever writes into it.
/// What is missing, or a folder, has an error of its own when it is read.
///
/// # Errors
/// It is one of these.
pub(crate) fn refuse_special(path: &Path) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() && !meta.is_dir() => Err(Help {
            what: format!("{} is no regular file but a device, a pipe or a socket", path.display()),
            help: "give the path of a component, for example target/wasm32-wasip2/release/app.wasm".to_owned(),
        }
        .into()),
        _ => Ok(()),
    }
}

/// An error of loading a component, with what helps where its own text does not
/// say so.
pub(crate) fn explain(error: LoadError, build: Option<&str>) -> anyhow::Error {
    let missing = matches!(&error, LoadError::Read { error, .. } if error.kind() == std::io::ErrorKind::NotFound);
    match (missing, build) {
        (true, Some(build)) => {
            let what = "a component is not built yet".to_owned();
            anyhow::Error::new(error).context(Help { what, help: format!("build it: {build}") })
        }
        (true, None) => {
            let what = "the component is not there".to_owned();
            let help = "give the path of a component, for example target/wasm32-wasip2/release/app.wasm".to_owned();
            anyhow::Error::new(error).context(Help { what, help })
        }
        _ => anyhow::Error::new(error),
    }
}
