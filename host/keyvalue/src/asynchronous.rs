//! The same operations for a runtime.

use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};

use crate::cas::{Cas, SwapError};
use crate::change::{Change, Done};
use crate::error::Error;
use crate::store::{Page, Pair, Store, Usage, number};
use crate::writer::Reply;

/// A [`Store`] whose operations are awaited, in a runtime of tokio.
///
/// Writes wait in the queue and hold no thread. Reads run on the runtime's threads
/// for blocking work, so many of a tenant at the same time as
/// [`crate::Config::tenant_reads`] says. A read that is dropped ends by itself; a
/// write that is dropped may still happen.
#[derive(Debug, Clone)]
pub struct AsyncStore {
    store: Store,
    places: Arc<Semaphore>,
}

impl AsyncStore {
    pub(crate) fn new(store: Store) -> Self {
        let places = store.shared.readers.of(store.tenant());
        Self { store, places }
    }

    /// The store whose operations block.
    #[must_use]
    pub fn blocking(&self) -> &Store {
        &self.store
    }

    /// See [`Store::get`].
    ///
    /// # Errors
    /// The same.
    pub async fn get(&self, key: String) -> Result<Option<Vec<u8>>, Error> {
        self.read(move |store| store.get(&key)).await
    }

    /// See [`Store::exists`].
    ///
    /// # Errors
    /// The same.
    pub async fn exists(&self, key: String) -> Result<bool, Error> {
        self.read(move |store| store.exists(&key)).await
    }

    /// See [`Store::set`].
    ///
    /// # Errors
    /// The same.
    pub async fn set(&self, key: String, value: Vec<u8>) -> Result<(), Error> {
        self.write(self.store.set_change(key, value)?).await.map(drop)
    }

    /// See [`Store::delete`].
    ///
    /// # Errors
    /// The same.
    pub async fn delete(&self, key: String) -> Result<(), Error> {
        self.write(self.store.delete_change(key)?).await.map(drop)
    }

    /// See [`Store::increment`].
    ///
    /// # Errors
    /// The same.
    pub async fn increment(&self, key: String, delta: i64) -> Result<i64, Error> {
        number(self.write(self.store.increment_change(key, delta)?).await?)
    }

    /// See [`Store::cas`].
    ///
    /// # Errors
    /// The same.
    pub async fn cas(&self, key: String) -> Result<Cas, Error> {
        self.read(move |store| store.cas(&key)).await
    }

    /// See [`Cas::current`]; the handle is one of this store.
    ///
    /// # Errors
    /// The same.
    pub async fn current(&self, cas: &mut Cas) -> Result<Option<Vec<u8>>, Error> {
        let (store, key) = (cas.store().clone(), Arc::clone(cas.key()));
        let found = self.read(move |_| store.get_versioned(&key)).await?;
        Ok(cas.saw(found))
    }

    /// See [`Cas::swap`]; the handle is one of this store.
    ///
    /// # Errors
    /// The same.
    pub async fn swap(&self, cas: Cas, value: Vec<u8>) -> Result<(), SwapError> {
        let done = self.write(cas.change(value)?).await?;
        cas.outcome(done)
    }

    /// See [`Store::list_keys`].
    ///
    /// # Errors
    /// The same.
    pub async fn list_keys(&self, cursor: Option<String>) -> Result<Page, Error> {
        self.read(move |store| store.list_keys(cursor.as_deref())).await
    }

    /// See [`Store::get_keys`].
    ///
    /// # Errors
    /// The same.
    pub async fn get_keys(&self) -> Result<Vec<String>, Error> {
        self.read(Store::get_keys).await
    }

    /// See [`Store::get_many`].
    ///
    /// # Errors
    /// The same.
    pub async fn get_many(&self, keys: Vec<String>) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.read(move |store| store.get_many(&keys)).await
    }

    /// See [`Store::set_many`].
    ///
    /// # Errors
    /// The same.
    pub async fn set_many(&self, pairs: Vec<Pair>) -> Result<(), Error> {
        self.write(self.store.set_many_change(pairs)?).await.map(drop)
    }

    /// See [`Store::delete_many`].
    ///
    /// # Errors
    /// The same.
    pub async fn delete_many(&self, keys: Vec<String>) -> Result<(), Error> {
        self.write(self.store.delete_many_change(keys)?).await.map(drop)
    }

    /// See [`Store::usage`].
    ///
    /// # Errors
    /// The same.
    pub async fn usage(&self) -> Result<Usage, Error> {
        self.read(Store::usage).await
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // Nobody closes it.
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| Error::Closed)?;
        let store = self.store.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let outcome = read(&store);
            // Kept until the read is over, even if nobody waits for it.
            drop(place);
            outcome
        });
        // It does not panic and is not aborted, but for a runtime that ends.
        reading.await.unwrap_or(Err(Error::Closed))
    }

    async fn write(&self, change: Change) -> Result<Done, Error> {
        let (tell, told) = oneshot::channel();
        // Who waits may have gone.
        let reply: Reply = Box::new(move |outcome| drop(tell.send(outcome)));
        self.store.shared.writes.push(self.store.tenant(), change, reply)?;
        told.await.unwrap_or(Err(Error::Closed))
    }
}
