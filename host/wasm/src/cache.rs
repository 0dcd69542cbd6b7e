//! Keeps compiled code on disk, so that a component is compiled once.
//!
//! Wasmtime's own cache, which names entries by a digest of the component, the
//! compiler's version and its settings, and so never answers with stale code.

use std::path::PathBuf;

use wasmtime::{Cache, CacheConfig};

/// Where compiled code is kept.
///
/// The folder holds native code that is run without a further check: only the
/// host's own user may write to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CompileCache {
    /// Nowhere: every start compiles.
    #[default]
    Off,
    /// In this folder, which is made if it does not exist.
    Directory(PathBuf),
}

impl CompileCache {
    /// Opens the cache.
    ///
    /// # Errors
    /// If the folder cannot be made or is not usable, with the reason.
    pub(crate) fn open(&self) -> Result<Option<Cache>, (PathBuf, String)> {
        let Self::Directory(directory) = self else { return Ok(None) };
        let fail = |e: &dyn std::fmt::Display| (directory.clone(), e.to_string());
        std::fs::create_dir_all(directory).map_err(|e| fail(&e))?;
        // Wasmtime wants an absolute path.
        let absolute = std::path::absolute(directory).map_err(|e| fail(&e))?;
        let mut config = CacheConfig::new();
        config.with_directory(absolute);
        Cache::new(config).map(Some).map_err(|e| fail(&format!("{e:#}")))
    }
}
