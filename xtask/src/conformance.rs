//! `cargo xtask conformance`: the suites of protocols that have one.

use anyhow::Result;

use crate::cargo::cargo;
use crate::process::run;
use crate::repo::Repo;
use crate::setup::{self, Purpose};

/// Arguments of `conformance`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(clap::Subcommand)]
enum Which {
    /// The Model Context Protocol: its official suite against `components/mcp`, and against the
    /// client of `host/mcp`
    ///
    /// Both sets of requirements, that of 2026-07-28 and that of 2025-11-25.
    Mcp,
}

/// Runs the verb.
///
/// # Errors
/// Set-up or build failed, or a scenario did.
pub(crate) fn main(repo: &Repo, args: &Args) -> Result<()> {
    let test = match args.which {
        Which::Mcp => "conformance_of_the_mcp",
    };
    setup::prepare(repo, Purpose::Test)?;
    crate::build::components(repo)?;
    // As for all tests, so that nothing is compiled for this alone.
    let mut build = cargo(repo.root());
    build.args(["build", "--release", "--workspace", "--bins", "--tests", "--examples"]);
    run("building the host and its tests (takes minutes the first time)", &mut build)?;
    let mut suite = cargo(repo.root());
    suite.args(["test", "--release", "--workspace", "--test", "e2e", "--", test, "--nocapture"]);
    run("the suite", &mut suite)
}
