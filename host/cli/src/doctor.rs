//! `nala-host doctor`: what this machine has, which kernels are active, every
//! default in force, and what is wrong.

mod defaults;
mod problems;

use std::io::Write;

use nala_machine::{CacheGroup, CacheKind, Energy, Machine, NumaNode};
use nala_models::{DEFAULT_MODEL, Listed, Store};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{DoctorArgs, OutputFormat};
use crate::console::Help;
use crate::models::mebibytes;
use crate::{model, version};

/// Something that is not as it should be.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) fix: String,
}

impl Problem {
    fn to_error(&self) -> anyhow::Error {
        Help { what: self.what.clone(), help: self.fix.clone() }.into()
    }
}

/// A default in force.
#[derive(Debug, Serialize)]
pub(crate) struct Setting {
    pub(crate) section: &'static str,
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) meaning: &'static str,
}

/// Runs the verb. Problems are printed and are no failure of the verb, but for
/// those of a model that was asked about.
///
/// # Errors
/// Standard output cannot be written, there is no folder for models, or the
/// model that was named cannot be served.
pub(crate) fn main(args: &DoctorArgs) -> anyhow::Result<()> {
    let machine = Machine::probe();
    let energy = Energy::now();
    let kernels = nala_llama::system_info();
    let store = Store::open_default()?;
    let listed = store.list()?;
    let settings = defaults::all(&machine);
    let mut problems = problems::of_machine(&machine);
    let named: Vec<&str> = args.model.iter().map(|model| model.source.as_str()).collect();
    let looked_at = if named.is_empty() { &[DEFAULT_MODEL][..] } else { &named };
    let of_models: Vec<Problem> =
        looked_at.iter().filter_map(|model| problems::of_model(&machine, &store, model)).collect();
    let unusable = of_models.first().filter(|_| !named.is_empty()).map(Problem::to_error);
    problems.extend(of_models);
    let mut out = std::io::stdout().lock();
    match args.output.format {
        OutputFormat::Json => {
            let report = json!({
                "version": version::long(),
                "machine": machine,
                "energy": energy,
                "kernels": kernels_json(&kernels),
                "models": {
                    "folder": store.dir(),
                    "known": listed.iter().map(model::listed_json).collect::<Vec<_>>(),
                },
                "defaults": settings,
                "problems": problems,
            });
            writeln!(out, "{report:#}")?;
        }
        OutputFormat::Text => {
            writeln!(out, "nala-host {}", version::long().replace('\n', ", "))?;
            print_machine(&mut out, &machine, &energy)?;
            writeln!(out, "\nKernels (llama.cpp)\n  {kernels}")?;
            print_models(&mut out, &store, &listed)?;
            print_settings(&mut out, &settings)?;
            print_problems(&mut out, &problems)?;
        }
    }
    unusable.map_or(Ok(()), Err)
}

/// `NAME = 1` pairs as an object; sections (`CPU :`) are left out.
fn kernels_json(text: &str) -> Value {
    let pairs = text.split('|').filter_map(|part| {
        let part = part.rsplit(':').next()?;
        let (name, value) = part.split_once('=')?;
        Some((name.trim().to_owned(), Value::from(value.trim())))
    });
    Value::Object(pairs.collect())
}

fn print_machine(out: &mut impl Write, machine: &Machine, energy: &Energy) -> std::io::Result<()> {
    let unknown = || "unknown".to_owned();
    let bytes = |value: Option<u64>| value.map_or_else(unknown, mebibytes);
    let count = |value: Option<usize>| value.map_or_else(unknown, |count| count.to_string());
    let quota = match &machine.grant.quota {
        Some(quota) => format!(", quota {:.2} CPUs ({})", quota.cpus(), quota.group),
        None => String::new(),
    };
    let limit = match machine.memory.limit_bytes {
        Some(limit) => format!(", limited to {}", mebibytes(limit)),
        None => String::new(),
    };
    let features: Vec<&str> = machine.cpu.features.iter().map(String::as_str).collect();
    writeln!(out, "\nMachine")?;
    writeln!(out, "  CPU       {}", machine.cpu.model.clone().unwrap_or_else(unknown))?;
    writeln!(out, "  features  {}", features.join(" "))?;
    writeln!(
        out,
        "  granted   {} threads of {} CPUs ({} cores, {} NUMA nodes){quota}",
        machine.grant.threads,
        count(machine.topology.logical_cpus),
        count(machine.topology.cores),
        machine.topology.numa_nodes,
    )?;
    writeln!(
        out,
        "  memory    {}, {} available{limit}",
        bytes(machine.memory.total_bytes),
        bytes(machine.memory.available_bytes),
    )?;
    for (name, bytes) in [("SVE", machine.cpu.sve_vector_bytes), ("SME", machine.cpu.sme_vector_bytes)] {
        if let Some(bytes) = bytes {
            writeln!(out, "  {name}       vectors of {} bits", bytes.saturating_mul(8))?;
        }
    }
    let caches: Vec<String> = machine.caches.groups().iter().map(cache).collect();
    writeln!(out, "  caches    {}", if caches.is_empty() { unknown() } else { caches.join(", ") })?;
    for node in machine.topology.nodes.iter().filter(|_| machine.topology.nodes.len() > 1) {
        let NumaNode { number, cpus, memory_bytes, .. } = node;
        writeln!(out, "  node {number:<4} CPUs {cpus}, {}", bytes(*memory_bytes))?;
    }
    writeln!(out, "  energy    {}", sensors(energy))
}

