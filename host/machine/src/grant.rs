//! How many CPUs this process may really use: the scheduler's affinity, cut by
//! the CPU quota of every control group above it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::cgroup::{Groups, Version, groups};
use crate::filesystem::{Filesystem, RealFilesystem};

/// The CPUs that the scheduler may run a process on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Affinity {
    cpus: BTreeSet<usize>,
}

impl Affinity {
    /// Of the calling process. When the system does not tell (more CPUs than
    /// its mask holds), what the standard library finds.
    #[must_use]
    pub fn of_this_process() -> Self {
        match rustix::thread::sched_getaffinity(None) {
            Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
            Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
        }
    }

    /// The logical CPUs, by their numbers.
    pub fn cpus(&self) -> impl Iterator<Item = usize> {
        self.cpus.iter().copied()
    }

    /// How many they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether there is none, which no running process sees.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }
}

impl FromIterator<usize> for Affinity {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self { cpus: cpus.into_iter().collect() }
    }
}

/// CPU time that a control group grants in each period.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quota {
    /// CPU time in each period, in microseconds.
    pub quota_us: u64,
    /// The period, in microseconds.
    pub period_us: u64,
    /// The folder of the control group that sets it.
    pub group: String,
}

impl Quota {
    /// The quota in CPUs, such as 1.5.
    #[must_use]
    pub fn cpus(&self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }

    /// The whole CPUs in it, at least one.
    fn whole_cpus(&self) -> usize {
        let whole = self.quota_us.checked_div(self.period_us).unwrap_or(1);
        usize::try_from(whole).unwrap_or(usize::MAX).max(1)
    }
}

/// What CPUs this process is granted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuGrant {
    /// Where the scheduler may run this process.
    pub affinity: Affinity,
    /// The tightest quota of the control groups, if any limits.
    pub quota: Option<Quota>,
    /// How many threads should compute.
    ///
    /// The logical CPUs of the affinity, but no more than the whole CPUs of the
    /// quota: a quota of 1.5 gives one thread, since a second would have every
    /// step of a batch wait for the half of a period in which it is throttled.
    /// SMT siblings count as CPUs: decoding waits for memory and gains a little
    /// from them or loses nothing, and the tuner can say fewer.
    pub threads: usize,
}

/// What this process is granted.
#[must_use]
pub fn granted_cpus() -> CpuGrant {
    granted_cpus_of(&RealFilesystem, &Affinity::of_this_process())
}

/// What a process with this affinity is granted on the machine of `fs`.
#[must_use]
pub fn granted_cpus_of(fs: &dyn Filesystem, affinity: &Affinity) -> CpuGrant {
    let quota =
        groups(fs, "cpu").iter().flat_map(|groups| quotas(fs, groups)).min_by(|a, b| a.cpus().total_cmp(&b.cpus()));
    let whole = quota.as_ref().map_or(usize::MAX, Quota::whole_cpus);
    CpuGrant { affinity: affinity.clone(), threads: affinity.len().min(whole).max(1), quota }
}

