//! How fast the CPUs run, and how warm the machine is.
//!
//! Sources: the kernel's `Documentation/admin-guide/pm/cpufreq.rst` and
//! `Documentation/driver-api/thermal/sysfs-api.rst`.

use serde::Serialize;

use crate::filesystem::Filesystem;

/// Temperatures that are read at the most: some machines have a zone for each core.
const MOST_ZONES: usize = 64;

/// The rates at which CPUs run now. CPUs that change together count once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockRate {
    /// The slowest, in kHz.
    pub lowest_khz: u64,
    /// The fastest, in kHz.
    pub highest_khz: u64,
    /// The most that any may run at, in kHz. None: the system does not tell.
    pub limit_khz: Option<u64>,
}

/// How warm something is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Temperature {
    /// What, as the kernel calls it, such as `x86_pkg_temp`.
    pub zone: String,
    /// In degrees Celsius.
    pub celsius: f64,
}

impl ClockRate {
    /// Reads them. None: the system does not tell, as most virtual machines.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Option<Self> {
        const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
        let names = fs.names(FOLDER);
        let number = |policy: &String, name: &str| fs.read(&format!("{FOLDER}/{policy}/{name}"))?.trim().parse().ok();
        let policies = || names.iter().filter(|name| name.starts_with("policy"));
        let mut now: Vec<u64> = policies().filter_map(|policy| number(policy, "scaling_cur_freq")).collect();
        if now.is_empty() {
            now = of_cpuinfo(&fs.read("/proc/cpuinfo").unwrap_or_default());
        }
        Some(Self {
            lowest_khz: now.iter().copied().min()?,
            highest_khz: now.iter().copied().max()?,
            limit_khz: policies().filter_map(|policy| number(policy, "scaling_max_freq")).max(),
        })
    }
}

/// `cpu MHz : 2100.000`, which x86 has.
fn of_cpuinfo(text: &str) -> Vec<u64> {
    let values = text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() == "cpu MHz");
    let megahertz = values.filter_map(|(_, value)| value.trim().parse::<f64>().ok());
    megahertz.filter(|value| (1.0..1e6).contains(value)).map(|value| (value * 1000.0) as u64).collect()
}

impl Temperature {
    /// All that there are.
    #[must_use]
    pub fn read_all(fs: &dyn Filesystem) -> Vec<Self> {
        const FOLDER: &str = "/sys/class/thermal";
        let mut zones: Vec<(u32, String)> = fs
            .names(FOLDER)
            .into_iter()
            .filter_map(|name| Some((name.strip_prefix("thermal_zone")?.parse().ok()?, name)))
            .collect();
        zones.sort_unstable();
        let read = |(_, zone): (u32, String)| {
            let text = |name: &str| fs.read(&format!("{FOLDER}/{zone}/{name}"));
            let millidegrees: i32 = text("temp")?.trim().parse().ok()?;
            let name = text("type").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
            Some(Self { zone: name.unwrap_or(zone), celsius: f64::from(millidegrees) / 1000.0 })
        };
        zones.into_iter().take(MOST_ZONES).filter_map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    #[test]
    fn policies_come_before_cpuinfo() {
        let cpuinfo = "cpu MHz\t\t: 2100.5\ncpu MHz\t\t: 3000.000\ncpu MHz : inf\n";
        let fs = MemoryTree::new().with("/proc/cpuinfo", cpuinfo);
        let rate = ClockRate::read(&fs).unwrap();
        assert_eq!((rate.lowest_khz, rate.highest_khz, rate.limit_khz), (2_100_500, 3_000_000, None));
        let at = |policy: u32, name: &str| format!("/sys/devices/system/cpu/cpufreq/policy{policy}/{name}");
        let fs = fs
            .with(at(0, "scaling_cur_freq"), "600000\n")
            .with(at(0, "scaling_max_freq"), "1800000\n")
            .with(at(4, "scaling_cur_freq"), "2400000\n")
            .with(at(4, "scaling_max_freq"), "2800000\n");
        let rate = ClockRate::read(&fs).unwrap();
        assert_eq!((rate.lowest_khz, rate.highest_khz, rate.limit_khz), (600_000, 2_400_000, Some(2_800_000)));
        assert_eq!(ClockRate::read(&MemoryTree::new()), None);
    }

    #[test]
    fn zones_are_read_in_their_order_and_broken_ones_left_out() {
        let at = |zone: u32, name: &str| format!("/sys/class/thermal/thermal_zone{zone}/{name}");
        let fs = MemoryTree::new()
            .with(at(10, "type"), "soc\n")
            .with(at(10, "temp"), "-1500\n")
            .with(at(2, "type"), "x86_pkg_temp\n")
            .with(at(2, "temp"), "48250\n")
            .with(at(3, "type"), "iwlwifi\n")
            .with(at(4, "temp"), "20000\n")
            .with("/sys/class/thermal/cooling_device0/type", "Processor\n");
        let zones: Vec<_> = Temperature::read_all(&fs).into_iter().map(|zone| (zone.zone, zone.celsius)).collect();
        let expected = [("x86_pkg_temp", 48.25), ("thermal_zone4", 20.0), ("soc", -1.5)];
        assert_eq!(zones, expected.map(|(name, celsius)| (name.to_owned(), celsius)));
    }
}
