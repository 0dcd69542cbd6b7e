//! Guests built from their sources, once a run.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use crate::paths;

static BUILT: Mutex<Option<HashMap<&'static str, PathBuf>>> = Mutex::new(None);

/// A guest of the workspace at `folder` (relative to the checkout).
pub fn guest(folder: &'static str, package: &'static str) -> PathBuf {
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let built = built.get_or_insert_with(HashMap::new);
    let target = built.entry(folder).or_insert_with(|| build(folder));
    let wasm = target.join(format!("wasm32-wasip2/release/{}.wasm", package.replace('-', "_")));
    assert!(wasm.is_file(), "{} was not built", wasm.display());
    wasm
}

/// `components/examples/ask`, the handler that the README shows.
pub fn ask() -> PathBuf {
    guest("components", "ask")
}

fn build(folder: &str) -> PathBuf {
    let workspace = paths::root().join(folder);
    let target = workspace.join("target");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--release", "--quiet", "--target", "wasm32-wasip2", "--manifest-path"])
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let of_the_outer_build = name.starts_with("CARGO_") && name != "CARGO_HOME" || name.starts_with("RUSTC");
        if of_the_outer_build || name == "RUSTFLAGS" {
            cargo.env_remove(name);
        }
    }
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "building the guests in {folder} failed");
    target
}