fn quotas(fs: &dyn Filesystem, groups: &Groups) -> Vec<Quota> {
    let read = |folder: &String| {
        let number = |name: &str| fs.read(&format!("{folder}/{name}"))?.trim().parse().ok();
        let (quota_us, period_us) = match groups.version {
            // `150000 100000`, or `max 100000` without a limit.
            Version::V2 => {
                let text = fs.read(&format!("{folder}/cpu.max"))?;
                let mut fields = text.split_whitespace();
                let quota = fields.next()?.parse().ok()?;
                (quota, fields.next().map_or(Some(100_000), |p| p.parse().ok())?)
            }
            // -1 without a limit, which is no u64.
            Version::V1 => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
        };
        (quota_us > 0 && period_us > 0).then(|| Quota { quota_us, period_us, group: folder.clone() })
    };
    groups.folders.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::filesystem::MemoryTree;

    fn v2(cgroup: &str) -> MemoryTree {
        MemoryTree::new()
            .with("/proc/self/cgroup", cgroup)
            .with("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    }

    fn v1() -> MemoryTree {
        MemoryTree::new().with("/proc/self/cgroup", "2:cpu,cpuacct:/pod/one\n1:memory:/\n0::/\n").with(
            "/proc/self/mountinfo",
            "1 2 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 1 2 0:1 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )
    }

    fn threads(fs: &MemoryTree, cpus: usize) -> usize {
        granted_cpus_of(fs, &(0..cpus).collect()).threads
    }

    #[test]
    fn without_a_quota_the_affinity_decides() {
        assert_eq!(threads(&MemoryTree::new(), 6), 6);
        assert_eq!(threads(&v2("0::/\n"), 6), 6);
        assert_eq!(threads(&v2("0::/a\n").with("/sys/fs/cgroup/a/cpu.max", "max 100000\n"), 6), 6);
        assert_eq!(threads(&MemoryTree::new(), 0), 1);
    }

    #[test]
    fn a_quota_is_rounded_down_to_whole_cpus_and_at_least_one() {
        for (text, expected) in [
            ("150000 100000\n", 1),
            ("50000 100000\n", 1),
            ("200000 100000\n", 2),
            ("399999 100000\n", 3),
            ("25000 10000\n", 2),
            ("300000\n", 3),
            ("9000000 100000\n", 8),
        ] {
            let fs = v2("0::/a\n").with("/sys/fs/cgroup/a/cpu.max", text);
            assert_eq!(threads(&fs, 8), expected, "{text}");
        }
    }

    #[test]
    fn the_tightest_group_on_the_way_up_binds() {
        let fs = v2("0::/pod/box/leaf\n")
            .with("/sys/fs/cgroup/pod/box/leaf/cpu.max", "800000 100000")
            .with("/sys/fs/cgroup/pod/box/cpu.max", "max 100000")
            .with("/sys/fs/cgroup/pod/cpu.max", "300000 100000");
        let grant = granted_cpus_of(&fs, &(0..8).collect());
        assert_eq!(grant.threads, 3);
        let quota = grant.quota.unwrap();
        assert_eq!(quota.group, "/sys/fs/cgroup/pod");
        assert!((quota.cpus() - 3.0).abs() < 1e-9);
    }

    #[test]
    fn version_1_has_its_own_files() {
        let fs = v1()
            .with("/sys/fs/cgroup/cpu/pod/one/cpu.cfs_quota_us", "-1\n")
            .with("/sys/fs/cgroup/cpu/pod/one/cpu.cfs_period_us", "100000\n");
        assert_eq!(threads(&fs, 8), 8);
        let fs = fs
            .with("/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us", "250000\n")
            .with("/sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "100000\n");
        assert_eq!(threads(&fs, 8), 2);
    }

    #[test]
    fn malformed_limits_do_not_count() {
        for text in ["", "x y", "0 0", "100000 0", "-5 100000", "100000 x", "99999999999999999999 1"] {
            let fs = v2("0::/a\n").with("/sys/fs/cgroup/a/cpu.max", text);
            assert_eq!(threads(&fs, 4), 4, "{text:?}");
        }
    }

    #[test]
    fn this_process_is_granted_something() {
        let grant = granted_cpus();
        assert!(grant.threads >= 1 && grant.threads <= grant.affinity.len());
    }

    proptest! {
        #[test]
        fn any_contents_give_between_one_and_all_cpus(
            cgroup in "[0-2]:(cpu|):/[a./]{0,6}\n",
            max in "(max|[0-9]{1,22}) ?[0-9]{0,22}",
            cpus in 1_usize..64,
        ) {
            let fs = v2(&cgroup).with("/sys/fs/cgroup/cpu.max", max);
            let threads = threads(&fs, cpus);
            prop_assert!((1..=cpus).contains(&threads));
        }
    }
}
