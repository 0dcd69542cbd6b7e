//! The caches of the processor, from `/sys/devices/system/cpu/cpu*/cache`.
//!
//! Source: the kernel's `Documentation/ABI/testing/sysfs-devices-system-cpu`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cpu_list::CpuList;
use crate::filesystem::Filesystem;

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data.
    Data,
    /// Instructions.
    Instruction,
    /// Both.
    Unified,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cache {
    /// How far it is from the core: 1 is nearest.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// How much it loads at a time, in bytes.
    pub line_bytes: Option<u64>,
    /// The CPUs that share it.
    pub cpus: CpuList,
}

/// Caches that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CacheGroup {
    /// Their level.
    pub level: u8,
    /// What they hold.
    pub kind: CacheKind,
    /// The size of each, in bytes.
    pub size_bytes: u64,
    /// How much they load at a time, in bytes.
    pub line_bytes: Option<u64>,
    /// How many CPUs share one.
    pub shared_by: usize,
    /// How many there are.
    pub count: usize,
}

/// The caches of all CPUs, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Caches(Vec<Cache>);

impl Caches {
    /// Reads those of the CPUs that are online. Empty where the machine hides them, as
    /// many virtual ones do.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Self {
        let online = fs.read("/sys/devices/system/cpu/online").as_deref().and_then(CpuList::parse);
        let mut all = BTreeSet::new();
        for cpu in online.unwrap_or_default().iter() {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
            for index in fs.names(&folder).iter().filter(|name| name.starts_with("index")) {
                all.extend(read(fs, &format!("{folder}/{index}"), cpu));
            }
        }
        Self(all.into_iter().collect())
    }

    /// Each of them, the nearest to the cores first.
    pub fn iter(&self) -> impl Iterator<Item = &Cache> {
        self.0.iter()
    }

    /// The same, with those that are alike told once.
    #[must_use]
    pub fn groups(&self) -> Vec<CacheGroup> {
        let mut groups: BTreeMap<_, usize> = BTreeMap::new();
        for cache in &self.0 {
            let Cache { level, kind, size_bytes, line_bytes, cpus } = cache;
            *groups.entry((*level, *kind, *size_bytes, *line_bytes, cpus.len())).or_default() += 1;
        }
        let group = |((level, kind, size_bytes, line_bytes, shared_by), count)| CacheGroup {
            level,
            kind,
            size_bytes,
            line_bytes,
            shared_by,
            count,
        };
        groups.into_iter().map(group).collect()
    }

    /// The CPUs that share each cache of the last level, which is where threads that work
    /// on the same weights are near each other. Empty where caches are not known.
    #[must_use]
    pub fn clusters(&self) -> Vec<CpuList> {
        let of_data = || self.0.iter().filter(|cache| cache.kind != CacheKind::Instruction);
        let last = of_data().map(|cache| cache.level).max();
        of_data().filter(|cache| Some(cache.level) == last).map(|cache| cache.cpus.clone()).collect()
    }
}

fn read(fs: &dyn Filesystem, folder: &str, cpu: usize) -> Option<Cache> {
    let text = |name: &str| Some(fs.read(&format!("{folder}/{name}"))?.trim().to_owned());
    let kind = match text("type")?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    Some(Cache {
        level: text("level")?.parse().ok()?,
        kind,
        size_bytes: size(&text("size")?)?,
        line_bytes: text("coherency_line_size").and_then(|bytes| bytes.parse().ok()),
        cpus: text("shared_cpu_list")
            .as_deref()
            .and_then(CpuList::parse)
            .unwrap_or_else(|| [cpu].into_iter().collect()),
    })
}

/// A size such as `1024K`, in bytes.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = match (text.strip_suffix('K'), text.strip_suffix('M')) {
        (Some(number), _) => (number, 1 << 10),
        (_, Some(number)) => (number, 1 << 20),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    #[test]
    fn each_cache_counts_once_and_the_last_level_makes_clusters() {
        // Two clusters of two cores, as chips with several dies have them.
        let mut fs = MemoryTree::new().with("/sys/devices/system/cpu/online", "0-3\n");
        for cpu in 0..4 {
            let third = if cpu < 2 { "0-1" } else { "2-3" };
            let caches = [
                ("1", "Data", "64K", cpu.to_string()),
                ("1", "Instruction", "64K", cpu.to_string()),
                ("2", "Unified", "1024K", cpu.to_string()),
                ("3", "Unified", "32M", third.to_owned()),
            ];
            for (index, (level, kind, size, shared)) in caches.into_iter().enumerate() {
                let at = |name: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
                fs = fs
                    .with(at("level"), level)
                    .with(at("type"), kind)
                    .with(at("size"), size)
                    .with(at("coherency_line_size"), "64")
                    .with(at("shared_cpu_list"), shared);
            }
            fs = fs.with(format!("/sys/devices/system/cpu/cpu{cpu}/cache/uevent"), "");
        }
        let caches = Caches::read(&fs);
        let groups: Vec<_> = caches
            .groups()
            .into_iter()
            .map(|group| (group.level, group.kind, group.size_bytes, group.shared_by, group.count))
            .collect();
        assert_eq!(
            groups,
            [
                (1, CacheKind::Data, 64 << 10, 1, 4),
                (1, CacheKind::Instruction, 64 << 10, 1, 4),
                (2, CacheKind::Unified, 1 << 20, 1, 4),
                (3, CacheKind::Unified, 32 << 20, 2, 2),
            ]
        );
        let clusters: Vec<String> = caches.clusters().iter().map(CpuList::to_string).collect();
        assert_eq!(clusters, ["0-1", "2-3"]);
        assert_eq!(serde_json::to_value(&caches).unwrap()[0]["cpus"], "0");
    }

    #[test]
    fn what_is_hidden_or_nonsense_is_no_cache() {
        assert_eq!(Caches::read(&MemoryTree::new()), Caches::default());
        assert!(Caches::default().clusters().is_empty());
        for (kind, level, text) in [("Data", "1", "0K"), ("Data", "x", "1K"), ("Trace", "1", "1K"), ("Data", "1", "K")]
        {
            let at = |name: &str| format!("/sys/devices/system/cpu/cpu0/cache/index0/{name}");
            let fs = MemoryTree::new()
                .with("/sys/devices/system/cpu/online", "0")
                .with(at("type"), kind)
                .with(at("level"), level)
                .with(at("size"), text);
            assert_eq!(Caches::read(&fs).iter().count(), 0, "{kind} {level} {text}");
        }
    }
}
