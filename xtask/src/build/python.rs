//! The tool that runs Python: a component, made of an interpreter and of code that is
//! loaded into it ahead of time.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::GUEST_TARGET;
use crate::process::run_quietly;
use crate::repo::Repo;
use crate::setup;

/// Its code.
const CODE: &str = "components/tools/python";
/// The interfaces that it is made for; the last one has its world.
const INTERFACES: [&str; 2] = ["wit/wasi-io", "wit/nala-tools"];
const WORLD: &str = "nala:tools/tool";

/// Makes the component, beside those that are made of Rust.
///
/// # Errors
/// What makes it cannot be installed, or does not take the code.
pub(crate) fn tool(repo: &Repo) -> Result<()> {
    let folder = repo.path(&format!("components/target/{GUEST_TARGET}/release"));
    let wasm = folder.join("tool_python.wasm");
    // All that it was made of, written when it is there.
    let stamp = folder.join("tool_python.sources");
    let sources = sources(repo)?;
    if wasm.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|made_of| made_of == sources) {
        return Ok(());
    }
    let program = setup::componentizer(repo).context("the Python tool cannot be built")?;
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    // One that is made in part must not be taken for whole.
    if stamp.exists() {
        std::fs::remove_file(&stamp).with_context(|| format!("{} cannot be removed", stamp.display()))?;
    }
    let mut command = Command::new(program);
    for interface in INTERFACES {
        command.arg("--wit-path").arg(repo.path(interface));
    }
    command.args(["--world", WORLD, "componentize", "app", "--python-path"]).arg(repo.path(CODE));
    command.arg("--output").arg(&wasm);
    // Else what happens to be installed for the caller would be looked through as well.
    command.env_remove("VIRTUAL_ENV");
    run_quietly("building the Python tool", &mut command)?;
    std::fs::write(&stamp, sources).with_context(|| format!("{} cannot be written", stamp.display()))
}

/// The names and texts of all files that it is made of.
fn sources(repo: &Repo) -> Result<String> {
    let mut all = String::new();
    for file in repo.files()? {
        if !INTERFACES.iter().chain(&[CODE]).any(|folder| file.starts_with(folder)) {
            continue;
        }
        let text = std::fs::read_to_string(repo.root().join(&file))
            .with_context(|| format!("{} cannot be read", file.display()))?;
        writeln!(all, "{}\n{text}", file.display())?;
    }
    Ok(all)
}
