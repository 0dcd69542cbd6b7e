//! Whether the counts are what the data says.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable};

use crate::error::Fault;
use crate::layout::{ENTRIES, STORES, TENANTS, decode, weight};
use crate::scope::prefixes;

/// What a recount found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recount {
    /// Keys of all tenants.
    pub keys: u64,
    /// Bytes of all tenants.
    pub bytes: u64,
    /// Counts that are not what the data says; none is as it should be.
    pub differences: Vec<Difference>,
}

/// A count that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Of which tenant or store: its names as they are in the file, readable.
    pub of: String,
    /// Keys and bytes that are there; for a tenant the bytes only.
    pub counted: (u64, u64),
    /// Keys and bytes that were noted.
    pub noted: (u64, u64),
}

/// Counts what is there.
pub(crate) fn recount(transaction: &ReadTransaction) -> Result<Recount, Fault> {
    let mut found = Recount::default();
    // What is there, and what was noted.
    let mut stores: BTreeMap<Vec<u8>, [(u64, u64); 2]> = BTreeMap::new();
    let mut tenants: BTreeMap<Vec<u8>, [(u64, u64); 2]> = BTreeMap::new();
    for entry in transaction.open_table(ENTRIES)?.iter()? {
        let (key, stored) = entry?;
        let (key, stored) = (key.value(), stored.value());
        decode(stored)?;
        let (tenant, store) = prefixes(key).ok_or_else(|| Fault::Malformed("a key is under no names".to_owned()))?;
        let bytes = weight(key.len(), stored.len());
        found.keys += 1;
        found.bytes += bytes;
        let [counted, _] = stores.entry(store.to_vec()).or_default();
        *counted = (counted.0 + 1, counted.1 + bytes);
        let [counted, _] = tenants.entry(tenant.to_vec()).or_default();
        counted.1 += bytes;
    }
    for row in transaction.open_table(STORES)?.iter()? {
        let (name, counts) = row?;
        let [_, noted] = stores.entry(name.value().to_vec()).or_default();
        *noted = counts.value();
    }
    for row in transaction.open_table(TENANTS)?.iter()? {
        let (name, bytes) = row?;
        let [_, noted] = tenants.entry(name.value().to_vec()).or_default();
        noted.1 = bytes.value();
    }
    found.differences = tenants
        .into_iter()
        .chain(stores)
        .filter(|(_, [counted, noted])| counted != noted)
        .map(|(name, [counted, noted])| Difference { of: name.escape_ascii().to_string(), counted, noted })
        .collect();
    Ok(found)
}
