//! What the files of an application say.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The number of a version, from 1 on, larger the later it was deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionNumber(NonZeroU64);

impl VersionNumber {
    /// Of the first that is deployed.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// The number as such.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0.get()
    }

    fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for VersionNumber {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The record of an application: the one file by whose replacement it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Which version runs; one of those that are kept.
    pub(crate) current: VersionNumber,
    /// The largest number that was ever given.
    pub(crate) last: VersionNumber,
    /// The versions that one can go back to.
    pub(crate) kept: BTreeSet<VersionNumber>,
}

impl Record {
    /// Of an application that was just deployed for the first time.
    pub(crate) fn first() -> Self {
        let number = VersionNumber::FIRST;
        Self { current: number, last: number, kept: BTreeSet::from([number]) }
    }

    /// With one version more, which runs now, and the newest `keep` kept.
    pub(crate) fn deployed(&self, keep: NonZeroU64) -> Self {
        let number = self.last.next();
        let keep = usize::try_from(keep.get()).unwrap_or(usize::MAX);
        let kept = [number].into_iter().chain(self.kept.iter().rev().copied()).take(keep).collect();
        Self { current: number, last: number, kept }
    }

    /// With another version running.
    pub(crate) fn rolled_back(&self, to: VersionNumber) -> Option<Self> {
        self.kept.contains(&to).then(|| Self { current: to, ..self.clone() })
    }

    /// The oldest and the newest that are kept.
    pub(crate) fn range(&self) -> (VersionNumber, VersionNumber) {
        let oldest = self.kept.first().copied().unwrap_or(self.current);
        (oldest, self.kept.last().copied().unwrap_or(self.current))
    }

    /// Reads a file.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if !record.kept.contains(&record.current) {
            return Err(format!("version {} runs and is not kept", record.current));
        }
        if record.kept.last().is_some_and(|newest| *newest > record.last) {
            return Err(format!("a version is newer than {}, the last", record.last));
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(record: &Record) -> Vec<u64> {
        record.kept.iter().map(|number| number.get()).collect()
    }

    #[test]
    fn the_newest_are_kept_and_numbers_are_not_given_twice() {
        let two = NonZeroU64::new(2).unwrap();
        let record = Record::first().deployed(two).deployed(two);
        assert_eq!((numbers(&record), record.current.get()), (vec![2, 3], 3));
        let back = record.rolled_back("2".parse().unwrap()).unwrap();
        assert_eq!(back.current.get(), 2);
        assert_eq!(back.rolled_back(VersionNumber::FIRST), None);
        let next = back.deployed(two);
        assert_eq!((numbers(&next), next.current.get()), (vec![3, 4], 4));
    }

    #[test]
    fn a_record_that_contradicts_itself_is_refused() {
        for text in [
            "",
            "{}",
            r#"{"current":0,"last":1,"kept":[0]}"#,
            r#"{"current":2,"last":2,"kept":[1]}"#,
            r#"{"current":1,"last":1,"kept":[1,2]}"#,
            r#"{"current":1,"last":1,"kept":[1],"more":1}"#,
        ] {
            assert!(Record::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(Record::parse(br#"{"current":1,"last":1,"kept":[1]}"#).unwrap(), Record::first());
    }
}
