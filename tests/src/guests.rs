//! Guests built from their sources, once a run.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

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

/// The tool that runs Python, which Cargo does not build.
pub fn python() -> PathBuf {
    let wasm = paths::root().join("components/target/wasm32-wasip2/release/tool_python.wasm");
    assert!(wasm.is_file(), "{} is missing; run `cargo xtask build`", wasm.display());
    wasm
}

/// A hostile guest: an example of `components/hostile`, or a text file there.
pub fn hostile(name: &str) -> PathBuf {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let target = build_with("components", &["--package", "hostile", "--features", "guests", "--examples"]);
        let folder = target.join("wasm32-wasip2/release/examples");
        for text in std::fs::read_dir(paths::root().join("components/hostile")).expect("the folder can be read") {
            let text = text.expect("an entry").path();
            if text.extension().is_some_and(|ending| ending == "wat") {
                let wasm = wat::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", text.display()));
                let name = text.file_stem().expect("a name").to_string_lossy().replace('-', "_");
                std::fs::write(folder.join(format!("{name}.wasm")), wasm).expect("target/ can be written");
            }
        }
        folder
    });
    let wasm = BUILT.join(format!("{}.wasm", name.replace('-', "_")));
    assert!(wasm.is_file(), "{} was not built", wasm.display());
    wasm
}

fn build(folder: &str) -> PathBuf {
    build_with(folder, &[])
}

fn build_with(folder: &str, what: &[&str]) -> PathBuf {
    let workspace = paths::root().join(folder);
    let target = workspace.join("target");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--release", "--quiet", "--target", "wasm32-wasip2", "--manifest-path"])
        .arg(workspace.join("Cargo.toml"))
        .args(what)
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
