//! Calling Cargo from a program that Cargo runs.

use std::path::Path;
use std::process::Command;

use crate::repo::{Kind, Repo, Workspace};

/// The target that guests are built for.
pub(crate) const GUEST_TARGET: &str = "wasm32-wasip2";

/// Cargo, to be run in `folder`.
///
/// What `cargo xtask` set for this program (its own package's name, version and
/// folder) is taken away, so that a nested Cargo sees what a person's would and
/// no build script runs again because of the difference.
pub(crate) fn cargo(folder: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(folder);
    for (name, _) in std::env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|set| text.starts_with(set)) {
            command.env_remove(&name);
        }
    }
    command
}

/// Cargo in a workspace of the checkout.
pub(crate) fn in_workspace(repo: &Repo, workspace: &Workspace) -> Command {
    cargo(&repo.root().join(&workspace.folder))
}

/// The `--target` that a workspace is built for, if it is not the machine.
pub(crate) fn target_args(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Host | Kind::Fuzz => &[],
        Kind::Guests => &["--target", GUEST_TARGET],
    }
}

/// Whether the workspace has anything to build.
///
/// Cargo calls a workspace without members an error.
pub(crate) fn has_members(repo: &Repo, workspace: &Workspace) -> bool {
    let mut command = in_workspace(repo, workspace);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let Ok(text) = crate::process::capture(&mut command) else { return true };
    serde_json::from_str::<serde_json::Value>(&text)
        .ok()
        .and_then(|metadata| Some(!metadata.get("packages")?.as_array()?.is_empty()))
        .unwrap_or(true)
}
