//! Python environments: with the official clients, for tests, and with what makes
//! components of Python.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::run_quietly;
use crate::repo::Repo;

/// A virtual environment in the checkout.
pub(super) struct Environment {
    /// Where it lies.
    folder: &'static str,
    /// The versions that are installed, pinned.
    requirements: &'static str,
}

/// The newest clients, what validates their answers, and the Node.js that runs
/// those of npm.
pub(super) const NEWEST: Environment = Environment { folder: ".venv", requirements: "tests/requirements.txt" };

/// The major version of OpenAI's client before the newest, which many still use.
/// Two versions of a package cannot lie in one environment.
const BEFORE: Environment = Environment { folder: ".venv-openai2", requirements: "tests/requirements-openai2.txt" };

/// What makes a component of Python: an interpreter for Wasm, and a program that joins it
/// with the code. It is no part of what tests ask for, and nothing else is to come with it.
const COMPONENTIZER: Environment =
    Environment { folder: ".venv-componentize", requirements: "components/tools/python/requirements.txt" };

/// A copy of the requirements inside an environment, written when all of them are
/// there.
const STAMP: &str = "installed-requirements.txt";

/// The interpreter that sees the newest clients.
pub(crate) fn interpreter(repo: &Repo) -> PathBuf {
    NEWEST.program(repo, "python")
}

/// The program that makes components of Python, installed if it is not yet.
///
/// # Errors
/// There is no Python, or the package cannot be had.
pub(crate) fn componentizer(repo: &Repo) -> Result<PathBuf> {
    COMPONENTIZER.install(repo)?;
    Ok(COMPONENTIZER.program(repo, "componentize-py"))
}

/// Makes the environments and installs the clients.
pub(super) fn clients(repo: &Repo) -> Result<()> {
    [NEWEST, BEFORE].iter().try_for_each(|environment| environment.install(repo))
}

impl Environment {
    /// A program that is installed in it.
    pub(super) fn program(&self, repo: &Repo, name: &str) -> PathBuf {
        repo.path(self.folder).join("bin").join(name)
    }

    fn install(&self, repo: &Repo) -> Result<()> {
        let Self { folder, requirements } = self;
        let wanted = std::fs::read_to_string(repo.path(requirements))
            .with_context(|| format!("{requirements} cannot be read"))?;
        let stamp = repo.path(folder).join(STAMP);
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(repo.path(folder));
        run_quietly(&format!("making {folder}"), &mut venv)
            .context("python3 cannot make an environment: install python3 and python3-venv")?;
        let mut pip = Command::new(self.program(repo, "python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--only-binary", ":all:"])
            .arg("--requirement")
            .arg(repo.path(requirements));
        run_quietly(&format!("installing {requirements}"), &mut pip)
            .with_context(|| format!("the packages of {requirements} could not be installed: check the network"))?;
        std::fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
    }
}
