//! How much the machine has to do now: load averages, CPU time, memory, pressure, clock
//! rates and temperatures, read together.

use std::time::Duration;

use serde::Serialize;

use crate::cgroup::{Version, groups};
use crate::filesystem::{Filesystem, RealFilesystem};
use crate::heat::{ClockRate, Temperature};
use crate::memory::MemoryUse;
use crate::pressure::Pressure;

/// What [`Load::now`] finds. Counters count since the machine was started; the difference
/// of two readings is what happened between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Load {
    /// Threads that ran or wanted to, on average. None: the system does not tell.
    pub averages: Option<LoadAverages>,
    /// CPU time of the whole machine.
    pub cpu: Option<CpuTimes>,
    /// CPU time of this process's control group.
    pub group: Option<GroupCpu>,
    /// Memory.
    pub memory: MemoryUse,
    /// How long work waited for each resource.
    pub pressure: Pressure,
    /// How fast the CPUs run.
    pub clock_rate: Option<ClockRate>,
    /// How warm its parts are. Empty where there is no sensor.
    pub temperatures: Vec<Temperature>,
}

/// Threads that ran or wanted to (Linux counts those too that waited for a disk), on
/// average over the last minutes. From `/proc/loadavg` (`proc_loadavg(5)`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LoadAverages {
    /// Over one minute.
    pub one_minute: f64,
    /// Over five.
    pub five_minutes: f64,
    /// Over fifteen.
    pub fifteen_minutes: f64,
}

/// What all CPUs of the machine did with their time. From `/proc/stat` (`proc_stat(5)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CpuTimes {
    /// Time that something ran, in microseconds over all CPUs.
    pub busy_us: u64,
    /// Time that something wanted to run while a hypervisor let others, in microseconds.
    pub stolen_us: u64,
    /// All of the time, idle or not, in microseconds over all CPUs.
    pub total_us: u64,
}

/// What the control group of this process did with its CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct GroupCpu {
    /// What it used, in microseconds.
    pub used_us: u64,
    /// How long its threads were kept from running by a quota, of it or of a group above
    /// it, in microseconds.
    pub throttled_us: u64,
}

impl Load {
    /// That of this machine. It reads some twenty small files, and one for each clock of
    /// CPUs and each sensor: where blocking is fine.
    #[must_use]
    pub fn now() -> Self {
        Self::read(&RealFilesystem, rustix::param::clock_ticks_per_second())
    }

    /// That of the machine that `fs` describes, whose kernel counts CPU time in so many
    /// parts of a second.
    #[must_use]
    pub fn read(fs: &dyn Filesystem, ticks_per_second: u64) -> Self {
        Self {
            averages: LoadAverages::read(fs),
            cpu: CpuTimes::read(fs, ticks_per_second),
            group: GroupCpu::read(fs),
            memory: MemoryUse::read(fs),
            pressure: Pressure::read(fs),
            clock_rate: ClockRate::read(fs),
            temperatures: Temperature::read_all(fs),
        }
    }
}

impl LoadAverages {
    /// Reads them.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Option<Self> {
        let text = fs.read("/proc/loadavg")?;
        let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>().ok().filter(|n| n.is_finite()));
        Some(Self { one_minute: numbers.next()??, five_minutes: numbers.next()??, fifteen_minutes: numbers.next()?? })
    }
}

impl CpuTimes {
    /// Reads them, where the kernel counts so many parts of a second.
    #[must_use]
    pub fn read(fs: &dyn Filesystem, ticks_per_second: u64) -> Option<Self> {
        let text = fs.read("/proc/stat")?;
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; what follows is a part of the
        // first two.
        let fields: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or(0);
        fields.get(3)?;
        let (idle, stolen) = (field(3).saturating_add(field(4)), field(7));
        let total = fields.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
        let micros = |ticks: u64| ticks.saturating_mul(1_000_000) / ticks_per_second.max(1);
        Some(Self {
            busy_us: micros(total.saturating_sub(idle).saturating_sub(stolen)),
            stolen_us: micros(stolen),
            total_us: micros(total),
        })
    }

    /// Which part of the machine's CPU time was used since an earlier reading, from 0 to 1.
    /// None: no time has passed that the kernel counts.
    #[must_use]
    pub fn used_since(&self, earlier: &Self) -> Option<f64> {
        let total = self.total_us.checked_sub(earlier.total_us).filter(|total| *total > 0)?;
        // Counters of idle time may go back a little, so that more was used than there was.
        let busy = self.busy_us.saturating_sub(earlier.busy_us).min(total);
        Some(busy as f64 / total as f64)
    }
}

