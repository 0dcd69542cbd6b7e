//! The tables while a group of writes is applied, with the counts beside them.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table, WriteTransaction};

use crate::config::Limits;
use crate::database::Ending;
use crate::error::{Error, Fault};
use crate::layout::{ENTRIES, FACTS, STORES, TENANTS, VERSION_FACT, decode, encode, stored_len, weight};
use crate::scope::{Place, Prefix, prefixes};

/// Keys that are removed in one commit when all of a store, an application or a
/// tenant goes: others' writes get their turn in between.
const REMOVED_AT_ONCE: usize = 512;

/// Keys and bytes that a store has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    keys: u64,
    bytes: u64,
}

/// The tables of a write transaction. Each operation either happens as a whole or
/// is refused and leaves everything as it was; only an error of the file ends the
/// transaction.
pub(crate) struct Tables<'t> {
    entries: Table<'t, &'static [u8], &'static [u8]>,
    stores: Table<'t, &'static [u8], (u64, u64)>,
    tenants: Table<'t, &'static [u8], u64>,
    facts: Table<'t, &'static str, u64>,
    /// The last that was given.
    version: u64,
    /// The rows that were touched, as they will be.
    store_rows: BTreeMap<Vec<u8>, Counts>,
    tenant_rows: BTreeMap<Vec<u8>, u64>,
    changed: Ending,
}

/// Whether all of what was to be removed is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    All,
    Some,
}

