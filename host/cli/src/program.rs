//! This program, to be started once more.

use std::path::PathBuf;

use anyhow::Context;

/// Where it is.
///
/// # Errors
/// The system does not tell.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("the path of this program is not known")
}
