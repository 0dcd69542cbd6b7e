//! Why data is not opened, read or written.

use std::path::PathBuf;
use std::sync::Arc;

use crate::scope::InvalidName;

/// Why the file of all data is not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration asks for what cannot be.
    #[error("the key-value store cannot be opened so: {0}")]
    Config(String),
    /// The folder is missing and cannot be made, or cannot be used.
    #[error("the folder {} for key-value data cannot be used: {source}; give one that can be written to", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process, or another [`crate::KeyValue`] of this one, has it open.
    #[error(
        "{} is in use by another process: end it, or give this one another folder", path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else. It was left as it is.
    #[error("{} holds no key-value data of Nala ({why}): move it away, or give another folder", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What is there instead.
        why: String,
    },
    /// A newer or an older Nala wrote the file.
    #[error("{} is in format {found}, and this version reads {expected}: use the version that wrote it", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The format that is understood.
        expected: u64,
    },
    /// The file is damaged.
    #[error("{} is damaged ({why}): put a copy of it in its place, or move it away to begin without data", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not hold.
        why: String,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}; check the disk and who may write there", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Why an operation did nothing.
///
/// Neither interface has words for most of these; [`Error::for_guest`] says which
/// variant a guest is given:
///
/// | here | `wasi:keyvalue/store.error` | `fermyon:spin/key-value.error`, `spin:key-value` |
/// |---|---|---|
/// | [`Error::NoSuchStore`] | `no-such-store` | `no-such-store` |
/// | all others | `other(TEXT)` | `other(TEXT)` |
///
/// `access-denied` is for who knows what was granted, and `store-table-full` for
/// who holds the handles: the room that binds this crate to guests.
/// In `wasi:keyvalue/atomics`, each becomes `store-error`, and
/// [`crate::SwapError::Changed`] becomes `cas-failed`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No store can have that name.
    #[error("there is no such store: {0}")]
    NoSuchStore(#[from] InvalidName),
    /// The tenant has no room left.
    #[error("the data would take {wanted} bytes more than the {used} of {limit} that are used: delete some")]
    QuotaExceeded {
        /// Bytes that the tenant's data takes.
        used: u64,
        /// Bytes that it may take.
        limit: u64,
        /// Bytes that the write would have added.
        wanted: u64,
    },
    /// The store has as many keys as it may have.
    #[error("the store has {keys} keys of {limit}: delete some")]
    StoreFull {
        /// Keys in the store.
        keys: u64,
        /// Keys it may have.
        limit: u64,
    },
    /// A key is too long.
    #[error("the key has {bytes} bytes: it may have {limit}")]
    KeyTooLong {
        /// Its bytes.
        bytes: usize,
        /// The most it may have.
        limit: usize,
    },
    /// A value is too large.
    #[error("the value has {bytes} bytes: it may have {limit}")]
    ValueTooLarge {
        /// Its bytes.
        bytes: u64,
        /// The most it may have.
        limit: u64,
    },
    /// A batch has too many keys.
    #[error("the batch has {keys} keys: it may have {limit}, so make several")]
    BatchTooLong {
        /// Its keys.
        keys: usize,
        /// The most it may have.
        limit: usize,
    },
    /// A batch writes too many bytes.
    #[error("the batch has {bytes} bytes: it may have {limit}, so make several")]
    BatchTooLarge {
        /// Bytes of its keys and values.
        bytes: u64,
        /// The most it may have.
        limit: u64,
    },
    /// What was asked for is more than may be given at once.
    #[error("the answer would have more than {limit} bytes: ask for less, or for one page after the other")]
    AnswerTooLarge {
        /// The most bytes of an answer.
        limit: u64,
    },
    /// A value that is to be incremented is not a number.
    #[error("the value is no whole number from -2^63 to 2^63-1 in decimal digits, so it cannot be incremented")]
    NotANumber,
    /// A number would leave its range.
    #[error("{value} plus {delta} is beyond what 64 bits hold")]
    Overflow {
        /// The number.
        value: i64,
        /// What was to be added.
        delta: i64,
    },
    /// The tenant has too many writes waiting.
    #[error("too many writes wait ({waiting}): wait for some, then try again")]
    Busy {
        /// How many of the tenant wait.
        waiting: usize,
    },
    /// The file is not as it was written.
    #[error("the data is damaged: {0}")]
    Corrupt(Arc<str>),
    /// The disk is full or failed. A write that ends so may be there or not.
    #[error("the data cannot be read or written: {0}")]
    Io(Arc<str>),
    /// The host is ending.
    #[error("the key-value store is closed")]
    Closed,
}

/// What a guest is given: the variants that both interfaces share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestError {
    /// `no-such-store`
    NoSuchStore,
    /// `other`
    Other(String),
}

impl Error {
    /// What a guest is given. It is told nothing of the host's files.
    #[must_use]
    pub fn for_guest(&self) -> GuestError {
        match self {
            Self::NoSuchStore(_) => GuestError::NoSuchStore,
            Self::Corrupt(_) => GuestError::Other("the data is damaged: tell the operator".to_owned()),
            Self::Io(_) => GuestError::Other("the data cannot be read or written now: try again later".to_owned()),
            other => GuestError::Other(other.to_string()),
        }
    }
}

/// Why a step inside a transaction failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The operation is refused; the transaction is as it was before it.
    Refused(Error),
    /// The file could not be read or written.
    Storage(redb::Error),
    /// The file holds what this crate does not write.
    Malformed(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<redb::StorageError> for Fault {
    fn from(error: redb::StorageError) -> Self {
        Self::Storage(error.into())
    }
}

impl From<redb::TableError> for Fault {
    fn from(error: redb::TableError) -> Self {
        Self::Storage(error.into())
    }
}

impl From<redb::TransactionError> for Fault {
    fn from(error: redb::TransactionError) -> Self {
        Self::Storage(error.into())
    }
}

impl From<redb::CommitError> for Fault {
    fn from(error: redb::CommitError) -> Self {
        Self::Storage(error.into())
    }
}

impl Fault {
    /// Whether the file has to be opened anew before it can be used again.
    pub(crate) fn ends_use(&self) -> bool {
        use redb::Error as E;
        matches!(self, Self::Storage(E::Io(_) | E::Backend(_) | E::PreviousIo | E::DatabaseClosed | E::LockPoisoned(_)))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let ends_use = fault.ends_use();
        match fault {
            Fault::Refused(error) => error,
            Fault::Storage(error) if ends_use => Self::Io(error.to_string().into()),
            Fault::Storage(error) => Self::Corrupt(error.to_string().into()),
            Fault::Malformed(what) => Self::Corrupt(what.into()),
        }
    }
}
