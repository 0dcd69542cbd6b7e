//! What the machine's energy sensors show.
//!
//! There are two families. Powercap has the counters of RAPL, which most x86 servers
//! have ([`powercap`]). Hwmon has what chips and firmware measure, on Arm servers by SCMI,
//! on others by ACPI or a driver of their own ([`hwmon`]). Most virtual machines have
//! neither, and since Linux 5.10 only root may read RAPL's counters
//! (`Documentation/power/powercap/powercap.rst`, CVE-2020-8694): so what is missing is told
//! with the reason.

mod hwmon;
mod powercap;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::filesystem::{Filesystem, RealFilesystem};

/// What sensors show at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Energy {
    /// At least one can be read.
    Measured {
        /// Those that can be read, each with another name.
        sensors: Vec<Sensor>,
    },
    /// None can be read.
    Unavailable {
        /// Why, and what to do about it.
        why: String,
    },
}

/// One sensor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensor {
    /// Where it is and what it measures, such as `intel-rapl:0 package-0`.
    pub name: String,
    /// What it measures.
    pub scope: Scope,
    /// What it shows.
    #[serde(flatten)]
    pub reading: Reading,
}

/// What a sensor measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All of the machine.
    Machine,
    /// A processor.
    Package,
    /// Memory, which no processor counts.
    Memory,
    /// A part of what another sensor measures, or something that cannot be told from the
    /// sensor's name.
    Part,
}

/// What a sensor shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The energy since it began to count.
    Counter {
        /// In microjoules.
        microjoules: u64,
        /// The highest number, after which it begins at zero again. None: it does not.
        highest: Option<u64>,
    },
    /// The power at the moment, or on average over a short time of the sensor's choice.
    Power {
        /// In microwatts.
        microwatts: u64,
    },
}

/// What was used between two readings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spent {
    /// In microjoules.
    pub microjoules: u64,
    /// Of what.
    pub scope: Scope,
    /// How that is known.
    pub by: Method,
}

/// How an amount of energy is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// By counters, which miss nothing.
    Counters,
    /// By the power at both ends, as if it had been even between them.
    Power,
}

impl Reading {
    /// The energy since an earlier reading of the same sensor, a time ago, in microjoules.
    /// None: it has begun anew.
    fn since(self, earlier: Self, time: Duration) -> Option<(u64, Method)> {
        match (self, earlier) {
            (Self::Counter { microjoules, highest }, Self::Counter { microjoules: before, .. }) => {
                let spent = microjoules.checked_sub(before).or_else(|| {
                    // From the old number to the highest, and one to zero.
                    highest?.checked_sub(before)?.checked_add(microjoules)?.checked_add(1)
                });
                Some((spent?, Method::Counters))
            }
            (Self::Power { microwatts }, Self::Power { microwatts: before }) => {
                let mean = microwatts.midpoint(before);
                Some(((mean as f64 * time.as_secs_f64()) as u64, Method::Power))
            }
            _ => None,
        }
    }
}

impl Energy {
    /// That of this machine.
    #[must_use]
    pub fn now() -> Self {
        Self::read(&RealFilesystem)
    }

    /// That of the machine that `fs` describes.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Self {
        let mut found = Found::default();
        powercap::read(fs, &mut found);
        hwmon::read(fs, &mut found);
        found.into_energy()
    }

    /// The sensors that can be read.
    #[must_use]
    pub fn sensors(&self) -> &[Sensor] {
        match self {
            Self::Measured { sensors } => sensors,
            Self::Unavailable { .. } => &[],
        }
    }

    /// What the machine has used since an earlier reading, a time ago: by a sensor of all
    /// of it, else by those of its processors and of memory. None: no sensor tells, or one
    /// has begun anew.
    #[must_use]
    pub fn spent_since(&self, earlier: &Self, time: Duration) -> Option<Spent> {
        let before: BTreeMap<&str, Reading> =
            earlier.sensors().iter().map(|sensor| (sensor.name.as_str(), sensor.reading)).collect();
        let of = |scope: Scope, is_meant: fn(&Reading) -> bool| {
            let all: Vec<_> =
                self.sensors().iter().filter(|sensor| sensor.scope == scope && is_meant(&sensor.reading)).collect();
            let spent = all.iter().map(|sensor| sensor.reading.since(*before.get(sensor.name.as_str())?, time));
            let spent: Option<Vec<_>> = spent.collect();
            spent.filter(|spent| !spent.is_empty())
        };
        // Counters before the power at two moments.
        let best = |scope| {
            of(scope, |reading| matches!(reading, Reading::Counter { .. }))
                .or_else(|| of(scope, |reading| matches!(reading, Reading::Power { .. })))
        };
        let sum = |parts: Vec<(u64, Method)>, scope| {
            let by = parts.first()?.1;
            let microjoules = parts.iter().fold(0_u64, |sum, (spent, _)| sum.saturating_add(*spent));
            Some(Spent { microjoules, scope, by })
        };
        // One of the whole machine, since two of them would count it twice.
        if let Some(whole) = best(Scope::Machine) {
            return sum(whole.into_iter().take(1).collect(), Scope::Machine);
        }
        let mut packages = sum(best(Scope::Package)?, Scope::Package)?;
        if let Some(memory) = best(Scope::Memory).and_then(|memory| sum(memory, Scope::Memory)) {
            packages.microjoules = packages.microjoules.saturating_add(memory.microjoules);
        }
        Some(packages)
    }
}

