//! The seam: the few reads this crate does, on the real machine or on a tree
//! kept in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};

/// The longest file that is read; `/proc/cpuinfo` of a machine with a thousand
/// CPUs has about 2 MB.
const MAX_BYTES: u64 = 16 << 20;

/// A tree of files with absolute paths.
pub trait Filesystem {
    /// The text of a file.
    ///
    /// # Errors
    /// It is missing, or this process may not read it.
    fn try_read(&self, path: &str) -> io::Result<String>;

    /// The text of a file; none if it is missing or unreadable.
    fn read(&self, path: &str) -> Option<String> {
        self.try_read(path).ok()
    }

    /// The names in a folder, in any order; empty if there is none.
    fn names(&self, path: &str) -> Vec<String>;
}

/// The machine's own files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFilesystem;

impl Filesystem for RealFilesystem {
    fn try_read(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(path) else {
            return Vec::new();
        };
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }
}

/// Files kept in memory, for tests.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    files: BTreeMap<String, String>,
    /// Those that cannot be read.
    forbidden: BTreeSet<String>,
}

impl MemoryTree {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tree with one more file, at an absolute path.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// The tree with a file that is there and may not be read.
    #[must_use]
    pub fn forbidding(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.files.insert(path.clone(), String::new());
        self.forbidden.insert(path);
        self
    }
}

impl Filesystem for MemoryTree {
    fn try_read(&self, path: &str) -> io::Result<String> {
        if self.forbidden.contains(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let mut names: Vec<String> = self
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(&folder)?.split('/').next())
            .map(str::to_owned)
            .collect();
        names.dedup();
        names
    }
}
