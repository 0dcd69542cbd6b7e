//! A note beside a file that says its digest was checked, so that it is not
//! read again at every start. It holds for one size and one time of change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::digest::Sha256Digest;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stamp {
    sha256: Sha256Digest,
    size: u64,
    modified_ns: u128,
}

fn path_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".verified.json");
    name.into()
}

fn of(file: &Path, sha256: Sha256Digest) -> io::Result<Stamp> {
    let metadata = fs::metadata(file)?;
    let modified = metadata.modified()?;
    Ok(Stamp {
        sha256,
        size: metadata.len(),
        // A time before 1970 is as good a mark as any other.
        modified_ns: modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()),
    })
}

/// Whether `file` was found to have this digest and has not changed since.
pub(crate) fn holds(file: &Path, sha256: Sha256Digest) -> bool {
    let Ok(text) = fs::read(path_of(file)) else {
        return false;
    };
    // A note that cannot be read only means that the file is checked again.
    match (serde_json::from_slice::<Stamp>(&text), of(file, sha256)) {
        (Ok(noted), Ok(now)) => noted == now,
        _ => false,
    }
}

/// Notes that `file` has this digest. A failure costs a later check only, so
/// it is not reported.
pub(crate) fn put(file: &Path, sha256: Sha256Digest) {
    if let Ok(stamp) = of(file, sha256)
        && let Ok(text) = serde_json::to_vec(&stamp)
    {
        let _ = fs::write(path_of(file), text);
    }
}

/// Forgets what was noted about `file`.
pub(crate) fn remove(file: &Path) {
    let _ = fs::remove_file(path_of(file));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("m.gguf");
        fs::write(&file, b"abc").unwrap();
        let digest = Sha256Digest::of(b"abc");
        assert!(!holds(&file, digest));
        put(&file, digest);
        assert!(holds(&file, digest));
        assert!(!holds(&file, Sha256Digest::of(b"other")));

        let stamp = path_of(&file);
        let good = fs::read(&stamp).unwrap();
        fs::write(&stamp, b"{ nonsense").unwrap();
        assert!(!holds(&file, digest));
        fs::write(&stamp, good).unwrap();
        assert!(holds(&file, digest));

        fs::write(&file, b"abcd").unwrap();
        assert!(!holds(&file, digest));
    }
}
