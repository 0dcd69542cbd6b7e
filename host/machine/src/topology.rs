//! Physical cores and NUMA nodes, from `/sys/devices/system`.
//!
//! Source: the kernel's `Documentation/admin-guide/cputopology.rst`, and for nodes
//! `Documentation/ABI/stable/sysfs-devices-node`.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::cpu_list::CpuList;
use crate::filesystem::Filesystem;
use crate::memory::kibibytes;

/// How the machine is put together. Counts the whole machine, not the grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Logical CPUs that are online.
    pub logical_cpus: Option<usize>,
    /// Physical cores; fewer than the logical CPUs with SMT.
    pub cores: Option<usize>,
    /// NUMA nodes, at least one.
    pub numa_nodes: usize,
    /// What each of them has. Empty where the machine does not show it.
    pub nodes: Vec<NumaNode>,
}

/// Memory, and the CPUs that are near to it. Either may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumaNode {
    /// Its number.
    pub number: u32,
    /// Its CPUs.
    pub cpus: CpuList,
    /// All of its memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// What of it nobody uses, in bytes. Pages of files count as used, also those that
    /// could be dropped.
    pub free_bytes: Option<u64>,
    /// How far each node is, in the order of their numbers; 10 is near, 20 twice as far.
    pub distances: Vec<u32>,
}

impl Topology {
    /// Reads it.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Self {
        let online = fs.read("/sys/devices/system/cpu/online").as_deref().and_then(CpuList::parse);
        // Siblings of one core name the same set of CPUs.
        let cores: BTreeSet<String> = online
            .iter()
            .flat_map(CpuList::iter)
            .filter_map(|cpu| {
                let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
                fs.read(&format!("{folder}/core_cpus_list"))
                    .or_else(|| fs.read(&format!("{folder}/thread_siblings_list")))
            })
            .map(|siblings| siblings.trim().to_owned())
            .collect();
        let nodes = nodes(fs);
        Self {
            logical_cpus: online.as_ref().map(CpuList::len),
            cores: Some(cores.len()).filter(|count| *count > 0),
            numa_nodes: nodes.len().max(1),
            nodes,
        }
    }
}

fn nodes(fs: &dyn Filesystem) -> Vec<NumaNode> {
    let names = fs.names("/sys/devices/system/node");
    let numbers: BTreeSet<u32> =
        names.iter().filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok()).collect();
    let read = |number| {
        let text = |name| fs.read(&format!("/sys/devices/system/node/node{number}/{name}")).unwrap_or_default();
        // `Node 0 MemTotal:       24683652 kB`
        let meminfo = text("meminfo").replace(&format!("Node {number} "), "");
        NumaNode {
            number,
            cpus: CpuList::parse(&text("cpulist")).unwrap_or_default(),
            memory_bytes: kibibytes(&meminfo, "MemTotal"),
            free_bytes: kibibytes(&meminfo, "MemFree"),
            distances: text("distance").split_whitespace().filter_map(|far| far.parse().ok()).collect(),
        }
    };
    numbers.into_iter().map(read).collect()
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
        let topology = Topology::read(&fs);
        assert_eq!((topology.logical_cpus, topology.cores, topology.numa_nodes), (Some(4), Some(2), 2));
    }

    #[test]
    fn nodes_have_cpus_and_memory_or_one_of_both() {
        let at = |node: u32, name: &str| format!("/sys/devices/system/node/node{node}/{name}");
        let fs = MemoryTree::new()
            .with(at(0, "cpulist"), "0-63\n")
            .with(at(0, "meminfo"), "Node 0 MemTotal:       64 kB\nNode 0 MemFree:        8 kB\n")
            .with(at(0, "distance"), "10 20\n")
            // Memory behind a link, without CPUs.
            .with(at(10, "cpulist"), "\n")
            .with(at(10, "meminfo"), "Node 10 MemTotal:       128 kB\n")
            .with(at(10, "distance"), "20 10\n");
        let nodes = Topology::read(&fs).nodes;
        let (near, far) = (&nodes[0], &nodes[1]);
        assert_eq!(
            (near.cpus.to_string().as_str(), near.memory_bytes, near.free_bytes),
            ("0-63", Some(65536), Some(8192))
        );
        assert_eq!((far.number, far.cpus.len(), far.memory_bytes, far.free_bytes), (10, 0, Some(131_072), None));
        assert_eq!((near.distances.as_slice(), far.distances.as_slice()), (&[10, 20][..], &[20, 10][..]));
    }

    #[test]
    fn a_machine_that_hides_it_has_one_node() {
        let expected = Topology { logical_cpus: None, cores: None, numa_nodes: 1, nodes: Vec::new() };
        assert_eq!(Topology::read(&MemoryTree::new()), expected);
    }
}
