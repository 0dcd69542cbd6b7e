//! Where things are.

use std::path::{Path, PathBuf};

/// The checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the checkout").to_owned()
}

/// The release binary beside this test: `target/PROFILE/nala-host`.
pub fn host_binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    let binary = profile.join("nala-host");
    assert!(binary.is_file(), "{} is missing; run `cargo build --release -p nala-host`", binary.display());
    binary
}

/// The test model.
pub fn model() -> PathBuf {
    let path = std::env::var_os("NALA_TEST_MODEL")
        .map_or_else(|| root().join("models/SmolLM2-135M-Instruct.Q4_1.gguf"), PathBuf::from);
    assert!(path.is_file(), "{} is missing; run `cargo xtask setup`", path.display());
    path
}

/// The interpreter that has the official clients.
pub fn python() -> PathBuf {
    installed(".venv/bin/python")
}

/// A program that set-up puts into the checkout.
pub fn installed(program: &str) -> PathBuf {
    let path = root().join(program);
    assert!(path.is_file(), "{} is missing; run `cargo xtask setup --tests`", path.display());
    path
}

/// A folder that stays between runs, for compiled code.
pub fn cache() -> PathBuf {
    let path = root().join("target/e2e-cache");
    std::fs::create_dir_all(&path).expect("target/ can be written");
    path
}
