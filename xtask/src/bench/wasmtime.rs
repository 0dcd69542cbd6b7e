//! The `wasmtime` program that `cargo xtask bench hello` measures beside: compiled as
//! its makers publish it, in the version that the host is built with.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::cargo;
use crate::process::{capture, run, say};
use crate::repo::Repo;

/// The one in `Cargo.lock`.
const VERSION: &str = "48.0.8";

/// Arguments of `bench hello`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Another `wasmtime` program than the one that is compiled
    #[arg(long, value_name = "PROGRAM")]
    peer_command: Option<OsString>,
    /// For the benchmark binary
    #[arg(last = true)]
    rest: Vec<OsString>,
}

impl Args {
    /// What the benchmark itself is to be told.
    pub(super) fn rest(&self) -> &[OsString] {
        &self.rest
    }

    /// The program, which is there when this returns.
    ///
    /// # Errors
    /// It could not be compiled.
    pub(super) fn command(&self, repo: &Repo) -> Result<OsString> {
        self.peer_command.clone().map_or_else(|| compiled(repo), Ok)
    }
}

fn compiled(repo: &Repo) -> Result<OsString> {
    let folder = repo.path("target/peer").join(format!("wasmtime-{VERSION}"));
    let program = folder.join("bin/wasmtime");
    if !capture(Command::new(&program).arg("--version")).is_ok_and(|text| text.contains(VERSION)) {
        say("the peer is compiled once, which takes some minutes");
        let mut command = cargo(repo.root());
        command.args(["install", "wasmtime-cli", "--locked", "--version", VERSION, "--root"]).arg(&folder);
        run("compiling wasmtime", &mut command).context("wasmtime could not be installed: check the network")?;
    }
    Ok(program.into_os_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_has_the_version_of_our_own_runtime() {
        let lock = std::fs::read_to_string(Repo::find().unwrap().path("Cargo.lock")).unwrap();
        assert!(lock.contains(&format!("name = \"wasmtime\"\nversion = \"{VERSION}\"")), "it is another in Cargo.lock");
    }
}
