//! What is in the file, and where.
//!
//! | table | key | value |
//! |---|---|---|
//! | `entries` | names of tenant, application and store, each behind its length in a byte, then the key | version, 8 bytes little-endian, then the value |
//! | `stores` | the three names | keys, bytes |
//! | `tenants` | the tenant's name behind its length | bytes |
//! | `facts` | `format`; `version`: the last that was given | |
//!
//! Bytes are those of the keys and values of `entries`. A store or tenant without
//! entries has no row.

use redb::TableDefinition;

use crate::error::Fault;

/// The format of the file that this crate writes and reads.
pub(crate) const FORMAT: u64 = 1;

/// All data.
pub(crate) const ENTRIES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("entries");
/// Keys and bytes of each store.
pub(crate) const STORES: TableDefinition<'_, &[u8], (u64, u64)> = TableDefinition::new("stores");
/// Bytes of each tenant.
pub(crate) const TENANTS: TableDefinition<'_, &[u8], u64> = TableDefinition::new("tenants");
/// Numbers about the file itself.
pub(crate) const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
/// The row of [`FACTS`] with the format.
pub(crate) const FORMAT_FACT: &str = "format";
/// The row of [`FACTS`] with the last version that was given to an entry.
pub(crate) const VERSION_FACT: &str = "version";

/// Bytes of the version before a value.
const VERSION_BYTES: usize = 8;

/// A value as it is stored.
pub(crate) fn encode(version: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(VERSION_BYTES + value.len());
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(value);
    bytes
}

/// The version and the value of what is stored.
pub(crate) fn decode(stored: &[u8]) -> Result<(u64, &[u8]), Fault> {
    let (version, value) = stored
        .split_first_chunk::<VERSION_BYTES>()
        .ok_or_else(|| Fault::Malformed(format!("an entry of {} bytes has no version", stored.len())))?;
    Ok((u64::from_le_bytes(*version), value))
}

/// Bytes that an entry counts for, by the lengths of its key in the file and of
/// what is stored.
pub(crate) fn weight(key: usize, stored: usize) -> u64 {
    (key + stored) as u64
}

/// Bytes that a value takes when it is stored.
pub(crate) fn stored_len(value: &[u8]) -> usize {
    VERSION_BYTES + value.len()
}
