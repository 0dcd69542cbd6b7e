//! What is kept of what was fetched.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nala_oci::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// Files by their digests, and notes of what packages stand for.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// A kind of file that has its digest for a name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Component,
    /// What names a component, in a registry.
    Manifest,
}

impl Kind {
    fn place(self, digest: &Digest) -> String {
        match self {
            Self::Component => format!("components/{}.wasm", digest.hex()),
            Self::Manifest => format!("manifests/{}.json", digest.hex()),
        }
    }
}

/// What a package stands for since it was fetched first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    /// The registry, the package and its version, as they were asked for.
    pub(crate) asked: String,
    /// The pinned reference.
    pub(crate) reference: String,
}

impl Cache {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// A file that is there and is what it should be. One that is not is taken away.
    pub(crate) fn find(&self, kind: Kind, digest: &Digest) -> Result<Option<PathBuf>, Error> {
        let path = self.folder.join(kind.place(digest));
        match hash(&path) {
            Ok(found) if found == digest.hex() => Ok(Some(path)),
            Ok(_) => {
                fs::remove_file(&path).map_err(Error::kept(&path))?;
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::kept(path)(error)),
        }
    }

    /// Keeps a file under its digest, which the caller has checked.
    pub(crate) fn keep(&self, kind: Kind, digest: &Digest, bytes: &[u8]) -> Result<PathBuf, Error> {
        self.write(&kind.place(digest), bytes)
    }

    /// What was noted of something that was asked for.
    pub(crate) fn note(&self, asked: &str) -> Option<Note> {
        // What cannot be read only means that it is asked for again.
        let note: Note = serde_json::from_slice(&fs::read(self.folder.join(note_place(asked))).ok()?).ok()?;
        (note.asked == asked).then_some(note)
    }

    pub(crate) fn keep_note(&self, note: &Note) -> Result<(), Error> {
        let text = serde_json::to_vec(note).unwrap_or_default();
        self.write(&note_place(&note.asked), &text).map(drop)
    }

    /// Writes a file that is there as a whole or not at all.
    fn write(&self, place: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.folder.join(place);
        let folder = path.parent().unwrap_or(&self.folder);
        let write = || {
            fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(Error::kept(&path))?;
        Ok(path)
    }
}

fn note_place(asked: &str) -> String {
    format!("packages/{}.json", Digest::of(asked.as_bytes()).hex())
}

fn hash(path: &Path) -> io::Result<String> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() {
        // A pipe has no end, and would be waited for.
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?;
    let mut block = vec![0; 64 * 1024];
    loop {
        let count = io::Read::read(&mut file, &mut block)?;
        match block.get(..count) {
            None | Some([]) => break,
            Some(bytes) => hasher.update(bytes),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("not/there/yet"));
        let digest = Digest::of(b"abc");
        assert_eq!(cache.find(Kind::Component, &digest).unwrap(), None);
        let path = cache.keep(Kind::Component, &digest, b"abc").unwrap();
        assert_eq!(cache.find(Kind::Component, &digest).unwrap().as_ref(), Some(&path));
        assert_eq!(cache.find(Kind::Manifest, &digest).unwrap(), None);
        fs::write(&path, b"abd").unwrap();
        assert_eq!(cache.find(Kind::Component, &digest).unwrap(), None);
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        let error = cache.find(Kind::Component, &digest).unwrap_err().to_string();
        assert!(error.contains("no regular file") && error.contains("--fetch-dir"), "{error}");
    }

    #[test]
    fn a_note_is_that_of_what_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned());
        let note = Note { asked: "r.example a:b@1".to_owned(), reference: "oci://…".to_owned() };
        assert_eq!(cache.note(&note.asked), None);
        cache.keep_note(&note).unwrap();
        assert_eq!(cache.note(&note.asked), Some(note.clone()));
        assert_eq!(cache.note("r.example a:b@2"), None);
        fs::write(folder.path().join(note_place(&note.asked)), "{ nonsense").unwrap();
        assert_eq!(cache.note(&note.asked), None);
    }
}
