//! The binary with nothing of the user's settings.

use std::path::Path;
use std::process::{Command, Stdio};

/// The binary with no models, no cache and nothing of the user's settings.
pub(crate) fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nala-host"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NALA_")) {
        command.env_remove(name);
    }
    command
        .current_dir(home)
        .env("HOME", home)
        .env("NALA_MODELS_DIR", home.join("models"))
        .env_remove("XDG_CACHE_HOME")
        .stdin(Stdio::null());
    command
}
