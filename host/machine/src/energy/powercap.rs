//! RAPL, by `/sys/class/powercap`.
//!
//! Source: the kernel's `Documentation/power/powercap/powercap.rst`.

use super::{Found, Reading, Scope, Sensor};
use crate::filesystem::Filesystem;

const FOLDER: &str = "/sys/class/powercap";

/// Adds all zones that count energy. `intel-rapl:0` is a processor (AMD's too), and
/// `intel-rapl:0:1` a part of it; the same counters are shown again under
/// `intel-rapl-mmio`, and are left out.
pub(super) fn read(fs: &dyn Filesystem, found: &mut Found) {
    let mut zones: Vec<String> =
        fs.names(FOLDER).into_iter().filter(|zone| zone.contains(':') && !zone.contains("-mmio")).collect();
    zones.sort_unstable();
    for zone in zones {
        let Some(microjoules) = found.number(fs, &format!("{FOLDER}/{zone}/energy_uj")) else { continue };
        let highest = found.number(fs, &format!("{FOLDER}/{zone}/max_energy_range_uj")).filter(|range| *range > 0);
        let name = fs.read(&format!("{FOLDER}/{zone}/name")).unwrap_or_default();
        let name = name.trim();
        let scope = match name {
            "psys" => Scope::Machine,
            // Not a part of the package, though it stands below it.
            "dram" => Scope::Memory,
            // A die of a package is a zone of its own, such as `package-0-die-1`.
            _ if name.starts_with("package-") => Scope::Package,
            _ => Scope::Part,
        };
        let reading = Reading::Counter { microjoules, highest };
        found.sensors.push(Sensor { name: format!("{zone} {name}").trim_end().to_owned(), scope, reading });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Energy;
    use super::*;
    use crate::filesystem::MemoryTree;

    fn zone(fs: MemoryTree, zone: &str, name: &str, microjoules: &str) -> MemoryTree {
        fs.with(format!("{FOLDER}/{zone}/name"), format!("{name}\n"))
            .with(format!("{FOLDER}/{zone}/energy_uj"), format!("{microjoules}\n"))
            .with(format!("{FOLDER}/{zone}/max_energy_range_uj"), "262143328850\n")
    }

    #[test]
    fn packages_parts_and_memory_are_told_apart() {
        let mut fs = MemoryTree::new().with(format!("{FOLDER}/intel-rapl/enabled"), "1\n");
        for (at, name) in [
            ("intel-rapl:0", "package-0"),
            ("intel-rapl:0:0", "core"),
            ("intel-rapl:0:1", "dram"),
            ("intel-rapl:1", "package-1"),
            ("intel-rapl:2", "psys"),
            ("intel-rapl-mmio:0", "package-0"),
        ] {
            fs = zone(fs, at, name, "77");
        }
        let fs = zone(fs, "intel-rapl:3", "package-2", "nonsense");
        let energy = Energy::read(&fs);
        let found: Vec<_> = energy.sensors().iter().map(|sensor| (sensor.name.as_str(), sensor.scope)).collect();
        assert_eq!(
            found,
            [
                ("intel-rapl:0 package-0", Scope::Package),
                ("intel-rapl:0:0 core", Scope::Part),
                ("intel-rapl:0:1 dram", Scope::Memory),
                ("intel-rapl:1 package-1", Scope::Package),
                ("intel-rapl:2 psys", Scope::Machine),
            ]
        );
        let expected = Reading::Counter { microjoules: 77, highest: Some(262_143_328_850) };
        assert_eq!(energy.sensors()[0].reading, expected);
        let json = serde_json::to_value(&energy).unwrap();
        assert_eq!(json["sensors"][0]["counter"]["microjoules"], 77, "{json}");
    }
}
