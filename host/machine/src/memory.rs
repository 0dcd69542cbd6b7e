//! Memory: what the machine has, what this process may use, and its pages.

use serde::Serialize;

use crate::cgroup::{Version, groups};
use crate::filesystem::Filesystem;

/// Version 1 writes "no limit" as the largest multiple of a page below 2^63.
/// A limit that no machine has memory for is none.
const NO_LIMIT: u64 = 1 << 60;

/// The machine's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All of it, in bytes (`MemTotal`).
    pub total_bytes: Option<u64>,
    /// What could be had without swapping, in bytes (`MemAvailable`).
    pub available_bytes: Option<u64>,
    /// The tightest limit of this process's control groups, in bytes.
    pub limit_bytes: Option<u64>,
    /// Size of a page, in bytes.
    pub page_bytes: usize,
    /// When the kernel gives huge pages by itself; none if it cannot.
    pub transparent_huge_pages: Option<HugePages>,
}

/// The memory that this process has in RAM, in bytes, out of
/// `/proc/self/smaps_rollup` (`proc_pid_smaps(5)`).
///
/// Pages of a file can be dropped and read again when memory is short; anonymous
/// ones cannot. A model that is mapped is of the first kind, one whose weights
/// were rearranged while loading of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Resident {
    /// Everything (`Rss`).
    pub all_bytes: u64,
    /// The same, where pages shared with other processes count in part (`Pss`).
    pub proportional_bytes: u64,
    /// Pages of no file: heap, stacks, buffers (`Anonymous`).
    pub anonymous_bytes: u64,
    /// Pages of files: mapped models, code (`Rss` without `Anonymous`).
    pub file_bytes: u64,
}

impl Resident {
    /// Reads it. None where the system does not tell. The kernel walks all pages
    /// of the process for it: milliseconds, not for every request.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Option<Self> {
        let rollup = fs.read("/proc/self/smaps_rollup")?;
        let bytes = |key| kibibytes(&rollup, key);
        let (all_bytes, anonymous_bytes) = (bytes("Rss")?, bytes("Anonymous")?);
        Some(Self {
            all_bytes,
            proportional_bytes: bytes("Pss")?,
            anonymous_bytes,
            file_bytes: all_bytes.saturating_sub(anonymous_bytes),
        })
    }
}

/// The mode in `/sys/kernel/mm/transparent_hugepage/enabled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HugePages {
    /// For all memory.
    Always,
    /// Where a program asks.
    Madvise,
    /// Not at all.
    Never,
}

/// The memory that is in use now, and what is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MemoryUse {
    /// All of the machine's, in bytes (`MemTotal`).
    pub total_bytes: Option<u64>,
    /// What of the machine's could not be had without swapping, in bytes: all but
    /// `MemAvailable`.
    pub used_bytes: Option<u64>,
    /// What this process could still have without swapping, in bytes: what the machine has
    /// to give, within the limits of all its control groups.
    pub available_bytes: Option<u64>,
    /// What this process's control group holds, in bytes, without pages of files that are
    /// not in use. None: the group does not count it.
    pub group_bytes: Option<u64>,
    /// The tightest limit of its control groups, in bytes.
    pub limit_bytes: Option<u64>,
}

impl MemoryUse {
    /// Reads it.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Self {
        let meminfo = fs.read("/proc/meminfo").unwrap_or_default();
        let (total_bytes, free) = (kibibytes(&meminfo, "MemTotal"), kibibytes(&meminfo, "MemAvailable"));
        let mut this = Self {
            total_bytes,
            used_bytes: total_bytes.zip(free).map(|(total, free)| total.saturating_sub(free)),
            available_bytes: free,
            ..Self::default()
        };
        for groups in groups(fs, "memory") {
            for (depth, folder) in groups.folders.iter().enumerate() {
                let held = held(fs, groups.version, folder);
                if depth == 0 {
                    this.group_bytes = this.group_bytes.or(held);
                }
                let Some(limit) = limit_of(fs, groups.version, folder) else { continue };
                this.limit_bytes = Some(this.limit_bytes.map_or(limit, |least| least.min(limit)));
                let room = limit.saturating_sub(held.unwrap_or(0));
                this.available_bytes = Some(this.available_bytes.map_or(room, |least| least.min(room)));
            }
        }
        this
    }
}

