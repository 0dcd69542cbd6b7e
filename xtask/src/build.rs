//! `cargo xtask build`: the components, then the host.

mod python;

use anyhow::Result;

use crate::cargo::{cargo, has_members, in_workspace, target_args};
use crate::process::run;
use crate::repo::{Kind, Repo};

pub(crate) use python::tool as python_tool;

/// Builds everything.
///
/// # Errors
/// Something does not compile, or what makes the Python tool cannot be had; all else is
/// there then.
pub(crate) fn main(repo: &Repo) -> Result<()> {
    served(repo)?;
    python_tool(repo)
}

/// Builds what `spin.toml` serves.
///
/// # Errors
/// Something does not compile.
pub(crate) fn served(repo: &Repo) -> Result<()> {
    components(repo)?;
    let mut command = cargo(repo.root());
    command.args(["build", "--release", "--package", "nala-host"]);
    run("building the host (llama.cpp and wasmtime take minutes the first time)", &mut command)
}

/// Builds the components that users are served with and learn from, but for the one that is
/// written in Python.
pub(crate) fn components(repo: &Repo) -> Result<()> {
    for workspace in repo.workspaces()? {
        // Other guests belong to tests, which build what they need.
        if workspace.kind != Kind::Guests
            || workspace.folder.as_os_str() != "components"
            || !has_members(repo, &workspace)
        {
            continue;
        }
        let mut command = in_workspace(repo, &workspace);
        command.args(["build", "--release"]).args(target_args(workspace.kind));
        run("building the components", &mut command)?;
    }
    Ok(())
}