impl<'t> Tables<'t> {
    pub(crate) fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        let facts = transaction.open_table(FACTS)?;
        let version = facts.get(VERSION_FACT)?.map_or(0, |version| version.value());
        Ok(Self {
            entries: transaction.open_table(ENTRIES)?,
            stores: transaction.open_table(STORES)?,
            tenants: transaction.open_table(TENANTS)?,
            facts,
            version,
            store_rows: BTreeMap::new(),
            tenant_rows: BTreeMap::new(),
            changed: Ending::Forget,
        })
    }

    /// Writes the counts, and says whether there is anything to commit.
    pub(crate) fn finish(mut self) -> Result<Ending, Fault> {
        if self.changed == Ending::Commit {
            for (row, counts) in &self.store_rows {
                match counts {
                    Counts { keys: 0, .. } => drop(self.stores.remove(row.as_slice())?),
                    Counts { keys, bytes } => drop(self.stores.insert(row.as_slice(), (*keys, *bytes))?),
                }
            }
            for (row, bytes) in &self.tenant_rows {
                match bytes {
                    0 => drop(self.tenants.remove(row.as_slice())?),
                    bytes => drop(self.tenants.insert(row.as_slice(), *bytes)?),
                }
            }
            self.facts.insert(VERSION_FACT, self.version)?;
        }
        Ok(self.changed)
    }

    /// The version and the value of a key.
    pub(crate) fn get(&self, place: &Place, key: &str) -> Result<Option<(u64, Vec<u8>)>, Fault> {
        let Some(stored) = self.entries.get(place.store_prefix.key(key).as_slice())? else { return Ok(None) };
        let (version, value) = decode(stored.value())?;
        Ok(Some((version, value.to_vec())))
    }

    /// Sets all of them, or none if that would exceed a limit. Where a key is there
    /// twice, its last value counts.
    pub(crate) fn set<'a>(
        &mut self,
        place: &Place,
        limits: &Limits,
        pairs: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<(), Fault> {
        let pairs: BTreeMap<Vec<u8>, &[u8]> =
            pairs.into_iter().map(|(key, value)| (place.store_prefix.key(key), value)).collect();
        let (mut before, mut after) = (Counts::default(), Counts::default());
        for (key, value) in &pairs {
            after.keys += 1;
            after.bytes += weight(key.len(), stored_len(value));
            if let Some(old) = self.entries.get(key.as_slice())? {
                before.keys += 1;
                before.bytes += weight(key.len(), old.value().len());
            }
        }
        self.check(place, limits, before, after)?;
        for (key, value) in &pairs {
            self.version += 1;
            self.entries.insert(key.as_slice(), encode(self.version, value).as_slice())?;
        }
        self.count(place.tenant_prefix.bytes(), place.store_prefix.bytes(), before, after)
    }

    /// Removes those of the keys that are there.
    pub(crate) fn delete<'a>(&mut self, place: &Place, keys: impl IntoIterator<Item = &'a str>) -> Result<(), Fault> {
        let mut gone = Counts::default();
        for key in keys {
            let key = place.store_prefix.key(key);
            if let Some(old) = self.entries.remove(key.as_slice())? {
                gone.keys += 1;
                gone.bytes += weight(key.len(), old.value().len());
            }
        }
        if gone.keys == 0 {
            return Ok(());
        }
        self.count(place.tenant_prefix.bytes(), place.store_prefix.bytes(), gone, Counts::default())
    }

    /// Removes some of all that begins with `prefix`.
    pub(crate) fn remove(&mut self, prefix: &Prefix) -> Result<Removed, Fault> {
        let start = prefix.bytes();
        let end = prefix.end();
        let mut found = Vec::new();
        for entry in self.entries.range::<&[u8]>(start..)?.take(REMOVED_AT_ONCE) {
            let (key, stored) = entry?;
            if end.as_deref().is_some_and(|end| key.value() >= end) {
                break;
            }
            found.push((key.value().to_vec(), stored.value().len()));
        }
        for (key, stored) in &found {
            self.entries.remove(key.as_slice())?;
            let (tenant, store) = prefixes(key)
                .ok_or_else(|| Fault::Malformed(format!("a key of {} bytes is under no names", key.len())))?;
            let gone = Counts { keys: 1, bytes: weight(key.len(), *stored) };
            self.count(tenant, store, gone, Counts::default())?;
        }
        Ok(if found.len() < REMOVED_AT_ONCE { Removed::All } else { Removed::Some })
    }

    /// Whether the tenant and the store may have `after` in place of `before`. What
    /// takes less than before is allowed even where a limit was lowered.
    fn check(&mut self, place: &Place, limits: &Limits, before: Counts, after: Counts) -> Result<(), Fault> {
        let keys = self.store_row(place.store_prefix.bytes())?.keys;
        let more_keys = after.keys.saturating_sub(before.keys);
        if more_keys > 0 && keys.saturating_add(more_keys) > limits.store_keys {
            return Err(Error::StoreFull { keys, limit: limits.store_keys }.into());
        }
        let used = self.tenant_row(place.tenant_prefix.bytes())?;
        let wanted = after.bytes.saturating_sub(before.bytes);
        let limit = place.tenant_bytes.unwrap_or(limits.tenant_bytes);
        if wanted > 0 && used.saturating_add(wanted) > limit {
            return Err(Error::QuotaExceeded { used, limit, wanted }.into());
        }
        Ok(())
    }

    /// Notes that `after` took the place of `before`.
    fn count(&mut self, tenant: &[u8], store: &[u8], before: Counts, after: Counts) -> Result<(), Fault> {
        self.changed = Ending::Commit;
        let less = || Fault::Malformed("a store has less than was taken from it".to_owned());
        let moved = |now: u64, before: u64, after: u64| (now + after).checked_sub(before).ok_or_else(less);
        let row = self.store_row(store)?;
        let counts = Counts {
            keys: moved(row.keys, before.keys, after.keys)?,
            bytes: moved(row.bytes, before.bytes, after.bytes)?,
        };
        let bytes = moved(self.tenant_row(tenant)?, before.bytes, after.bytes)?;
        self.store_rows.insert(store.to_vec(), counts);
        self.tenant_rows.insert(tenant.to_vec(), bytes);
        Ok(())
    }

    fn store_row(&self, store: &[u8]) -> Result<Counts, Fault> {
        if let Some(counts) = self.store_rows.get(store) {
            return Ok(*counts);
        }
        Ok(self.stores.get(store)?.map_or(Counts::default(), |row| {
            let (keys, bytes) = row.value();
            Counts { keys, bytes }
        }))
    }

    fn tenant_row(&self, tenant: &[u8]) -> Result<u64, Fault> {
        if let Some(bytes) = self.tenant_rows.get(tenant) {
            return Ok(*bytes);
        }
        Ok(self.tenants.get(tenant)?.map_or(0, |row| row.value()))
    }
}