/// What a control group holds that could not be dropped, in bytes.
fn held(fs: &dyn Filesystem, version: Version, folder: &str) -> Option<u64> {
    let (all, dropped) = match version {
        Version::V2 => ("memory.current", "inactive_file"),
        Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
    };
    let all: u64 = fs.read(&format!("{folder}/{all}"))?.trim().parse().ok()?;
    let stat = fs.read(&format!("{folder}/memory.stat")).unwrap_or_default();
    let dropped = stat.lines().find_map(|line| line.strip_prefix(dropped)?.trim().parse::<u64>().ok());
    Some(all.saturating_sub(dropped.unwrap_or(0)))
}

impl Memory {
    /// Reads it, with the page size that only the system itself can tell.
    #[must_use]
    pub fn read(fs: &dyn Filesystem, page_bytes: usize) -> Self {
        let meminfo = fs.read("/proc/meminfo").unwrap_or_default();
        Self {
            total_bytes: kibibytes(&meminfo, "MemTotal"),
            available_bytes: kibibytes(&meminfo, "MemAvailable"),
            limit_bytes: limit(fs),
            page_bytes,
            transparent_huge_pages: fs
                .read("/sys/kernel/mm/transparent_hugepage/enabled")
                .as_deref()
                .and_then(huge_pages),
        }
    }

    /// What this process may use at most, in bytes.
    #[must_use]
    pub fn usable_bytes(&self) -> Option<u64> {
        match (self.total_bytes, self.limit_bytes) {
            (Some(total), Some(limit)) => Some(total.min(limit)),
            (total, limit) => total.or(limit),
        }
    }
}

/// The value of a line such as `MemTotal:       24684116 kB`, in bytes.
pub(crate) fn kibibytes(meminfo: &str, key: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let number = value.trim().strip_suffix("kB")?.trim();
        (name == key).then(|| number.parse::<u64>().ok()?.checked_mul(1024))?
    })
}

fn limit(fs: &dyn Filesystem) -> Option<u64> {
    let all = groups(fs, "memory");
    let folders = all.iter().flat_map(|groups| groups.folders.iter().map(|folder| (groups.version, folder)));
    folders.filter_map(|(version, folder)| limit_of(fs, version, folder)).min()
}

/// The limit that a control group sets, in bytes.
fn limit_of(fs: &dyn Filesystem, version: Version, folder: &str) -> Option<u64> {
    let names: &[&str] = match version {
        // The kernel throttles hard from `memory.high` on.
        Version::V2 => &["memory.max", "memory.high"],
        Version::V1 => &["memory.limit_in_bytes"],
    };
    let limits = names.iter().filter_map(|name| fs.read(&format!("{folder}/{name}"))?.trim().parse::<u64>().ok());
    limits.filter(|limit| *limit < NO_LIMIT).min()
}

