//! What rustup has to bring.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{GUEST_TARGET, cargo};
use crate::process::{capture, run};
use crate::repo::Repo;

/// Adds the target that guests are built for.
pub(super) fn wasm_target(repo: &Repo) -> Result<()> {
    let mut rustc = Command::new("rustc");
    rustc.current_dir(repo.root()).args(["--print", "target-libdir", "--target", GUEST_TARGET]);
    let libraries = capture(&mut rustc).context("rustc is asked for its libraries")?;
    if Path::new(&libraries).is_dir() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.current_dir(repo.root()).args(["target", "add", GUEST_TARGET]);
    run(&format!("adding the Rust target {GUEST_TARGET}"), &mut rustup).with_context(|| {
        format!(
            "components are built for {GUEST_TARGET}: install Rust from https://rustup.rs, or \
             the package of your system that has this target's standard library"
        )
    })
}

/// Adds rustfmt and clippy.
pub(super) fn components(repo: &Repo) -> Result<()> {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        let present = cargo(repo.root())
            .args([subcommand, "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if present {
            continue;
        }
        let mut rustup = Command::new("rustup");
        rustup.current_dir(repo.root()).args(["component", "add", component]);
        run(&format!("adding {component}"), &mut rustup)
            .with_context(|| format!("ci needs {component}: install it by rustup"))?;
    }
    Ok(())
}
