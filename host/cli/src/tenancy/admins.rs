//! Who may manage the host.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use nala_tenant::{KeyRing, Rejected, StoredKey};

/// The keys of those who may manage the host. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct AdminKeys(Arc<RwLock<KeyRing<()>>>);

impl AdminKeys {
    pub(crate) fn new(keys: Vec<StoredKey>) -> Self {
        Self(Arc::new(RwLock::new(ring(keys))))
    }

    /// From now on these are all: who has another is refused from the next request on.
    pub(super) fn replace(&self, keys: Vec<StoredKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = ring(keys);
    }

    /// Whether nobody may.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether this is one of the keys.
    ///
    /// # Errors
    /// It is not, or has ended.
    pub(crate) fn check(&self, key: &str, date: SystemTime) -> Result<(), Rejected> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).owner(key, date).copied()
    }
}

fn ring(keys: Vec<StoredKey>) -> KeyRing<()> {
    let mut ring = KeyRing::default();
    for key in keys {
        // One that is there twice is one key.
        let _ = ring.add(key, ());
    }
    ring
}
