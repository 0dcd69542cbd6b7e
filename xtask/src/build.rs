//! `cargo xtask build`: the components, then the host.

use anyhow::Result;

use crate::cargo::{cargo, has_members, in_workspace, target_args};
use crate::process::run;
use crate::repo::{Kind, Repo};

/// Builds everything that is served.
///
/// # Errors
/// Something does not compile.
pub(crate) fn main(repo: &Repo) -> Result<()> {
    components(repo)?;
    let mut command = cargo(repo.root());
    command.args(["build", "--release", "--package", "nala-host"]);
    run("building the host (llama.cpp and wasmtime take minutes the first time)", &mut command)
}

/// Builds the components that users are served with and learn from.
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
