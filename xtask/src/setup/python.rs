//! Python with the official client, for tests only.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::run_quietly;
use crate::repo::Repo;

/// The versions that are installed, pinned.
const REQUIREMENTS: &str = "tests/requirements.txt";
/// A copy of them inside the environment, written when all of them are there.
const STAMP: &str = "installed-requirements.txt";

/// The interpreter that sees the client.
pub(crate) fn interpreter(repo: &Repo) -> PathBuf {
    repo.path(".venv/bin/python")
}

/// Makes the environment and installs the client.
pub(super) fn client(repo: &Repo) -> Result<()> {
    let wanted =
        std::fs::read_to_string(repo.path(REQUIREMENTS)).with_context(|| format!("{REQUIREMENTS} cannot be read"))?;
    let stamp = repo.path(".venv").join(STAMP);
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(repo.path(".venv"));
    run_quietly("making .venv", &mut venv).context("python3 cannot make an environment: install python3-venv")?;
    let mut pip = Command::new(interpreter(repo));
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(repo.path(REQUIREMENTS));
    run_quietly("installing the Python client", &mut pip)
        .context("the tests' Python packages could not be installed: check the network")?;
    std::fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
}
