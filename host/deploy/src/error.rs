//! What can go wrong with a state folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::manifest::InvalidManifest;
use crate::name::{AppName, TenantName};
use crate::record::VersionNumber;

/// Why a state folder could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has the folder open.
    #[error(
        "the state folder {} is in use by another process: stop that one, or give this one a folder of its own",
        folder.display()
    )]
    InUse {
        /// The state folder.
        folder: PathBuf,
    },
    /// The folder was made by another version of Nala, or is something else.
    #[error(
        "{} is no state folder that this version can read (its file `format` says `{found}`): \
         give an empty or a new folder, or the version of Nala that made it",
        folder.display()
    )]
    Format {
        /// The state folder.
        folder: PathBuf,
        /// The beginning of what its file `format` says.
        found: String,
    },
    /// A file is not as it was written: somebody changed it, or the disk did.
    #[error(
        "the state folder is damaged at {}: {why}; restore it from a copy, or remove what is damaged and deploy it \
         again",
        path.display()
    )]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused to read or write.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What was written could not be made sure, so that nobody knows what the
    /// disk has. Reading goes on; changes are refused until the folder is opened
    /// again.
    #[error(
        "an earlier change of the state folder could not be made safe on disk, so changes are refused: \
         check the disk, then restart"
    )]
    Unsure,
    /// A component could not be read to its end from whoever sends it.
    #[error("the component could not be read to its end: {0}")]
    Source(io::Error),
    /// A component is larger than it may be.
    #[error("the component has more than {limit} bytes, which is the limit: make it smaller, or raise the limit")]
    ComponentTooLarge {
        /// Bytes that a component may have.
        limit: u64,
    },
    /// A tenant has as many components as it may have.
    #[error(
        "{tenant} would have {wanted} components, and {limit} is the limit: remove applications that are not used, or \
         raise the limit"
    )]
    TooManyComponents {
        /// Whose limit.
        tenant: TenantName,
        /// Components with this one.
        wanted: u64,
        /// Components that it may have.
        limit: u64,
    },
    /// A tenant's components have as many bytes as they may have.
    #[error(
        "the components of {tenant} would have {wanted} bytes, and {limit} is the limit: remove applications that are \
         not used, or raise the limit"
    )]
    TooManyBytes {
        /// Whose limit.
        tenant: TenantName,
        /// Bytes with this component.
        wanted: u64,
        /// Bytes that all of them may have.
        limit: u64,
    },
    /// A tenant has as many applications as it may have.
    #[error("{tenant} has {limit} applications, which is the limit: remove one, or raise the limit")]
    TooManyApplications {
        /// Whose limit.
        tenant: TenantName,
        /// Applications that it may have.
        limit: u64,
    },
    /// What was to be deployed is refused.
    #[error(transparent)]
    Manifest(#[from] InvalidManifest),
    /// A manifest names a component that its tenant has not put here.
    #[error("{tenant} has no component {digest}, which `{component}` names: put it first, then deploy again")]
    NoSuchComponent {
        /// Who deploys.
        tenant: TenantName,
        /// The component's id in the manifest.
        component: String,
        /// What it names.
        digest: Digest,
    },
    /// No component has this digest.
    #[error("there is no component {0}: put it first")]
    NoSuchBlob(Digest),
    /// Nothing of this name is deployed.
    #[error("{tenant} has no application {app}: deploy it first, or look at the list of what is deployed")]
    NoSuchApplication {
        /// Whose application.
        tenant: TenantName,
        /// What it was called.
        app: AppName,
    },
    /// The application has no such version any more, or never had one.
    #[error("{app} of {tenant} has no version {version}: choose one of its history, from {oldest} to {newest}")]
    NoSuchVersion {
        /// Whose application.
        tenant: TenantName,
        /// The application.
        app: AppName,
        /// What was asked for.
        version: VersionNumber,
        /// The oldest that is kept.
        oldest: VersionNumber,
        /// The newest.
        newest: VersionNumber,
    },
}

impl Error {
    /// For `map_err`: the system refused something at `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn damaged(path: &Path, why: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.to_string() }
    }
}
