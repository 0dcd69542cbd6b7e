//! Comparing and swapping (`wasi:keyvalue/atomics.cas`).

use std::sync::Arc;

use crate::change::{Change, Done};
use crate::error::Error;
use crate::store::Store;

/// A swap that happens if the key was not written since.
///
/// What is compared is the version of the key and not its value: a value that was
/// changed and changed back is another one. A handle holds no value, so many cost
/// little.
#[derive(Debug, Clone)]
pub struct Cas {
    store: Store,
    key: Arc<str>,
    /// None: the key was not there.
    version: Option<u64>,
}

/// Why a swap did not happen.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// The key was written since (`cas-failed`). The handle knows its latest
    /// version, for another try.
    #[error("the value was changed by somebody else: read it again and swap with the new handle")]
    Changed(Cas),
    /// `store-error`
    #[error(transparent)]
    Store(#[from] Error),
}

impl Cas {
    pub(crate) fn new(store: Store, key: String, version: Option<u64>) -> Self {
        Self { store, key: key.into(), version }
    }

    /// The value of the key, which is then the one to be swapped.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn current(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let found = self.store.get_versioned(&self.key)?;
        Ok(self.saw(found))
    }

    /// Puts `value` in the place of the one that was there when the handle was made
    /// or [`Cas::current`] was called last. None counts as one.
    ///
    /// # Errors
    /// [`SwapError::Changed`], and those of [`Store::set`].
    pub fn swap(self, value: Vec<u8>) -> Result<(), SwapError> {
        let done = self.store.write(self.change(value)?)?;
        self.outcome(done)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }

    pub(crate) fn saw(&mut self, found: Option<(u64, Vec<u8>)>) -> Option<Vec<u8>> {
        let (version, value) = found.unzip();
        self.version = version;
        value
    }

    pub(crate) fn change(&self, value: Vec<u8>) -> Result<Change, Error> {
        self.store.swap_change(self.key.to_string(), self.version, value)
    }

    pub(crate) fn outcome(self, done: Done) -> Result<(), SwapError> {
        match done {
            Done::Stale(version) => Err(SwapError::Changed(Self { version, ..self })),
            _ => Ok(()),
        }
    }
}
