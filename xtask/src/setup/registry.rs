//! A registry of OCI artifacts, for tests only.
//!
//! It is the reference implementation, as Debian packages it. The package would
//! start it as a service of the machine, so it is unpacked and not installed.

use anyhow::{Context, Result};

use crate::apt::Shelf;
use crate::process::say;
use crate::repo::Repo;

/// Where it lies; `host/oci/tests/registry` looks there.
const FOLDER: &str = "target/registry";
/// The program below that.
const PROGRAM: &str = "usr/bin/docker-registry";
/// The release of Debian that it is taken from: an old one, since what is built
/// there runs with the libraries of newer ones as well.
const SUITE: &str = "bookworm";

/// Unpacks it, if that was not done before.
pub(super) fn unpack(repo: &Repo) -> Result<()> {
    let folder = repo.path(FOLDER);
    if on_path() || folder.join("root").join(PROGRAM).is_file() {
        return Ok(());
    }
    let advice = "the tests of pulling and pushing need the program docker-registry: install the package \
                  docker-registry of Debian, or `distribution` under that name";
    let versions = Shelf::open(&folder).and_then(|shelf| shelf.unpack(SUITE, &["docker-registry"])).context(advice)?;
    say(&format!("a registry for tests is in {FOLDER}: {}", versions.join(", ")));
    Ok(())
}

/// Whether the machine has one of its own.
fn on_path() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join("docker-registry").is_file())
}