/// `always [madvise] never`: the one in brackets is in force.
fn huge_pages(text: &str) -> Option<HugePages> {
    let (_, rest) = text.split_once('[')?;
    match rest.split_once(']')?.0 {
        "always" => Some(HugePages::Always),
        "madvise" => Some(HugePages::Madvise),
        "never" => Some(HugePages::Never),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    const MEMINFO: &str = "MemTotal:       8 kB\nMemFree:  1 kB\nMemAvailable:    4 kB\nHugePages_Total:       0\n";

    #[test]
    fn the_limit_of_version_2_is_the_tightest_on_the_way_up() {
        let fs = MemoryTree::new()
            .with("/proc/meminfo", MEMINFO)
            .with("/proc/self/cgroup", "0::/a/b\n")
            .with("/proc/self/mountinfo", "1 2 0:1 / /cg rw - cgroup2 none rw\n")
            .with("/cg/a/b/memory.max", "max\n")
            .with("/cg/a/b/memory.high", "7000\n")
            .with("/cg/a/memory.max", "6000\n")
            .with("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        let memory = Memory::read(&fs, 4096);
        assert_eq!(memory.total_bytes, Some(8192));
        assert_eq!(memory.available_bytes, Some(4096));
        assert_eq!(memory.limit_bytes, Some(6000));
        assert_eq!(memory.usable_bytes(), Some(6000));
        assert_eq!(memory.transparent_huge_pages, Some(HugePages::Madvise));
    }

    #[test]
    fn the_unlimited_of_version_1_is_no_limit() {
        let fs = MemoryTree::new()
            .with("/proc/meminfo", MEMINFO)
            .with("/proc/self/cgroup", "4:memory:/x\n")
            .with("/proc/self/mountinfo", "1 2 0:1 / /cg rw - cgroup none rw,memory\n")
            .with("/cg/x/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(Memory::read(&fs, 4096).usable_bytes(), Some(8192));
        let fs = fs.with("/cg/memory.limit_in_bytes", "5000\n");
        assert_eq!(Memory::read(&fs, 4096).usable_bytes(), Some(5000));
    }

    #[test]
    fn what_is_left_is_cut_by_each_group() {
        let fs = MemoryTree::new()
            .with("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\n")
            .with("/proc/self/cgroup", "0::/a/b\n")
            .with("/proc/self/mountinfo", "1 2 0:1 / /cg rw - cgroup2 none rw\n");
        let free = MemoryUse::read(&fs);
        assert_eq!((free.used_bytes, free.available_bytes, free.limit_bytes), (Some(400 << 10), Some(600 << 10), None));
        let fs = fs
            .with("/cg/a/b/memory.current", "9000\n")
            .with("/cg/a/b/memory.stat", "anon 1\nactive_file 3000\ninactive_file 2000\n")
            .with("/cg/a/b/memory.max", "max\n")
            .with("/cg/a/memory.current", "30000\n")
            .with("/cg/a/memory.max", "40000\n");
        let bound = MemoryUse::read(&fs);
        // The one above holds more, and has less left.
        assert_eq!((bound.group_bytes, bound.limit_bytes), (Some(7000), Some(40_000)));
        assert_eq!(bound.available_bytes, Some(10_000));
        assert_eq!(bound.used_bytes, Some(400 << 10), "that of the machine");
        let first = MemoryTree::new()
            .with("/proc/self/cgroup", "4:memory:/x\n")
            .with("/proc/self/mountinfo", "1 2 0:1 / /cg rw - cgroup none rw,memory\n")
            .with("/cg/x/memory.usage_in_bytes", "500\n")
            .with("/cg/x/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n")
            .with("/cg/x/memory.limit_in_bytes", "2000\n");
        let bound = MemoryUse::read(&first);
        assert_eq!((bound.group_bytes, bound.available_bytes), (Some(400), Some(1600)));
        assert_eq!(MemoryUse::read(&MemoryTree::new()), MemoryUse::default());
    }

    #[test]
    fn resident_pages_are_told_apart() {
        let rollup = "55d0c0-7ffd [rollup]\nRss:  1000 kB\nPss:  700 kB\nPss_Anon: 1 kB\nShared_Clean: 5 kB\n\
                      Anonymous: 300 kB\nSwap: 0 kB\n";
        let fs = MemoryTree::new().with("/proc/self/smaps_rollup", rollup);
        let resident = Resident::read(&fs).unwrap();
        assert_eq!((resident.all_bytes, resident.proportional_bytes), (1_024_000, 716_800));
        assert_eq!((resident.anonymous_bytes, resident.file_bytes), (307_200, 716_800));
        assert_eq!(Resident::read(&MemoryTree::new()), None);
        assert_eq!(Resident::read(&fs.with("/proc/self/smaps_rollup", "Rss: 1 kB\n")), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_pages_of_both_kinds() {
        let resident = Resident::read(&crate::filesystem::RealFilesystem).unwrap();
        assert!(resident.anonymous_bytes > 0 && resident.file_bytes > 0, "{resident:?}");
        assert!(resident.proportional_bytes <= resident.all_bytes, "{resident:?}");
    }

    #[test]
    fn nothing_and_nonsense_are_not_known() {
        for meminfo in ["", "MemTotal: x kB", "MemTotal: 5", "MemTotal: 99999999999999999999 kB"] {
            let fs = MemoryTree::new()
                .with("/proc/meminfo", meminfo)
                .with("/sys/kernel/mm/transparent_hugepage/enabled", "always ]never[");
            let memory = Memory::read(&fs, 16384);
            assert_eq!(memory.usable_bytes(), None);
            assert_eq!(memory.transparent_huge_pages, None);
        }
    }
}
