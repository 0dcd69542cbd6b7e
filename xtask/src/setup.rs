//! `cargo xtask setup`: what the build needs, installed once.
//!
//! Each step looks first and does nothing when there is nothing to do, so a
//! set-up that was stopped goes on where it was.

mod debian;
mod model;
mod node;
mod python;
mod registry;
mod rust;

use anyhow::Result;

use crate::process::say;
use crate::repo::Repo;

pub(crate) use python::{componentizer, interpreter};

/// Arguments of `setup`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What the tests need as well: the official clients of Python and npm and what makes components of Python, in environments of their own, a second model, a registry of OCI artifacts
    #[arg(long)]
    tests: bool,
    /// What all checks need as well: rustfmt, clippy and cargo-deny
    #[arg(long)]
    ci: bool,
}

impl Args {
    fn purpose(&self) -> Purpose {
        match (self.ci, self.tests) {
            (true, _) => Purpose::Ci,
            (false, true) => Purpose::Test,
            (false, false) => Purpose::Run,
        }
    }
}

/// What a machine is set up for; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Building and serving
    Run,
    /// Tests as well
    Test,
    /// All checks as well
    Ci,
}

/// Runs the verb.
pub(crate) fn main(repo: &Repo, args: &Args) -> Result<()> {
    prepare(repo, args.purpose())?;
    say("set-up is complete");
    Ok(())
}

/// Does what is not done yet.
///
/// # Errors
/// A step failed; the error says what to do about it.
pub(crate) fn prepare(repo: &Repo, purpose: Purpose) -> Result<()> {
    debian::packages(purpose)?;
    rust::wasm_target(repo)?;
    model::default_model(repo)?;
    if purpose >= Purpose::Test {
        python::clients(repo)?;
        python::componentizer(repo)?;
        node::clients(repo)?;
        model::for_tests(repo)?;
        registry::unpack(repo)?;
    }
    if purpose >= Purpose::Ci {
        rust::components(repo)?;
        crate::deny::install(repo)?;
    }
    Ok(())
}
