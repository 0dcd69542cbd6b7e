//! Sensors of chips and firmware, by `/sys/class/hwmon`.
//!
//! Source: the kernel's `Documentation/hwmon/sysfs-interface.rst`; for Arm servers
//! `scmi-hwmon`, whose labels are those that the firmware gives.

use super::{Found, Reading, Scope, Sensor};
use crate::filesystem::Filesystem;

const FOLDER: &str = "/sys/class/hwmon";

/// Adds all counters of energy (`energy*_input`) and measures of power (`power*_input`,
/// else `power*_average`).
pub(super) fn read(fs: &dyn Filesystem, found: &mut Found) {
    let mut chips: Vec<(u32, String)> = fs
        .names(FOLDER)
        .into_iter()
        .filter_map(|name| Some((name.strip_prefix("hwmon")?.parse().ok()?, name)))
        .collect();
    chips.sort_unstable();
    for (_, chip) in chips {
        let folder = format!("{FOLDER}/{chip}");
        let driver = fs.read(&format!("{folder}/name")).unwrap_or_default().trim().to_owned();
        let mut names = fs.names(&folder);
        names.sort_unstable();
        for name in &names {
            let Some((channel, kind)) = name.rsplit_once('_') else { continue };
            let path = format!("{folder}/{name}");
            let reading = match (channel.trim_end_matches(|sign: char| sign.is_ascii_digit()), kind) {
                ("energy", "input") => found.number(fs, &path).map(counter),
                ("power", "input") => found.number(fs, &path).map(power),
                // Where there is nothing else.
                ("power", "average") if !names.contains(&format!("{channel}_input")) => {
                    found.number(fs, &path).map(power)
                }
                _ => None,
            };
            let Some(reading) = reading else { continue };
            let label = fs.read(&format!("{folder}/{channel}_label")).unwrap_or_default().trim().to_owned();
            let scope = scope(&driver, &label);
            let what = if label.is_empty() { channel } else { &label };
            found.sensors.push(Sensor { name: format!("{chip} {driver} {what} {channel}"), scope, reading });
        }
    }
}

fn counter(microjoules: u64) -> Reading {
    Reading::Counter { microjoules, highest: None }
}

fn power(microwatts: u64) -> Reading {
    Reading::Power { microwatts }
}

/// What is measured, as far as names tell. What they do not tell is a part, so that
/// nothing is counted twice.
fn scope(driver: &str, label: &str) -> Scope {
    let label = label.to_lowercase();
    match driver {
        // The ACPI 4.0 power meter of a server's board.
        "power_meter" => Scope::Machine,
        // `Esocket0` beside `Ecore000`.
        "amd_energy" | "zenergy" if label.starts_with("esocket") => Scope::Package,
        // Ampere Altra's `SoC power` holds the others; firmware of SCMI has as many words.
        _ if label.contains("soc") || label.contains("package") || label.contains("socket") => Scope::Package,
        _ if label.contains("dram") || label.contains("dimm") => Scope::Memory,
        _ if label.contains("system") || label.contains("platform") || label.contains("board") => Scope::Machine,
        _ => Scope::Part,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Energy;
    use super::*;
    use crate::filesystem::MemoryTree;

    fn found(files: &[(&str, &str)]) -> Vec<(String, Scope, Reading)> {
        let tree = files
            .iter()
            .fold(MemoryTree::new(), |fs, (name, text)| fs.with(format!("{FOLDER}/{name}"), format!("{text}\n")));
        let energy = Energy::read(&tree);
        energy.sensors().iter().map(|sensor| (sensor.name.clone(), sensor.scope, sensor.reading)).collect()
    }

    #[test]
    fn an_arm_server_shows_what_its_firmware_measures() {
        let found = found(&[
            ("hwmon0/name", "scmi_sensors"),
            ("hwmon0/energy1_input", "123456789"),
            ("hwmon0/energy1_label", "SoC Energy"),
            ("hwmon0/power1_input", "45000000"),
            ("hwmon0/power1_label", "CPU cluster 0"),
            ("hwmon0/temp1_input", "48000"),
            ("hwmon1/name", "nvme"),
            ("hwmon1/temp1_input", "40000"),
        ]);
        assert_eq!(
            found,
            [
                ("hwmon0 scmi_sensors SoC Energy energy1".to_owned(), Scope::Package, counter(123_456_789)),
                ("hwmon0 scmi_sensors CPU cluster 0 power1".to_owned(), Scope::Part, power(45_000_000)),
            ]
        );
    }

    #[test]
    fn sockets_are_not_counted_with_their_cores() {
        let found = found(&[
            ("hwmon3/name", "amd_energy"),
            ("hwmon3/energy1_label", "Ecore000"),
            ("hwmon3/energy1_input", "5"),
            ("hwmon3/energy65_label", "Esocket0"),
            ("hwmon3/energy65_input", "500"),
            ("hwmon4/name", "power_meter"),
            ("hwmon4/power1_average", "300000000"),
            ("hwmon4/power1_average_interval", "1000"),
            ("hwmon4/power1_cap", "1"),
        ]);
        let scopes: Vec<_> = found.iter().map(|(_, scope, reading)| (*scope, *reading)).collect();
        assert_eq!(
            scopes,
            [(Scope::Part, counter(5)), (Scope::Package, counter(500)), (Scope::Machine, power(300_000_000))]
        );
        // An average beside what is measured now says nothing new.
        let found = self::found(&[("hwmon0/power1_input", "1"), ("hwmon0/power1_average", "2")]);
        assert_eq!(found.len(), 1);
    }
}
