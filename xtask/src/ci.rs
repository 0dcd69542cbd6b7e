//! `cargo xtask ci`: everything that must pass before a change is merged.

use anyhow::{Result, bail};

use crate::cargo::{has_members, in_workspace, target_args};
use crate::deny::{self, Advisories};
use crate::process::{run, say};
use crate::repo::{Kind, Repo};
use crate::setup::{self, Purpose};
use crate::summary::{Outcome, Summary};
use crate::{fuzz, test, tidy};

/// How long each fuzz target runs, in seconds: enough to find what is broken at
/// the surface.
const FUZZING: u32 = 5;

/// Runs the verb. The quick checks come first.
///
/// # Errors
/// Anything failed.
pub(crate) fn main(repo: &Repo) -> Result<()> {
    let mut summary = Summary::default();
    summary.step("set-up", || setup::prepare(repo, Purpose::Ci).map(passed));
    if !summary.passed() {
        bail!("set-up failed:\n{}", summary.text());
    }
    summary.step("formatting", || format(repo).map(passed));
    summary.step("tidy", || tidy::main(repo).map(passed));
    summary.step("tests", || test::everything(repo).map(passed));
    summary.step("fuzzing", || fuzz::everything(repo, FUZZING).map(passed));
    summary.step("clippy", || clippy(repo).map(passed));
    summary.step("rustdoc", || rustdoc(repo).map(passed));
    summary.step("licences, bans, sources", || deny::rules(repo).map(passed));
    summary.step("advisories", || {
        Ok(match deny::advisories(repo)? {
            Advisories::Clear => Outcome::Passed,
            Advisories::Unreachable => {
                Outcome::Incomplete("the database of advisories could not be fetched".to_owned())
            }
        })
    });
    say(&format!("summary of ci\n{}", summary.text()));
    if !summary.passed() {
        bail!("ci failed");
    }
    Ok(())
}

fn passed((): ()) -> Outcome {
    Outcome::Passed
}

fn format(repo: &Repo) -> Result<()> {
    for workspace in repo.workspaces()? {
        if has_members(repo, &workspace) {
            let mut command = in_workspace(repo, &workspace);
            run(&format!("formatting of {}", workspace.name()), command.args(["fmt", "--all", "--check"]))?;
        }
    }
    Ok(())
}

fn clippy(repo: &Repo) -> Result<()> {
    for workspace in repo.workspaces()? {
        if !has_members(repo, &workspace) {
            continue;
        }
        let mut command = in_workspace(repo, &workspace);
        command.args(["clippy", "--release", "--workspace"]);
        // A test binary for wasm32-wasip2 cannot be run here; the native tests
        // of the components are linted in their own right below.
        match workspace.kind {
            Kind::Host | Kind::Fuzz => command.arg("--all-targets"),
            Kind::Guests => command.args(target_args(workspace.kind)),
        };
        command.args(["--", "--deny", "warnings"]);
        run(&format!("clippy on {}", workspace.name()), &mut command)?;
        if test::has_native_tests(&workspace) {
            let mut command = in_workspace(repo, &workspace);
            command.args(["clippy", "--release", "--workspace", "--all-targets"]);
            command.args(["--", "--deny", "warnings"]);
            run(&format!("clippy on the native tests of {}", workspace.name()), &mut command)?;
        }
    }
    Ok(())
}

fn rustdoc(repo: &Repo) -> Result<()> {
    for workspace in repo.workspaces()? {
        // The fuzz targets are programs of a few lines.
        if workspace.kind == Kind::Fuzz || !has_members(repo, &workspace) {
            continue;
        }
        let mut command = in_workspace(repo, &workspace);
        command
            .args(["doc", "--release", "--workspace", "--no-deps", "--document-private-items"])
            .args(target_args(workspace.kind))
            .env("RUSTDOCFLAGS", "--deny warnings");
        run(&format!("rustdoc of {}", workspace.name()), &mut command)?;
    }
    Ok(())
}
