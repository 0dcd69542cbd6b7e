//! Key-value data: `wasi:keyvalue@0.2.0-draft2`, `fermyon:spin/key-value@2.0.0`
//! and `spin:key-value@3.0.0`, over the stores that a component is granted.
//!
//! A store is opened by its label. One that is not granted is `access-denied`,
//! whether there is one or not. Each open store is an entry of the guest's table,
//! and so one of its handles. While a guest waits for its data it holds its own
//! store, or with `spin:key-value` not even that, and no thread.

mod batch;
mod spin2;
mod spin3;
mod wasi;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nala_keyvalue::{AsyncStore, Cas, Error, GuestError, Page, Store, SwapError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

pub(crate) use batch::fit;

use crate::limits::{self, Limits};
use crate::store::StoreData;

/// What is counted for a number, in bytes: the longest there is.
const NUMBER: usize = 20;

/// Bytes of data that a request may still read and write, and places for its open
/// stores and comparisons.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limit: u64,
    left: Arc<AtomicU64>,
    places: Arc<Semaphore>,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        let limit = limits.key_value_bytes;
        // Half of the handles: where a guest has as many as it may, the next ends it,
        // and there is an error for too many stores.
        let places = Arc::new(Semaphore::new((limits.handles / 2) as usize));
        Self { limit, left: Arc::new(AtomicU64::new(limit)), places }
    }

    fn place(&self) -> Result<Place, Refused> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.map(Arc::new).map_err(|_| Refused::TableFull)
    }

    /// Takes bytes for what is to be written, or was read.
    fn take(&self, bytes: usize) -> Result<(), Refused> {
        let less = |left: u64| left.checked_sub(bytes as u64);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).map(drop).map_err(|left| {
            Refused::Other(format!(
                "{bytes} bytes are more than the {left} of {} that this request may still read and write; raise the \
                 component's `key_value_bytes`, or do less in one request",
                limits::bytes(self.limit)
            ))
        })
    }
}

/// A place for a handle, which is free when all who use the handle are done.
type Place = Arc<OwnedSemaphorePermit>;

/// Why a call did nothing. All three interfaces have these, but for the first,
/// which `wasi:keyvalue` tells as another.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refused {
    /// The guest has as many handles as it may.
    TableFull,
    /// The store is not granted.
    Denied,
    /// No store can be called so.
    NoSuchStore,
    Other(String),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        match error.for_guest() {
            GuestError::NoSuchStore => Self::NoSuchStore,
            GuestError::Other(text) => Self::Other(text),
        }
    }
}

/// An open store.
#[derive(Debug, Clone)]
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct Bucket {
    store: AsyncStore,
    budget: Budget,
    _place: Place,
}

/// A comparison that was begun.
#[derive(Debug, Clone)]
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct CasHandle {
    bucket: Bucket,
    cas: Cas,
    place: Place,
}

impl Bucket {
    async fn get(&self, key: String) -> Result<Option<Vec<u8>>, Refused> {
        self.budget.take(key.len())?;
        let value = self.store.get(key).await?;
        self.budget.take(value.as_ref().map_or(0, Vec::len))?;
        Ok(value)
    }

    async fn set(&self, key: String, value: Vec<u8>) -> Result<(), Refused> {
        self.budget.take(key.len() + value.len())?;
        Ok(self.store.set(key, value).await?)
    }

    async fn delete(&self, key: String) -> Result<(), Refused> {
        self.budget.take(key.len())?;
        Ok(self.store.delete(key).await?)
    }

    async fn exists(&self, key: String) -> Result<bool, Refused> {
        self.budget.take(key.len())?;
        Ok(self.store.exists(key).await?)
    }

    async fn page(&self, cursor: Option<String>) -> Result<Page, Refused> {
        let page = self.store.list_keys(cursor).await?;
        self.budget.take(page.keys.iter().map(String::len).sum())?;
        Ok(page)
    }

    /// All keys, page by page: as many as the budget has room for.
    async fn keys(&self) -> Result<Vec<String>, Refused> {
        let mut page = self.page(None).await?;
        let mut keys = std::mem::take(&mut page.keys);
        while page.cursor.is_some() {
            page = self.page(page.cursor).await?;
            keys.append(&mut page.keys);
        }
        Ok(keys)
    }

    async fn increment(&self, key: String, delta: i64) -> Result<i64, Refused> {
        self.budget.take(key.len() + NUMBER)?;
        Ok(self.store.increment(key, delta).await?)
    }

    /// The keys with their values.
    async fn get_many(&self, keys: Vec<String>) -> Result<Vec<(String, Option<Vec<u8>>)>, Refused> {
        self.budget.take(keys.iter().map(String::len).sum())?;
        let found = self.store.get_many(keys.clone()).await?;
        self.budget.take(found.iter().flatten().map(Vec::len).sum())?;
        Ok(keys.into_iter().zip(found).collect())
    }

    async fn set_many(&self, pairs: Vec<(String, Vec<u8>)>) -> Result<(), Refused> {
        self.budget.take(pairs.iter().map(|(key, value)| key.len() + value.len()).sum())?;
        Ok(self.store.set_many(pairs).await?)
    }

    async fn delete_many(&self, keys: Vec<String>) -> Result<(), Refused> {
        self.budget.take(keys.iter().map(String::len).sum())?;
        Ok(self.store.delete_many(keys).await?)
    }

    async fn cas(self, key: String) -> Result<CasHandle, Refused> {
        let place = self.budget.place()?;
        self.budget.take(key.len())?;
        let cas = self.store.cas(key).await?;
        Ok(CasHandle { bucket: self, cas, place })
    }
}

impl CasHandle {
    async fn current(&mut self) -> Result<Option<Vec<u8>>, Refused> {
        let value = self.bucket.store.current(&mut self.cas).await?;
        self.bucket.budget.take(value.as_ref().map_or(0, Vec::len))?;
        Ok(value)
    }

    /// Swaps, or returns the handle for another try.
    async fn swap(self, value: Vec<u8>) -> Result<Option<Self>, Refused> {
        let Self { bucket, cas, place } = self;
        bucket.budget.take(value.len())?;
        match bucket.store.swap(cas, value).await {
            Ok(()) => Ok(None),
            Err(SwapError::Changed(cas)) => Ok(Some(Self { bucket, cas, place })),
            Err(SwapError::Store(error)) => Err(error.into()),
        }
    }
}

pub(crate) struct KeyValueView<'a> {
    table: &'a mut ResourceTable,
    stores: &'a BTreeMap<String, Store>,
    budget: &'a Budget,
}

impl KeyValueView<'_> {
    fn open(&mut self, label: &str) -> Result<Resource<Bucket>, Refused> {
        let store = self.stores.get(label).ok_or(Refused::Denied)?;
        let place = self.budget.place()?;
        let bucket = Bucket { store: store.to_async(), budget: self.budget.clone(), _place: place };
        self.table.push(bucket).map_err(|_| Refused::TableFull)
    }
}

struct HasKeyValue;

impl HasData for HasKeyValue {
    type Data<'a> = KeyValueView<'a>;
}

fn view(data: &mut StoreData) -> KeyValueView<'_> {
    KeyValueView { table: &mut data.table, stores: &data.granted.key_value, budget: &data.key_value }
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> wasmtime::Result<()> {
    wasi::add_to_linker(linker)?;
    spin2::add_to_linker(linker)?;
    spin3::add_to_linker(linker)
}