impl GroupCpu {
    /// Reads it. None: the group does not count it.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Option<Self> {
        let number = |text: &str, key: &str| {
            text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
        };
        let mut used_us = None;
        let mut throttled_us = 0_u64;
        for groups in groups(fs, "cpu") {
            for (depth, folder) in groups.folders.iter().enumerate() {
                let Some(stat) = fs.read(&format!("{folder}/cpu.stat")) else { continue };
                let throttled = match groups.version {
                    Version::V2 => number(&stat, "throttled_usec"),
                    // In nanoseconds.
                    Version::V1 => number(&stat, "throttled_time").map(|time| time / 1000),
                };
                throttled_us = throttled_us.saturating_add(throttled.unwrap_or(0));
                if depth == 0 && groups.version == Version::V2 {
                    used_us = used_us.or_else(|| number(&stat, "usage_usec"));
                }
            }
        }
        for groups in groups(fs, "cpuacct") {
            let first = groups.folders.first().filter(|_| groups.version == Version::V1);
            let used = first.and_then(|folder| fs.read(&format!("{folder}/cpuacct.usage"))?.trim().parse::<u64>().ok());
            used_us = used.map(|nanoseconds| nanoseconds / 1000).or(used_us);
        }
        used_us.map(|used_us| Self { used_us, throttled_us })
    }

    /// How many CPUs it had since an earlier reading, on average over the time between.
    #[must_use]
    pub fn cpus_since(&self, earlier: &Self, time: Duration) -> Option<f64> {
        let used = self.used_us.checked_sub(earlier.used_us)?;
        (!time.is_zero()).then(|| used as f64 / time.as_micros() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    #[test]
    fn averages_are_three_numbers() {
        let read = |text: &str| LoadAverages::read(&MemoryTree::new().with("/proc/loadavg", text));
        let averages = read("9.72 5.98 3.61 6/132 17073\n").unwrap();
        assert_eq!((averages.one_minute, averages.fifteen_minutes), (9.72, 3.61));
        for text in ["", "1.0 2.0", "a b c", "1 nan 2"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn use_is_the_difference_of_two_readings() {
        let read = |text: &str| CpuTimes::read(&MemoryTree::new().with("/proc/stat", text), 100);
        let before = read("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3 4\n").unwrap();
        assert_eq!((before.busy_us, before.total_us), (2_000_000, 10_000_000));
        // 30 ticks busy and 10 stolen, of 100.
        let after = read("cpu  120 0 110 760 100 0 0 10 60 0\n").unwrap();
        assert_eq!(after.stolen_us, 100_000);
        assert!((after.used_since(&before).unwrap() - 0.3).abs() < 1e-9);
        assert_eq!(before.used_since(&after), None, "time does not go back");
        assert_eq!(before.used_since(&before), None);
        // Idle time that went back.
        let back = read("cpu  200 0 110 695 100 0 0 0 0 0\n").unwrap();
        assert_eq!(back.used_since(&before), Some(1.0));
        for text in ["", "cpu", "cpu  1 2 3", "cpu  a b c d", "cpu0 1 2 3 4"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_group_counts_what_it_used_and_waited() {
        let fs = MemoryTree::new()
            .with("/proc/self/cgroup", "0::/pod/box\n")
            .with("/proc/self/mountinfo", "1 2 0:1 / /cg rw - cgroup2 none rw\n")
            .with("/cg/pod/box/cpu.stat", "usage_usec 5000\nuser_usec 1\nnr_throttled 0\nthrottled_usec 0\n")
            .with("/cg/pod/cpu.stat", "usage_usec 9000\nnr_throttled 3\nthrottled_usec 700\n");
        let before = GroupCpu::read(&fs).unwrap();
        assert_eq!(before, GroupCpu { used_us: 5000, throttled_us: 700 });
        let after = GroupCpu { used_us: 8000, ..before };
        assert!((after.cpus_since(&before, Duration::from_millis(2)).unwrap() - 1.5).abs() < 1e-9);
        assert_eq!(after.cpus_since(&before, Duration::ZERO), None);
        let first = MemoryTree::new()
            .with("/proc/self/cgroup", "2:cpuacct:/x\n1:cpu:/x\n")
            .with(
                "/proc/self/mountinfo",
                "1 2 0:1 / /cg/cpu rw - cgroup c rw,cpu\n1 2 0:2 / /cg/acct rw - cgroup c rw,cpuacct\n",
            )
            .with("/cg/cpu/x/cpu.stat", "nr_periods 1\nthrottled_time 4000\n")
            .with("/cg/acct/x/cpuacct.usage", "7000000\n");
        assert_eq!(GroupCpu::read(&first), Some(GroupCpu { used_us: 7000, throttled_us: 4 }));
        assert_eq!(GroupCpu::read(&MemoryTree::new()), None);
    }

    #[test]
    fn a_container_without_anything_has_a_load_of_nothing() {
        assert_eq!(Load::read(&MemoryTree::new(), 100), Load::default());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_a_load() {
        let load = Load::now();
        assert!(load.averages.is_some() && load.cpu.is_some_and(|cpu| cpu.total_us > cpu.busy_us), "{load:?}");
        assert!(load.memory.used_bytes < load.memory.total_bytes, "{load:?}");
    }
}
