//! Builds the components that the binary carries.
//!
//! They are guests for another target with a workspace of their own, so a
//! second cargo is run for them, in an environment cleaned of everything that
//! the first one says about this build.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";

/// Packages, and the files that Cargo makes of them.
const CARRIED: [(&str, &str); 3] =
    [("openai", "openai.wasm"), ("chat-template", "chat_template.wasm"), ("mcp", "mcp.wasm")];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env("CARGO_MANIFEST_DIR")?);
    let root = here.ancestors().nth(2).ok_or("host/cli does not lie in a checkout")?;
    let components = root.join("components");
    println!("cargo::rerun-if-changed=build.rs");
    // Not the whole of components/: its target folder changes with each build.
    for part in ["Cargo.toml", "Cargo.lock", "sdk", "openai", "agent-loop", "chat-format", "chat-template", "mcp"] {
        println!("cargo::rerun-if-changed={}", components.join(part).display());
    }
    println!("cargo::rerun-if-changed={}", root.join("wit").display());

    if !target_is_installed()? {
        return Err(format!(
            "the components need the target {TARGET}, which is not installed; run: rustup target add {TARGET}"
        )
        .into());
    }
    let out = PathBuf::from(env("OUT_DIR")?);
    let target_dir = components.join("target");
    build(&components, &target_dir)?;
    for (_, file) in CARRIED {
        let from = target_dir.join(TARGET).join("release").join(file);
        std::fs::copy(&from, out.join(file)).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
    }
    Ok(())
}

fn build(components: &Path, target_dir: &Path) -> Result<(), Box<dyn Error>> {
    let mut cargo = clean(Command::new(env("CARGO")?));
    cargo.current_dir(components).args(["build", "--release", "--target", TARGET]);
    for (package, _) in CARRIED {
        cargo.args(["--package", package]);
    }
    cargo.arg("--target-dir").arg(target_dir);
    let output = cargo.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "the components do not build ({}):\n{}\nto see the same outside of this build: cd components && cargo build --release --target {TARGET}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}

/// Whether the compiler has a standard library for the guests.
fn target_is_installed() -> Result<bool, Box<dyn Error>> {
    let mut rustc = clean(Command::new(env("RUSTC")?));
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    let output = rustc.output()?;
    let dir = String::from_utf8(output.stdout)?;
    Ok(output.status.success() && Path::new(dir.trim()).is_dir())
}

/// Takes away what this build's cargo set for this crate and this target.
fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if belongs_to_this_build(&name) {
            command.env_remove(name);
        }
    }
    command
}

fn belongs_to_this_build(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    // Where cargo keeps things and how it reaches the network is the user's.
    let users = ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_TERM_"];
    if users.iter().any(|users| name.starts_with(users)) {
        return false;
    }
    let prefixes = ["CARGO", "RUSTC", "RUSTDOC", "RUSTFLAGS", "DEP_", "CLIPPY_"];
    let whole = ["TARGET", "HOST", "OUT_DIR", "PROFILE", "OPT_LEVEL", "DEBUG", "NUM_JOBS", "LD_LIBRARY_PATH"];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) || whole.contains(&name)
}

fn env(name: &str) -> Result<OsString, String> {
    std::env::var_os(name).ok_or_else(|| format!("cargo did not set {name}"))
}
