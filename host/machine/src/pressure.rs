//! How long work waited for CPUs, memory and disks, from `/proc/pressure`.
//!
//! Source: the kernel's `Documentation/accounting/psi.rst`.

use serde::Serialize;

use crate::filesystem::Filesystem;

/// The pressure on each resource. None where the kernel does not count it: before Linux
/// 4.20, without `CONFIG_PSI`, or where the boot line turns it off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Pressure {
    /// On the CPUs.
    pub cpu: Option<Waited>,
    /// On memory.
    pub memory: Option<Waited>,
    /// On disks.
    pub io: Option<Waited>,
}

/// The part of the time in which at least one thread waited for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Waited {
    /// Over the last ten seconds, in percent.
    pub ten_seconds_percent: f64,
    /// Over the last minute, in percent.
    pub minute_percent: f64,
    /// Over the last five minutes, in percent.
    pub five_minutes_percent: f64,
    /// Since the machine was started, in microseconds.
    pub total_us: u64,
}

impl Pressure {
    /// Reads it.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Self {
        let waited = |name: &str| Waited::parse(&fs.read(&format!("/proc/pressure/{name}"))?);
        Self { cpu: waited("cpu"), memory: waited("memory"), io: waited("io") }
    }
}

impl Waited {
    /// `some avg10=59.02 avg60=52.23 avg300=35.42 total=24747619874`
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let value = |key: &str| line.split(' ').find_map(|field| field.strip_prefix(key)?.strip_prefix('='));
        let percent = |key| value(key)?.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        Some(Self {
            ten_seconds_percent: percent("avg10")?,
            minute_percent: percent("avg60")?,
            five_minutes_percent: percent("avg300")?,
            total_us: value("total")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    #[test]
    fn the_line_of_some_is_read() {
        let fs = MemoryTree::new()
            .with(
                "/proc/pressure/cpu",
                "some avg10=59.02 avg60=52.23 avg300=35.42 total=24747619874\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            )
            .with("/proc/pressure/memory", "full avg10=1.00 avg60=0.00 avg300=0.00 total=0\n");
        let pressure = Pressure::read(&fs);
        let cpu = pressure.cpu.unwrap();
        assert_eq!((cpu.ten_seconds_percent, cpu.five_minutes_percent, cpu.total_us), (59.02, 35.42, 24_747_619_874));
        assert_eq!((pressure.memory, pressure.io), (None, None));
    }

    #[test]
    fn nonsense_is_not_known() {
        for text in [
            "",
            "some",
            "some avg10=a avg60=0 avg300=0 total=0",
            "some avg10=1 avg60=0 total=0",
            "some avg10=101 avg60=0 avg300=0 total=0",
            "some avg10=NaN avg60=0 avg300=0 total=0",
        ] {
            let fs = MemoryTree::new().with("/proc/pressure/io", text);
            assert_eq!(Pressure::read(&fs), Pressure::default(), "{text:?}");
        }
    }
}
