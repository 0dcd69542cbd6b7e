//! Physical cores and NUMA nodes, from `/sys/devices/system`.
//!
//! Source: the kernel's `Documentation/admin-guide/cputopology.rst`.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::filesystem::Filesystem;

/// How the machine is put together. Counts the whole machine, not the grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Logical CPUs that are online.
    pub logical_cpus: Option<usize>,
    /// Physical cores; fewer than the logical CPUs with SMT.
    pub cores: Option<usize>,
    /// NUMA nodes, at least one.
    pub numa_nodes: usize,
}

impl Topology {
    /// Reads it.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Self {
        let online = fs.read("/sys/devices/system/cpu/online").as_deref().and_then(parse_list);
        // Siblings of one core name the same set of CPUs.
        let cores: BTreeSet<String> = online
            .iter()
            .flatten()
            .filter_map(|cpu| {
                let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
                fs.read(&format!("{folder}/core_cpus_list"))
                    .or_else(|| fs.read(&format!("{folder}/thread_siblings_list")))
            })
            .map(|siblings| siblings.trim().to_owned())
            .collect();
        let numa_nodes = fs
            .names("/sys/devices/system/node")
            .iter()
            .filter_map(|name| name.strip_prefix("node"))
            .filter(|number| number.parse::<u32>().is_ok())
            .count();
        Self {
            logical_cpus: online.as_ref().map(BTreeSet::len),
            cores: Some(cores.len()).filter(|count| *count > 0),
            numa_nodes: numa_nodes.max(1),
        }
    }
}

/// A list of CPUs such as `0-3,8,10-11`. None for text that is none, and for a
/// range larger than any machine.
fn parse_list(text: &str) -> Option<BTreeSet<usize>> {
    const MOST: usize = 1 << 16;
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
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    #[test]
    fn siblings_are_one_core() {
        let mut fs = MemoryTree::new()
            .with("/sys/devices/system/cpu/online", "0-3\n")
            .with("/sys/devices/system/node/node0/cpulist", "0-1\n")
            .with("/sys/devices/system/node/node1/cpulist", "2-3\n")
            .with("/sys/devices/system/node/online", "0-1\n");
        for (cpu, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            fs = fs.with(
                format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
                format!("{siblings}\n"),
            );
        }
        let expected = Topology { logical_cpus: Some(4), cores: Some(2), numa_nodes: 2 };
        assert_eq!(Topology::read(&fs), expected);
    }

    #[test]
    fn a_machine_that_hides_it_has_one_node() {
        let expected = Topology { logical_cpus: None, cores: None, numa_nodes: 1 };
        assert_eq!(Topology::read(&MemoryTree::new()), expected);
    }

    #[test]
    fn lists_are_read_and_nonsense_is_none() {
        let list = |text: &str| parse_list(text).map(|set| set.into_iter().collect::<Vec<_>>());
        assert_eq!(list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        for text in ["", "x", "3-1", "0-99999999", "-1", "1,,2", "1-2-3"] {
            assert_eq!(list(text), None, "{text:?}");
        }
    }
}
