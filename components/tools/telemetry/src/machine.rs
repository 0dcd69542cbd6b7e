//! `machine_info`: what the machine is.

use nala_sdk::telemetry::{self, CacheKind, Machine};
use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Serialize};

use crate::units;

pub(crate) const NAME: &str = "machine_info";

const INPUT: &str = r#"{"type": "object", "properties": {}, "additionalProperties": false}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "architecture": {"type": "string", "description": "x86_64, aarch64 or other"},
    "cpu": {"type": ["string", "null"], "description": "The processor's model"},
    "features": {"type": "array", "items": {"type": "string"}, "description": "Instructions for the arithmetic of models"},
    "sve_vector_bits": {"type": ["integer", "null"]},
    "sme_vector_bits": {"type": ["integer", "null"]},
    "logical_cpus": {"type": ["integer", "null"]},
    "cores": {"type": ["integer", "null"]},
    "granted_threads": {"type": "integer", "description": "Threads that the server computes with at the most"},
    "quota_cpus": {"type": ["number", "null"], "description": "CPUs that the server's container is limited to"},
    "caches": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "level": {"type": "integer"},
          "kind": {"enum": ["data", "instruction", "unified"]},
          "bytes": {"type": "integer"},
          "shared_by": {"type": "integer", "description": "CPUs"},
          "count": {"type": "integer"}
        },
        "required": ["level", "kind", "bytes", "shared_by", "count"]
      }
    },
    "clusters": {"type": "array", "items": {"type": "string"}, "description": "CPUs that share a cache of the last level"},
    "numa_nodes": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "number": {"type": "integer"},
          "cpus": {"type": "string"},
          "memory_bytes": {"type": ["integer", "null"]}
        },
        "required": ["number", "cpus", "memory_bytes"]
      }
    },
    "memory_bytes": {"type": ["integer", "null"]},
    "memory_limit_bytes": {"type": ["integer", "null"], "description": "What the server's container may use of it"}
  },
  "required": ["architecture", "cpu", "features", "logical_cpus", "cores", "granted_threads", "caches", "memory_bytes"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {}

#[derive(Serialize)]
struct Told<'a> {
    architecture: &'a str,
    cpu: Option<&'a str>,
    features: &'a [String],
    sve_vector_bits: Option<u32>,
    sme_vector_bits: Option<u32>,
    logical_cpus: Option<u32>,
    cores: Option<u32>,
    granted_threads: u32,
    quota_cpus: Option<f64>,
    caches: Vec<ToldCache>,
    clusters: &'a [String],
    numa_nodes: Vec<ToldNode<'a>>,
    memory_bytes: Option<u64>,
    memory_limit_bytes: Option<u64>,
}

#[derive(Serialize)]
struct ToldCache {
    level: u8,
    kind: &'static str,
    bytes: u64,
    shared_by: u32,
    count: u32,
}

#[derive(Serialize)]
struct ToldNode<'a> {
    number: u32,
    cpus: &'a str,
    memory_bytes: Option<u64>,
}

pub(crate) fn tool() -> Tool {
    let what = "Tells what the machine is that this model runs on: processor and its features, cores, caches, NUMA \
                nodes and memory.";
    Tool::new(NAME, what, INPUT).titled("Machine").answering(OUTPUT).read_only()
}

pub(crate) fn call(arguments: &str) -> Result<Answer, Error> {
    let Arguments {} = crate::arguments(arguments)?;
    Ok(telemetry::machine().map_or_else(crate::refused, |machine| tell(&machine)))
}

fn tell(machine: &Machine) -> Answer {
    let bits = |bytes: Option<u32>| bytes.map(|bytes| bytes.saturating_mul(8));
    let told = Told {
        architecture: &machine.architecture,
        cpu: machine.cpu_model.as_deref(),
        features: &machine.features,
        sve_vector_bits: bits(machine.sve_vector_bytes),
        sme_vector_bits: bits(machine.sme_vector_bytes),
        logical_cpus: machine.logical_cpus,
        cores: machine.cores,
        granted_threads: machine.granted_threads,
        quota_cpus: machine.quota_millicpus.map(|quota| f64::from(quota) / 1000.0),
        caches: machine
            .caches
            .iter()
            .map(|cache| ToldCache {
                level: cache.level,
                kind: kind(cache.kind),
                bytes: cache.size_bytes,
                shared_by: cache.shared_by,
                count: cache.count,
            })
            .collect(),
        clusters: &machine.clusters,
        numa_nodes: machine
            .nodes
            .iter()
            .map(|node| ToldNode { number: node.number, cpus: &node.cpus, memory_bytes: node.memory_bytes })
            .collect(),
        memory_bytes: machine.memory_bytes,
        memory_limit_bytes: machine.memory_limit_bytes,
    };
    crate::answer(text(machine, &told), &told)
}

