//! Files of a component: single ones, copied at load, and folders of the host.
//!
//! What is granted is opened once, when the component is loaded, and a guest
//! reaches nothing but what is below what was opened: wasmtime resolves each path
//! beneath that folder (`openat2` on Linux), so neither `..`, an absolute path nor
//! a symbolic link leads out of it.

mod assets;
mod guard;

use std::io;
use std::path::PathBuf;

use tempfile::TempDir;
use thiserror::Error;
use wasmtime_wasi::filesystem::WasiFilesystemCtx;
use wasmtime_wasi::{FsPerms, WasiCtx};

pub(crate) use guard::add_to_linker;

/// What a component is given of files: nothing, unless it is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Files that are copied when the component is loaded, into a folder that it
    /// has to itself and finds at `/`, read-only.
    pub assets: Vec<Asset>,
    /// The most bytes that the copies may have together.
    pub asset_limit: AssetLimit,
    /// Where the copies are made, in a folder of their own; None: where the system
    /// keeps what is temporary.
    pub scratch: Option<PathBuf>,
    /// Folders of the host that it works in.
    pub folders: Vec<Folder>,
}

/// A file to be copied, or a folder with all the files in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Where it is. A symbolic link is not followed, here or in a folder: what a
    /// manifest names must not lead to a file that nobody named.
    pub host: PathBuf,
    /// Where the guest finds it, below `/`.
    pub guest: String,
}

/// Bytes that the copies of a component's files may have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssetLimit(pub u64);

impl Default for AssetLimit {
    fn default() -> Self {
        Self(256 << 20)
    }
}

/// A folder of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where it is.
    pub host: PathBuf,
    /// Where the guest finds it, from `/`.
    pub guest: String,
    /// What the guest may do there.
    pub access: Access,
}

/// What may be done in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read, and nothing else.
    ReadOnly,
    /// All, without a limit on what is written: that is the file system's to set.
    ReadWrite,
}

/// Why a component cannot be given its files. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The guest could not name it so.
    #[error("`{0}` is no place for a guest's files: name one below `/`, without `.` and `..`")]
    GuestPath(
        /// The place.
        String,
    ),
    /// Two are at the same place.
    #[error("two files or folders are granted at `{0}`: name another place for one")]
    Twice(
        /// The place.
        String,
    ),
    /// It is neither a file nor a folder.
    #[error("{} is {kind}; only files and folders are granted", path.display())]
    Kind {
        /// Where it is.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// There are more than a component may have.
    #[error("the files have more than {limit} bytes together; grant fewer, or a folder")]
    TooLarge {
        /// The most bytes.
        limit: u64,
    },
    /// There are more than a component may have.
    #[error("there are more than {limit} files; grant fewer, or a folder")]
    TooMany {
        /// The most files.
        limit: usize,
    },
    /// The system does not give it.
    #[error("{}: {error}", path.display())]
    Io {
        /// What was asked for.
        path: PathBuf,
        /// The system's word for it.
        error: io::Error,
    },
}

/// Opened files, for all stores of a component.
pub(crate) struct Opened {
    /// What each store begins with.
    pub(crate) filesystem: WasiFilesystemCtx,
    /// The copies, which go when nobody can read them any more.
    _assets: Option<TempDir>,
}

impl Files {
    /// Copies the assets and opens the folders.
    pub(crate) fn open(&self) -> Result<Opened, FilesError> {
        let assets = assets::gather(&self.assets, self.asset_limit, self.scratch.as_deref())?;
        let mut places: Vec<String> = Vec::new();
        // Only a builder makes what this is for.
        let mut wasi = WasiCtx::builder();
        let mut open = |host: PathBuf, guest: String, access: Access| {
            if places.contains(&guest) {
                return Err(FilesError::Twice(guest));
            }
            // A FIFO or a device would be opened, and waited for, otherwise.
            let fail = |error| FilesError::Io { path: host.clone(), error };
            if !std::fs::metadata(&host).map_err(fail)?.is_dir() {
                return Err(fail(io::ErrorKind::NotADirectory.into()));
            }
            let perms = match access {
                Access::ReadOnly => FsPerms::ReadOnly,
                Access::ReadWrite => FsPerms::ReadWrite,
            };
            wasi.preopened_dir(&host, &guest, perms)
                .map_err(|e| e.downcast::<io::Error>().unwrap_or_else(|e| io::Error::other(format!("{e:#}"))))
                .map_err(fail)?;
            places.push(guest);
            Ok(())
        };
        if let Some(assets) = &assets {
            open(assets.path().to_owned(), "/".to_owned(), Access::ReadOnly)?;
        }
        for Folder { host, guest, access } in &self.folders {
            let parts = parts(guest)?;
            open(host.clone(), format!("/{}", parts.join("/")), *access)?;
        }
        Ok(Opened { filesystem: wasi.build().filesystem().clone(), _assets: assets })
    }
}

/// The names that a guest's path is made of.
fn parts(guest: &str) -> Result<Vec<&str>, FilesError> {
    let parts: Vec<&str> = guest.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        [""] => Ok(Vec::new()),
        parts if parts.iter().any(|part| ["", ".", ".."].contains(part) || part.contains('\0')) => {
            Err(FilesError::GuestPath(guest.to_owned()))
        }
        _ => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(host: &std::path::Path, guest: &str) -> Folder {
        Folder { host: host.to_owned(), guest: guest.to_owned(), access: Access::ReadOnly }
    }

    #[test]
    fn places_that_a_guest_could_not_name_are_refused() {
        assert_eq!(parts("/a/b c").unwrap(), ["a", "b c"]);
        assert_eq!(parts("a/b/").unwrap(), ["a", "b"]);
        assert!(parts("/").unwrap().is_empty());
        for guest in ["..", "/a/../b", "a//b", "./a", "a\0"] {
            assert!(matches!(parts(guest), Err(FilesError::GuestPath(_))), "{guest:?}");
        }
    }

    #[test]
    fn a_folder_is_a_folder_and_has_a_place_to_itself() {
        let host = tempfile::tempdir().unwrap();
        let file = host.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let open = |folders: &[Folder]| {
            let files = Files { folders: folders.to_vec(), ..Files::default() };
            files.open().map(drop).map_err(|e| e.to_string())
        };
        open(&[folder(host.path(), "/a"), folder(host.path(), "/b")]).unwrap();
        let twice = open(&[folder(host.path(), "/a"), folder(host.path(), "a/")]).unwrap_err();
        assert!(twice.contains("`/a`"), "{twice}");
        assert!(open(&[folder(&file, "/a")]).unwrap_err().contains("file"));
        assert!(open(&[folder(&host.path().join("none"), "/a")]).unwrap_err().contains("none"));
    }
}
