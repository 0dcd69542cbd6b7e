//! Whole machines, as trees of files.

use super::*;

/// Two CPUs of an Arm server in the cloud: a core each, one cache of the last level.
fn graviton() -> MemoryTree {
    let cpu = "processor\t: 0\nFeatures\t: fp asimd asimdhp asimddp sve i8mm bf16 svei8mm svebf16 sve2\n\
               CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n";
    let mut fs = MemoryTree::new()
        .with("/proc/cpuinfo", cpu.repeat(2))
        .with("/proc/sys/abi/sve_default_vector_length", "16\n")
        .with("/sys/devices/system/cpu/online", "0-1\n")
        .with("/sys/devices/system/node/node0/cpulist", "0-1\n")
        .with("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 16000000 kB\n")
        .with("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
        .with("/proc/loadavg", "1.50 1.00 0.50 2/100 1\n")
        .with("/proc/stat", "cpu  10 0 10 80 0 0 0 0 0 0\n")
        .with("/sys/class/hwmon/hwmon0/name", "scmi_sensors\n")
        .with("/sys/class/hwmon/hwmon0/energy1_input", "5000000\n")
        .with("/sys/class/hwmon/hwmon0/energy1_label", "SoC\n");
    for cpu in 0..2 {
        fs = fs.with(format!("/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"), format!("{cpu}\n"));
        for (index, level, size, shared) in [(0, 1, "64K", cpu.to_string()), (3, 3, "36864K", "0-1".to_owned())] {
            let at = |name: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
            fs = fs
                .with(at("level"), format!("{level}\n"))
                .with(at("type"), if level == 1 { "Data\n" } else { "Unified\n" })
                .with(at("size"), format!("{size}\n"))
                .with(at("shared_cpu_list"), format!("{shared}\n"));
        }
    }
    fs
}

#[test]
fn an_arm_server_is_told_whole() {
    let fs = graviton();
    let machine = Machine::probe_of(&fs, &(0..2).collect());
    assert_eq!(machine.cpu.model.as_deref(), Some("Arm Neoverse V2"));
    assert!(["asimddp", "i8mm", "bf16", "sve2"].iter().all(|feature| machine.cpu.has(feature)));
    assert_eq!(machine.cpu.sve_vector_bytes, Some(16));
    assert_eq!((machine.topology.cores, machine.topology.nodes.len()), (Some(2), 1));
    assert_eq!(machine.topology.nodes[0].memory_bytes, Some(16_384_000_000));
    assert_eq!(machine.caches.clusters().iter().map(CpuList::to_string).collect::<Vec<_>>(), ["0-1"]);
    let load = Load::read(&fs, 100);
    assert_eq!(load.averages.unwrap().one_minute, 1.5);
    assert_eq!(load.cpu.unwrap().busy_us, 200_000);
    assert_eq!(load.memory.used_bytes, Some(8_192_000_000));
    let later = fs.with("/sys/class/hwmon/hwmon0/energy1_input", "7000000\n");
    let spent = Energy::read(&later).spent_since(&Energy::read(&graviton()), std::time::Duration::from_secs(1));
    assert_eq!(spent.map(|spent| (spent.microjoules, spent.by)), Some((2_000_000, Method::Counters)));
}

#[test]
fn an_x86_server_with_siblings_and_rapl_is_told_whole() {
    let mut fs = MemoryTree::new()
        .with("/proc/cpuinfo", "model name : Xeon\nflags : avx2 avx512f amx_int8\ncpu MHz : 2000.0\n")
        .with("/sys/devices/system/cpu/online", "0-3\n")
        .with("/sys/class/powercap/intel-rapl:0/name", "package-0\n")
        .with("/sys/class/powercap/intel-rapl:0/energy_uj", "99\n")
        .with("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n")
        .with("/sys/class/thermal/thermal_zone0/temp", "51000\n");
    for cpu in 0..4 {
        let siblings = format!("{},{}\n", cpu % 2, cpu % 2 + 2);
        fs = fs.with(format!("/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"), siblings);
    }
    let machine = Machine::probe_of(&fs, &(0..4).collect());
    assert_eq!((machine.topology.logical_cpus, machine.topology.cores), (Some(4), Some(2)));
    assert!(machine.cpu.has("amx_int8") && machine.cpu.sve_vector_bytes.is_none());
    let load = Load::read(&fs, 100);
    assert_eq!(load.clock_rate.unwrap().highest_khz, 2_000_000);
    assert_eq!(load.temperatures[0].celsius, 51.0);
    assert_eq!(Energy::read(&fs).sensors().len(), 1);
}

#[test]
fn a_container_that_hides_everything_is_no_error() {
    let fs = MemoryTree::new().with("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\n");
    let machine = Machine::probe_of(&fs, &(0..1).collect());
    assert_eq!((machine.topology.numa_nodes, machine.caches.iter().count()), (1, 0));
    assert_eq!(machine.memory.total_bytes, Some(1_024_000));
    assert!(matches!(Energy::read(&fs), Energy::Unavailable { .. }));
    let load = Load::read(&fs, 100);
    assert!(load.averages.is_none() && load.cpu.is_none() && load.pressure == Pressure::default());
    // And all of it can be told as JSON.
    let json = serde_json::to_value((&machine, &load)).unwrap();
    assert_eq!(json[1]["memory"]["used_bytes"], 512_000, "{json}");
}