fn kind(kind: CacheKind) -> &'static str {
    match kind {
        CacheKind::Data => "data",
        CacheKind::Instruction => "instruction",
        CacheKind::Unified => "unified",
    }
}

fn text(machine: &Machine, told: &Told<'_>) -> String {
    let number = |number: Option<u32>| number.map_or("an unknown number of".to_owned(), |number| number.to_string());
    let mut lines = vec![format!("CPU: {} ({})", told.cpu.unwrap_or("unknown"), told.architecture)];
    lines.push(format!(
        "{} logical CPUs, {} cores; the server computes with up to {}{}",
        number(told.logical_cpus),
        number(told.cores),
        units::count(told.granted_threads.into(), "thread"),
        told.quota_cpus.map(|cpus| format!(" (limited to {cpus} CPUs)")).unwrap_or_default(),
    ));
    if !told.features.is_empty() {
        lines.push(format!("Features: {}", told.features.join(" ")));
    }
    for (name, bits) in [("SVE", told.sve_vector_bits), ("SME", told.sme_vector_bits)] {
        lines.extend(bits.map(|bits| format!("{name} vectors: {bits} bits")));
    }
    let cache = |cache: &ToldCache| {
        let kind = match cache.kind {
            "data" => "d",
            "instruction" => "i",
            _ => "",
        };
        format!("{} L{}{kind} of {}", cache.count, cache.level, units::bytes(cache.bytes))
    };
    if !told.caches.is_empty() {
        lines.push(format!("Caches: {}", told.caches.iter().map(cache).collect::<Vec<_>>().join(", ")));
    }
    if machine.nodes.len() > 1 {
        let node = |node: &ToldNode<'_>| {
            let memory = node.memory_bytes.map_or("unknown memory".to_owned(), units::bytes);
            format!("node {} has CPUs {} and {memory}", node.number, node.cpus)
        };
        lines.push(format!("NUMA: {}", told.numa_nodes.iter().map(node).collect::<Vec<_>>().join("; ")));
    }
    let limit = told.memory_limit_bytes.map(|limit| format!(", the server may use {}", units::bytes(limit)));
    let memory = told.memory_bytes.map_or("unknown".to_owned(), units::bytes);
    lines.push(format!("Memory: {memory}{}", limit.unwrap_or_default()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use nala_sdk::telemetry::{Cache, NumaNode};
    use nala_sdk::tools::Content;

    use super::*;

    #[test]
    fn a_machine_is_told_in_words_and_as_json() {
        let cache = |level, kind, size_bytes, shared_by, count| Cache {
            level,
            kind,
            size_bytes,
            line_bytes: Some(64),
            shared_by,
            count,
        };
        let node = |number: u32| NumaNode {
            number,
            cpus: format!("{}-{}", number * 2, number * 2 + 1),
            memory_bytes: Some(8 << 30),
        };
        let machine = Machine {
            architecture: "aarch64".to_owned(),
            cpu_model: Some("Arm Neoverse V1".to_owned()),
            features: vec!["asimddp".to_owned(), "i8mm".to_owned(), "sve".to_owned()],
            sve_vector_bytes: Some(32),
            sme_vector_bytes: None,
            logical_cpus: Some(4),
            cores: Some(4),
            granted_threads: 1,
            quota_millicpus: Some(1500),
            caches: vec![cache(1, CacheKind::Data, 64 << 10, 1, 4), cache(3, CacheKind::Unified, 32 << 20, 4, 1)],
            clusters: vec!["0-3".to_owned()],
            nodes: vec![node(0), node(1)],
            memory_bytes: Some(16 << 30),
            memory_limit_bytes: None,
            page_bytes: 4096,
        };
        let answer = tell(&machine);
        let Content::Text(text) = &answer.content[0] else { panic!("{answer:?}") };
        assert_eq!(
            text,
            "CPU: Arm Neoverse V1 (aarch64)\n\
             4 logical CPUs, 4 cores; the server computes with up to 1 thread (limited to 1.5 CPUs)\n\
             Features: asimddp i8mm sve\n\
             SVE vectors: 256 bits\n\
             Caches: 4 L1d of 64 KiB, 1 L3 of 32 MiB\n\
             NUMA: node 0 has CPUs 0-1 and 8 GiB; node 1 has CPUs 2-3 and 8 GiB\n\
             Memory: 16 GiB"
        );
        let json: serde_json::Value = serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap();
        assert_eq!((&json["sve_vector_bits"], &json["quota_cpus"]), (&256.into(), &1.5.into()), "{json}");
        let schema: serde_json::Value = serde_json::from_str(OUTPUT).unwrap();
        for name in json.as_object().unwrap().keys() {
            assert!(schema["properties"].get(name).is_some(), "{name} is in no schema");
        }
    }
}
