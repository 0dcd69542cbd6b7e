//! Why something cannot be had.

use std::io;
use std::path::PathBuf;

/// Why something cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The network, the registry, or what came from it.
    #[error(transparent)]
    Remote(#[from] nala_oci::Error),
    /// It makes no reference.
    #[error(transparent)]
    Reference(#[from] nala_oci::InvalidReference),
    /// It is no address, or has no digest that is one.
    #[error("`{url}` cannot be fetched: {why}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody knows where a package is.
    #[error("it is not known which registry has {0}: write `registry = \"registry.example.com\"` beside it")]
    NoRegistry(String),
    /// A registry says of itself what cannot be used.
    #[error("{registry} says of itself what cannot be used: {why}")]
    Metadata {
        /// Host and port.
        registry: String,
        /// What it says.
        why: String,
    },
    /// None of a package's versions is wanted.
    #[error("no version of {package} fits {wanted}; there are: {known}")]
    NoneFits {
        /// The package, and where it is.
        package: String,
        /// Which versions fit.
        wanted: String,
        /// The versions that there are, the newest first.
        known: String,
    },
    /// The network is not to be used.
    #[error("{0} is not kept on this machine, and nothing is to be fetched: leave --offline out once")]
    Offline(String),
    /// The folder of what is kept cannot be used.
    #[error("{}: {source}; choose another folder by --fetch-dir", path.display())]
    Kept {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system has no room for fetching.
    #[error("fetching cannot be begun: {0}")]
    Begin(io::Error),
}

impl Error {
    pub(crate) fn kept(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Kept { path, source }
    }
}
