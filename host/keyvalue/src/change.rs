//! What can be written, and what comes of it.

use std::sync::Arc;

use crate::config::Limits;
use crate::error::{Error, Fault};
use crate::scope::{Place, Prefix};
use crate::store::Pair;
use crate::tables::{Removed, Tables};

/// What a write costs besides its bytes, in bytes: about what is written anew of
/// the tree for a key.
const KEY_COST: u64 = 256;
/// What a part of a removal costs: others come first.
const REMOVAL_COST: u64 = 64 << 10;

/// An operation that writes. Its lengths were checked.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Sets some keys.
    Set(Arc<Place>, Vec<Pair>),
    /// Deletes some keys.
    Delete(Arc<Place>, Vec<String>),
    /// Adds to a number, which is 0 where there is no key.
    Increment(Arc<Place>, String, i64),
    /// Sets a key if it has this version; none: if it is not there.
    Swap(Arc<Place>, String, Option<u64>, Vec<u8>),
    /// Removes all that begins so.
    Remove(Prefix),
}

/// What an operation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    /// It happened.
    Changed,
    /// It happened, and this is the new number.
    Number(i64),
    /// It did not, since the key has another version.
    Stale(Option<u64>),
    /// A part happened; the same is to be done again.
    Unfinished,
}

impl Change {
    /// What it takes of its tenant's turns, in bytes.
    pub(crate) fn cost(&self) -> u64 {
        let of = |key: &String, value: usize| KEY_COST + (key.len() + value) as u64;
        match self {
            Self::Set(_, pairs) => pairs.iter().map(|(key, value)| of(key, value.len())).sum(),
            Self::Delete(_, keys) => keys.iter().map(|key| of(key, 0)).sum(),
            Self::Increment(_, key, _) => of(key, 0),
            Self::Swap(_, key, _, value) => of(key, value.len()),
            Self::Remove(_) => REMOVAL_COST,
        }
    }

    /// Does it.
    pub(crate) fn apply(&self, tables: &mut Tables<'_>, limits: &Limits) -> Result<Done, Fault> {
        match self {
            Self::Set(place, pairs) => {
                let pairs = pairs.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
                tables.set(place, limits, pairs).map(|()| Done::Changed)
            }
            Self::Delete(place, keys) => tables.delete(place, keys.iter().map(String::as_str)).map(|()| Done::Changed),
            Self::Increment(place, key, delta) => {
                let value = match tables.get(place, key)? {
                    Some((_, value)) => number(&value)?,
                    None => 0,
                };
                let sum = value.checked_add(*delta).ok_or(Error::Overflow { value, delta: *delta })?;
                tables.set(place, limits, [(key.as_str(), sum.to_string().as_bytes())])?;
                Ok(Done::Number(sum))
            }
            Self::Swap(place, key, expected, value) => {
                let version = tables.get(place, key)?.map(|(version, _)| version);
                if version != *expected {
                    return Ok(Done::Stale(version));
                }
                tables.set(place, limits, [(key.as_str(), value.as_slice())]).map(|()| Done::Changed)
            }
            Self::Remove(prefix) => Ok(match tables.remove(prefix)? {
                Removed::All => Done::Changed,
                Removed::Some => Done::Unfinished,
            }),
        }
    }
}

/// The number that a value is.
fn number(value: &[u8]) -> Result<i64, Error> {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(Error::NotANumber)
}
