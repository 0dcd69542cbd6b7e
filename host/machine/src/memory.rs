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
fn kibibytes(meminfo: &str, key: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let number = value.trim().strip_suffix("kB")?.trim();
        (name == key).then(|| number.parse::<u64>().ok()?.checked_mul(1024))?
    })
}

fn limit(fs: &dyn Filesystem) -> Option<u64> {
    let limits = groups(fs, "memory").into_iter().flat_map(|groups| {
        let names: &[&str] = match groups.version {
            // The kernel throttles hard from `memory.high` on.
            Version::V2 => &["memory.max", "memory.high"],
            Version::V1 => &["memory.limit_in_bytes"],
        };
        let paths =
            groups.folders.into_iter().flat_map(move |folder| names.iter().map(move |name| format!("{folder}/{name}")));
        paths.filter_map(|path| fs.read(&path)?.trim().parse::<u64>().ok())
    });
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
