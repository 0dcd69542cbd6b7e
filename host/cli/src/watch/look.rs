//! What files look like, to find out that they have changed without reading them.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What tells that a file is another one. The number of the file changes where it is
/// replaced by renaming, as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    modified: SystemTime,
    bytes: u64,
    number: u64,
}

/// Files, and what each looks like; none is not there.
pub(super) type Looks = BTreeMap<PathBuf, Option<Look>>;

/// What a file looks like now.
pub(super) fn look(path: &Path) -> Option<Look> {
    let meta = std::fs::metadata(path).ok()?;
    Some(Look { modified: meta.modified().ok()?, bytes: meta.len(), number: meta.ino() })
}

/// What all of them look like now.
pub(super) fn looks(paths: impl IntoIterator<Item = PathBuf>) -> Looks {
    paths.into_iter().map(|path| (path.clone(), look(&path))).collect()
}
