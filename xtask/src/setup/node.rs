//! npm's official clients, for tests only.
//!
//! Node.js and npm come with the Python environment, as a wheel: Debian's are older
//! than the clients ask for, and so all machines run the same.

use std::process::Command;

use anyhow::{Context, Result};

use super::python;
use crate::process::run_quietly;
use crate::repo::Repo;

/// Where the package's manifest lies.
const FOLDER: &str = "tests/node";
/// Each version, pinned with its digest.
const LOCK: &str = "tests/node/package-lock.json";
/// A copy of that beside what is installed, written when all of it is there.
/// npm clears the folder before it installs.
const STAMP: &str = "tests/node/node_modules/installed-package-lock.json";

/// Installs the clients; the Python environment has to be there.
pub(super) fn clients(repo: &Repo) -> Result<()> {
    let wanted = std::fs::read_to_string(repo.path(LOCK)).with_context(|| format!("{LOCK} cannot be read"))?;
    let stamp = repo.path(STAMP);
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut npm = Command::new(python::NEWEST.program(repo, "npm"));
    npm.current_dir(repo.path(FOLDER)).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    run_quietly(&format!("installing {LOCK}"), &mut npm)
        .context("the tests' npm packages could not be installed: check the network")?;
    std::fs::write(&stamp, wanted).with_context(|| format!("{STAMP} cannot be written"))
}
