//! `cargo xtask test`: every test there is.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cargo::{cargo, has_members, in_workspace};
use crate::process::{run, run_and_read, say};
use crate::readme;
use crate::repo::{Kind, Repo, Workspace};
use crate::setup::{self, Purpose};

/// Arguments of `test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only tests whose name contains this; the README's commands are left out
    filter: Option<String>,
}

/// Runs the verb.
///
/// # Errors
/// Set-up or build failed, or a test did.
pub(crate) fn main(repo: &Repo, args: &Args) -> Result<()> {
    setup::prepare(repo, Purpose::Test)?;
    match &args.filter {
        Some(filter) => cargo_tests(repo, Some(filter)),
        None => everything(repo),
    }
}

/// Builds and runs all tests; the machine is set up already.
///
/// # Errors
/// Something does not build or a test failed.
pub(crate) fn everything(repo: &Repo) -> Result<()> {
    cargo_tests(repo, None)?;
    readme::main(repo)
}

/// Whether the crates of a workspace have tests that run on this machine.
///
/// Guests that only serve as bad examples have none.
pub(crate) fn has_native_tests(workspace: &Workspace) -> bool {
    workspace.kind == Kind::Guests && workspace.folder == Path::new("components")
}

fn cargo_tests(repo: &Repo, filter: Option<&str>) -> Result<()> {
    let mut totals = Totals::default();
    let mut clean = true;
    for workspace in repo.workspaces()? {
        let native = has_native_tests(&workspace) && has_members(repo, &workspace);
        if !native {
            continue;
        }
        let mut command = in_workspace(repo, &workspace);
        // In release every test program would be optimised as a whole, for minutes.
        command.args(["test", "--profile", "native", "--workspace", "--no-fail-fast"]).args(filter);
        say(&format!("tests of {}, on this machine", workspace.name()));
        clean &= run_and_read(&mut command, |line| totals.read(line))?.success();
    }
    crate::build::components(repo)?;
    crate::build::python_tool(repo)?;
    // The end-to-end tests start the real binary. It is built together with
    // the tests, so that both share one compile of wasmtime: alone, it would
    // get other features of the dependencies.
    let mut build = cargo(repo.root());
    build.args(["build", "--release", "--workspace", "--bins", "--tests"]);
    run("building the host and its tests (takes minutes the first time)", &mut build)?;
    let mut command = cargo(repo.root());
    command.args(["test", "--release", "--workspace", "--no-fail-fast"]).args(filter);
    say("tests of the host");
    clean &= run_and_read(&mut command, |line| totals.read(line))?.success();
    say(&format!("total: {}", totals.text()));
    if !clean || totals.failed > 0 {
        bail!("tests failed: the names are above");
    }
    if let (0, Some(filter)) = (totals.passed, filter) {
        bail!("no test has `{filter}` in its name");
    }
    Ok(())
}

/// Sums of the result lines that test programs print.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Test programs.
    programs: u64,
}

impl Totals {
    /// Reads a line like
    /// `test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; …`.
    fn read(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let Some((_, counts)) = rest.split_once(". ") else { return };
        self.programs += 1;
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    fn text(&self) -> String {
        format!(
            "{} tests passed, {} failed, {} ignored, in {} programs",
            self.passed, self.failed, self.ignored, self.programs
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_summed() {
        let mut totals = Totals::default();
        totals.read("running 3 tests");
        totals.read("test a::b ... ok");
        totals.read(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
        );
        totals.read(
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
        );
        assert_eq!(totals, Totals { passed: 5, failed: 1, ignored: 1, programs: 2 });
        assert_eq!(totals.text(), "5 tests passed, 1 failed, 1 ignored, in 2 programs");
    }
}
