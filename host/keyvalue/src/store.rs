//! One store of an application, with operations that block.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use redb::ReadTransaction;

use crate::asynchronous::AsyncStore;
use crate::cas::Cas;
use crate::change::{Change, Done};
use crate::config::Limits;
use crate::error::{Error, Fault};
use crate::keyvalue::Shared;
use crate::layout::{ENTRIES, STORES, decode};
use crate::scope::Place;

/// A store: keys and their values. Clones are handles on the same.
///
/// A key is any text of at most [`Limits::key_bytes`], the empty one included; a
/// value is any bytes. Reads see every write that was acknowledged before they
/// began.
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
    place: Arc<Place>,
}

/// A part of the keys of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Some keys, in the order of their bytes.
    pub keys: Vec<String>,
    /// Where the next page begins. None: there are no more keys.
    pub cursor: Option<String>,
}

/// A key and its value.
pub type Pair = (String, Vec<u8>);

/// What a store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Its keys.
    pub keys: u64,
    /// Its bytes, as [`Limits::tenant_bytes`] counts them.
    pub bytes: u64,
}

impl Store {
    pub(crate) fn new(shared: Arc<Shared>, place: Place) -> Self {
        Self { shared, place: Arc::new(place) }
    }

    /// The same store, whose tenant may store so many bytes in all, in place of
    /// [`Limits::tenant_bytes`].
    #[must_use]
    pub fn within(self, tenant_bytes: u64) -> Self {
        let place = Place { tenant_bytes: Some(tenant_bytes), ..(*self.place).clone() };
        Self { place: Arc::new(place), ..self }
    }

    /// The same store for a runtime: what blocks here is awaited there.
    #[must_use]
    pub fn to_async(&self) -> AsyncStore {
        AsyncStore::new(self.clone())
    }

