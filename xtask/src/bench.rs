//! `cargo xtask bench`: the benchmarks of the tests crate.

use std::ffi::OsString;

use anyhow::Result;

use crate::cargo::cargo;
use crate::process::{run, say};
use crate::repo::Repo;
use crate::setup::{self, Purpose};

/// Arguments of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// For the benchmark binary
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// Runs the verb.
///
/// # Errors
/// Set-up, build or benchmark failed.
pub(crate) fn main(repo: &Repo, args: &Args) -> Result<()> {
    setup::prepare(repo, Purpose::Run)?;
    crate::build::main(repo)?;
    say("the machine should do nothing else now: llama.cpp's threads spin while they wait");
    let mut command = cargo(repo.root());
    // The whole workspace, as in the build before: one package alone would get
    // other features of its dependencies, and so another compile of them.
    command.args(["bench", "--workspace", "--bench", "serving", "--"]).args(&args.rest);
    run("benchmarks", &mut command)
}
