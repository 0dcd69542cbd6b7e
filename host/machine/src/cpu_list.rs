//! Sets of CPUs, as the kernel writes them.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};

/// The largest number of a CPU that is believed.
const MOST: usize = 1 << 16;

/// Some logical CPUs, by their numbers. Shown and serialised as the kernel writes it:
/// `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuList(BTreeSet<usize>);

impl CpuList {
    /// Reads a list such as `0-3,8,10-11`. None for text that is none, and for a range
    /// larger than any machine.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.parse().ok()?;
            let last: usize = last.parse().ok()?;
            if first > last || last >= MOST {
                return None;
            }
            cpus.extend(first..=last);
        }
        Some(Self(cpus))
    }

    /// The CPUs, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    /// How many they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<usize> for CpuList {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|next| *next == last + 1) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl Serialize for CpuList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nonsense_is_none() {
        let list = |text: &str| CpuList::parse(text).map(|list| list.iter().collect::<Vec<_>>());
        assert_eq!(list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        for text in ["", "x", "3-1", "0-99999999", "-1", "1,,2", "1-2-3"] {
            assert_eq!(list(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for text in ["0", "0-3", "0-3,8,10-11", "1,3,5"] {
            assert_eq!(CpuList::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(CpuList::default().to_string(), "");
        assert_eq!(serde_json::to_value(CpuList::parse("2,0,1").unwrap()).unwrap(), "0-2");
    }
}