    /// The value of a key, if there is one (`get` of both interfaces).
    ///
    /// # Errors
    /// The key is too long; the file cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.get_versioned(key)?.map(|(_, value)| value))
    }

    /// Whether there is a key (`exists` of both interfaces).
    ///
    /// # Errors
    /// The key is too long; the file cannot be read.
    pub fn exists(&self, key: &str) -> Result<bool, Error> {
        self.check_key(key)?;
        let key = self.place.store_prefix.key(key);
        self.shared.database.read(|transaction| Ok(transaction.open_table(ENTRIES)?.get(key.as_slice())?.is_some()))
    }

    /// Sets the value of a key (`set` of both interfaces).
    ///
    /// # Errors
    /// The key or the value is too long, the tenant or the store has no room, the
    /// tenant has too many writes waiting, or the file cannot be written.
    pub fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.write(self.set_change(key.to_owned(), value.to_vec())?).map(drop)
    }

    /// Deletes a key, if it is there (`delete` of both interfaces).
    ///
    /// # Errors
    /// The key is too long, the tenant has too many writes waiting, or the file
    /// cannot be written.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        self.write(self.delete_change(key.to_owned())?).map(drop)
    }

    /// Adds to a number and returns the sum (`wasi:keyvalue/atomics.increment`).
    /// Where there is no key, it is set to `delta`.
    ///
    /// The interface does not say what a number looks like in [`Store::get`]. It is
    /// in decimal digits, as in wasmtime's own implementation and in Redis.
    ///
    /// # Errors
    /// [`Error::NotANumber`] and [`Error::Overflow`], and those of [`Store::set`].
    pub fn increment(&self, key: &str, delta: i64) -> Result<i64, Error> {
        number(self.write(self.increment_change(key.to_owned(), delta)?)?)
    }

    /// Begins to compare and swap the value of a key
    /// (`wasi:keyvalue/atomics.cas.new`).
    ///
    /// # Errors
    /// The key is too long; the file cannot be read.
    pub fn cas(&self, key: &str) -> Result<Cas, Error> {
        let version = self.get_versioned(key)?.map(|(version, _)| version);
        Ok(Cas::new(self.clone(), key.to_owned(), version))
    }

    /// The next keys after `cursor`, which is one of an earlier [`Page`]
    /// (`wasi:keyvalue/store.list-keys`). A key that is there from the first page to
    /// the last is on exactly one.
    ///
    /// A cursor is the last key of its page, and any text is taken for one: it leads
    /// to nothing that belongs to another store.
    ///
    /// # Errors
    /// The file cannot be read; the cursor is longer than a key.
    pub fn list_keys(&self, cursor: Option<&str>) -> Result<Page, Error> {
        self.check_key(cursor.unwrap_or_default())?;
        let limits = &self.shared.limits;
        self.shared.database.read(|transaction| self.page(transaction, cursor, limits.page_keys))
    }

    /// All keys (`get-keys` of Spin).
    ///
    /// # Errors
    /// [`Error::AnswerTooLarge`] where they have more bytes than may be listed at
    /// once; the file cannot be read.
    pub fn get_keys(&self) -> Result<Vec<String>, Error> {
        self.shared.database.read(|transaction| {
            let page = self.page(transaction, None, usize::MAX)?;
            match page.cursor {
                None => Ok(page.keys),
                Some(_) => Err(Error::AnswerTooLarge { limit: self.shared.limits.listing_bytes }.into()),
            }
        })
    }

    /// The values of keys, in the order of the keys, as they were at one moment
    /// (`wasi:keyvalue/batch.get-many`).
    ///
    /// The interface puts each key beside its value: the standard's draft as
    /// `list<option<tuple<string, list<u8>>>>`, Spin's copy of the same version as
    /// `list<tuple<string, option<list<u8>>>>`. Either follows from the keys and this.
    ///
    /// # Errors
    /// A key is too long, there are too many, their values are too large together,
    /// or the file cannot be read.
    pub fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.check_keys(keys.iter().map(String::as_str))?;
        let limit = self.shared.limits.batch_bytes;
        self.shared.database.read(|transaction| {
            let entries = transaction.open_table(ENTRIES)?;
            let mut bytes = 0;
            let mut found = Vec::with_capacity(keys.len());
            for key in keys {
                let stored = entries.get(self.place.store_prefix.key(key).as_slice())?;
                let Some(stored) = stored else {
                    found.push(None);
                    continue;
                };
                let (_, value) = decode(stored.value())?;
                bytes += (key.len() + value.len()) as u64;
                if bytes > limit {
                    return Err(Error::AnswerTooLarge { limit }.into());
                }
                found.push(Some(value.to_vec()));
            }
            Ok(found)
        })
    }

    /// Sets all values or none (`wasi:keyvalue/batch.set-many`, which would allow
    /// some). Where a key is there twice, the last value counts.
    ///
    /// # Errors
    /// Those of [`Store::set`]; there are too many keys or bytes.
    pub fn set_many(&self, pairs: Vec<Pair>) -> Result<(), Error> {
        self.write(self.set_many_change(pairs)?).map(drop)
    }

    /// Deletes all keys that are there (`wasi:keyvalue/batch.delete-many`), at once.
    ///
    /// # Errors
    /// Those of [`Store::delete`]; there are too many keys.
    pub fn delete_many(&self, keys: Vec<String>) -> Result<(), Error> {
        self.write(self.delete_many_change(keys)?).map(drop)
    }

    /// What the store holds.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn usage(&self) -> Result<Usage, Error> {
        self.shared.database.read(|transaction| {
            let stores = transaction.open_table(STORES)?;
            let row = stores.get(self.place.store_prefix.bytes())?;
            let (keys, bytes) = row.map_or((0, 0), |row| row.value());
            Ok(Usage { keys, bytes })
        })
    }

    pub(crate) fn tenant(&self) -> &Arc<str> {
        &self.place.tenant
    }

    pub(crate) fn get_versioned(&self, key: &str) -> Result<Option<(u64, Vec<u8>)>, Error> {
        self.check_key(key)?;
        let key = self.place.store_prefix.key(key);
        self.shared.database.read(|transaction| {
            let Some(stored) = transaction.open_table(ENTRIES)?.get(key.as_slice())? else { return Ok(None) };
            let (version, value) = decode(stored.value())?;
            Ok(Some((version, value.to_vec())))
        })
    }

    pub(crate) fn write(&self, change: Change) -> Result<Done, Error> {
        self.shared.write(self.tenant(), change)
    }

    pub(crate) fn set_change(&self, key: String, value: Vec<u8>) -> Result<Change, Error> {
        self.check_key(&key)?;
        self.check_value(&value)?;
        Ok(Change::Set(self.place(), vec![(key, value)]))
    }

    pub(crate) fn delete_change(&self, key: String) -> Result<Change, Error> {
        self.check_key(&key)?;
        Ok(Change::Delete(self.place(), vec![key]))
    }

    pub(crate) fn increment_change(&self, key: String, delta: i64) -> Result<Change, Error> {
        self.check_key(&key)?;
        Ok(Change::Increment(self.place(), key, delta))
    }

    pub(crate) fn swap_change(&self, key: String, version: Option<u64>, value: Vec<u8>) -> Result<Change, Error> {
        self.check_value(&value)?;
        Ok(Change::Swap(self.place(), key, version, value))
    }

    pub(crate) fn set_many_change(&self, pairs: Vec<Pair>) -> Result<Change, Error> {
        self.check_keys(pairs.iter().map(|(key, _)| key.as_str()))?;
        for (_, value) in &pairs {
            self.check_value(value)?;
        }
        self.check_bytes(pairs.iter().map(|(key, value)| key.len() + value.len()))?;
        Ok(Change::Set(self.place(), pairs))
    }

    pub(crate) fn delete_many_change(&self, keys: Vec<String>) -> Result<Change, Error> {
        self.check_keys(keys.iter().map(String::as_str))?;
        self.check_bytes(keys.iter().map(String::len))?;
        Ok(Change::Delete(self.place(), keys))
    }

    fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place)
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn check_key(&self, key: &str) -> Result<(), Error> {
        let (bytes, limit) = (key.len(), self.limits().key_bytes);
        if bytes > limit { Err(Error::KeyTooLong { bytes, limit }) } else { Ok(()) }
    }

    fn check_value(&self, value: &[u8]) -> Result<(), Error> {
        let (bytes, limit) = (value.len() as u64, self.limits().value_bytes);
        if bytes > limit { Err(Error::ValueTooLarge { bytes, limit }) } else { Ok(()) }
    }

    fn check_keys<'a>(&self, keys: impl ExactSizeIterator<Item = &'a str>) -> Result<(), Error> {
        let limit = self.limits().batch_keys;
        if keys.len() > limit {
            return Err(Error::BatchTooLong { keys: keys.len(), limit });
        }
        keys.into_iter().try_for_each(|key| self.check_key(key))
    }

    fn check_bytes(&self, lengths: impl Iterator<Item = usize>) -> Result<(), Error> {
        let (bytes, limit) = (lengths.map(|length| length as u64).sum(), self.limits().batch_bytes);
        if bytes > limit { Err(Error::BatchTooLarge { bytes, limit }) } else { Ok(()) }
    }

    /// At most so many keys after `cursor`, and no more bytes of them than may be
    /// listed at once, but one key at least.
    fn page(&self, transaction: &ReadTransaction, cursor: Option<&str>, most: usize) -> Result<Page, Fault> {
        let prefix = &self.place.store_prefix;
        let end = prefix.end();
        let start = cursor.map(|cursor| prefix.key(cursor));
        let start = start.as_deref().map_or(Bound::Included(prefix.bytes()), Bound::Excluded);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut keys: Vec<String> = Vec::new();
        let mut bytes = 0;
        for entry in transaction.open_table(ENTRIES)?.range::<&[u8]>((start, end))? {
            let (stored, _) = entry?;
            let key = stored.value().get(prefix.bytes().len()..).and_then(|key| std::str::from_utf8(key).ok());
            let key = key.ok_or_else(|| Fault::Malformed("a key is no text".to_owned()))?;
            bytes += key.len() as u64;
            if keys.len() >= most || (bytes > self.limits().listing_bytes && !keys.is_empty()) {
                let cursor = keys.last().cloned();
                return Ok(Page { keys, cursor });
            }
            keys.push(key.to_owned());
        }
        Ok(Page { keys, cursor: None })
    }
}

/// The number that an increment came to.
pub(crate) fn number(done: Done) -> Result<i64, Error> {
    match done {
        Done::Number(number) => Ok(number),
        _ => Err(Error::NotANumber),
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("of", &self.place.store_prefix.bytes().escape_ascii().to_string()).finish()
    }
}