/// What a look at both families has found so far.
#[derive(Default)]
struct Found {
    sensors: Vec<Sensor>,
    /// Files of sensors that cannot be read, with the reason.
    refused: Vec<(String, io::Error)>,
}

impl Found {
    /// A number in a file of a sensor, which is noted where it is there and cannot be read.
    fn number(&mut self, fs: &dyn Filesystem, path: &str) -> Option<u64> {
        match fs.try_read(path) {
            Ok(text) => text.trim().parse().ok(),
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.refused.push((path.to_owned(), error));
                }
                None
            }
        }
    }

    fn into_energy(self) -> Energy {
        if !self.sensors.is_empty() {
            return Energy::Measured { sensors: self.sensors };
        }
        let why = match self.refused.first() {
            None => "no energy sensor: neither /sys/class/powercap nor /sys/class/hwmon shows one, as in most virtual \
                     machines"
                .to_owned(),
            Some((path, error)) => format!(
                "{} cannot be read ({error}): let the user read it that nala-host runs as, or run it as root",
                match self.refused.len() {
                    1 => path.clone(),
                    more => format!("{path} and {} more", more - 1),
                }
            ),
        };
        Energy::Unavailable { why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    fn sensor(name: &str, scope: Scope, reading: Reading) -> Sensor {
        Sensor { name: name.to_owned(), scope, reading }
    }

    fn counter(microjoules: u64) -> Reading {
        Reading::Counter { microjoules, highest: Some(1000) }
    }

    fn spent(before: Vec<Sensor>, after: Vec<Sensor>) -> Option<(u64, Scope, Method)> {
        let (before, after) = (Energy::Measured { sensors: before }, Energy::Measured { sensors: after });
        let spent = after.spent_since(&before, Duration::from_secs(2))?;
        Some((spent.microjoules, spent.scope, spent.by))
    }

    #[test]
    fn counters_go_round() {
        let of = |reading| vec![sensor("a", Scope::Package, reading)];
        assert_eq!(spent(of(counter(100)), of(counter(350))), Some((250, Scope::Package, Method::Counters)));
        // 990 to 1000, to 0, to 5.
        assert_eq!(spent(of(counter(990)), of(counter(5))), Some((16, Scope::Package, Method::Counters)));
        let endless = |microjoules| of(Reading::Counter { microjoules, highest: None });
        assert_eq!(spent(endless(990), endless(5)), None, "it has begun anew");
        let power = |microwatts| of(Reading::Power { microwatts });
        assert_eq!(spent(power(1_000_000), power(3_000_000)), Some((4_000_000, Scope::Package, Method::Power)));
        assert_eq!(spent(power(1), of(counter(1))), None);
    }

    #[test]
    fn nothing_is_counted_twice() {
        let all = |by: u64| {
            vec![
                sensor("cores", Scope::Part, counter(by)),
                sensor("one", Scope::Package, counter(2 * by)),
                sensor("other", Scope::Package, counter(3 * by)),
                sensor("ram", Scope::Memory, counter(by)),
            ]
        };
        assert_eq!(spent(all(0), all(10)), Some((60, Scope::Package, Method::Counters)));
        let with_whole = |by: u64| [all(by), vec![sensor("psys", Scope::Machine, counter(9 * by))]].concat();
        assert_eq!(spent(with_whole(0), with_whole(10)), Some((90, Scope::Machine, Method::Counters)));
        // A new one of which nothing is known before.
        assert_eq!(spent(vec![sensor("one", Scope::Package, counter(0))], all(10)), None);
        assert_eq!(spent(all(0), vec![sensor("cores", Scope::Part, counter(10))]), None);
    }

    #[test]
    fn what_is_missing_is_told_with_the_reason() {
        let why = |fs: &MemoryTree| match Energy::read(fs) {
            Energy::Unavailable { why } => why,
            energy => panic!("{energy:?}"),
        };
        assert!(why(&MemoryTree::new()).contains("no energy sensor"));
        let package = "/sys/class/powercap/intel-rapl:0";
        let fs =
            MemoryTree::new().with(format!("{package}/name"), "package-0\n").forbidding(format!("{package}/energy_uj"));
        let told = why(&fs);
        assert!(told.contains("intel-rapl:0/energy_uj") && told.contains("permission denied"), "{told}");
        let json = serde_json::to_value(Energy::read(&fs)).unwrap();
        assert_eq!(json["state"], "unavailable");
    }
}