/// Caches that are alike, in a few words.
fn cache(group: &CacheGroup) -> String {
    let kind = match group.kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    let shared = match group.shared_by {
        1 => String::new(),
        more => format!(" for {more} CPUs each"),
    };
    format!("{} L{}{kind} of {} KiB{shared}", group.count, group.level, group.size_bytes >> 10)
}

fn sensors(energy: &Energy) -> String {
    match energy {
        Energy::Measured { sensors } => {
            let names: Vec<&str> = sensors.iter().map(|sensor| sensor.name.as_str()).collect();
            names.join(", ")
        }
        Energy::Unavailable { why } => format!("unavailable: {why}"),
    }
}

fn print_models(out: &mut impl Write, store: &Store, listed: &[Listed]) -> std::io::Result<()> {
    writeln!(out, "\nModels in {}", store.dir().display())?;
    for model in listed {
        let state = model::listed_json(model);
        let state = state.get("state").and_then(Value::as_str).unwrap_or_default().to_owned();
        writeln!(out, "  {}  {state}", model.name)?;
    }
    Ok(())
}

fn print_settings(out: &mut impl Write, settings: &[Setting]) -> std::io::Result<()> {
    let mut section = "";
    for setting in settings {
        if setting.section != section {
            section = setting.section;
            writeln!(out, "\nDefaults: {section}")?;
        }
        writeln!(out, "  {:18} {:26} {}", setting.name, setting.value, setting.meaning)?;
    }
    Ok(())
}

fn print_problems(out: &mut impl Write, problems: &[Problem]) -> std::io::Result<()> {
    if problems.is_empty() {
        return writeln!(out, "\nNo problems found.");
    }
    writeln!(out, "\nProblems")?;
    for problem in problems {
        writeln!(out, "  {}\n    fix: {}", problem.what, problem.fix)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nala_machine::MemoryTree;

    use super::*;

    #[test]
    fn what_is_known_of_a_machine_is_printed_and_what_is_missing_says_why() {
        let at = |name: &str| format!("/sys/devices/system/cpu/cpu0/cache/index0/{name}");
        let fs = MemoryTree::new()
            .with("/sys/devices/system/cpu/online", "0-1\n")
            .with(at("level"), "3\n")
            .with(at("type"), "Unified\n")
            .with(at("size"), "36864K\n")
            .with(at("shared_cpu_list"), "0-1\n")
            .with("/proc/cpuinfo", "Features : asimddp sve\n")
            .with("/proc/sys/abi/sve_default_vector_length", "32\n")
            .with("/sys/devices/system/node/node0/cpulist", "0\n")
            .with("/sys/devices/system/node/node1/cpulist", "1\n")
            .with("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 2048 kB\n");
        let print = |fs: &MemoryTree| {
            let mut out = Vec::new();
            let machine = Machine::probe_of(fs, &(0..2).collect());
            print_machine(&mut out, &machine, &Energy::read(fs)).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = print(&fs);
        for line in [
            "caches    1 L3 of 36864 KiB for 2 CPUs each",
            "SVE       vectors of 256 bits",
            "node 1    CPUs 1, 2.0 MiB",
            "energy    unavailable: no energy sensor",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        let fs = fs
            .with("/sys/class/hwmon/hwmon0/name", "scmi_sensors\n")
            .with("/sys/class/hwmon/hwmon0/energy1_input", "1\n");
        assert!(print(&fs).contains("energy    hwmon0 scmi_sensors energy1"), "{}", print(&fs));
        assert!(print(&MemoryTree::new()).contains("caches    unknown"));
    }

    #[test]
    fn llama_cpps_line_is_read_as_pairs() {
        let json = kernels_json("CPU : SSE3 = 1 | AVX2 = 1 | OPENMP = 0 | ");
        assert_eq!(json, json!({"SSE3": "1", "AVX2": "1", "OPENMP": "0"}));
    }
}
