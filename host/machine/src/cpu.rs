//! The processor's name and instruction set, from `/proc/cpuinfo`.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::filesystem::Filesystem;

/// Features that matter for the arithmetic of models, as the kernel spells
/// them: `flags` on x86-64, `Features` on aarch64
/// (`Documentation/arch/arm64/elf_hwcaps.rst`).
const OF_INTEREST: &[&str] = &[
    // x86-64
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    // aarch64
    "asimd",
    "asimdhp",
    "asimddp",
    "fphp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
    "sve2p1",
    "svei8mm",
    "svebf16",
    "svef32mm",
    "sveb16b16",
    "asimdfhm",
    "sme",
    "sme2",
    "sme2p1",
    "smei8i32",
    "smei16i32",
    "smef16f32",
    "smeb16f32",
    "smef16f16",
    "smefa64",
];

/// How many bytes a vector has that a program begins with, of each scalable extension
/// (`Documentation/arch/arm64/sve.rst` and `sme.rst`).
const VECTORS: (&str, &str) = ("/proc/sys/abi/sve_default_vector_length", "/proc/sys/abi/sme_default_vector_length");

/// Names of Arm cores by implementer and part.
/// Source: `arch/arm64/include/asm/cputype.h`.
const ARM_PARTS: &[(&str, &str, &str)] = &[
    ("0x41", "0xd03", "Arm Cortex-A53"),
    ("0x41", "0xd08", "Arm Cortex-A72"),
    ("0x41", "0xd0b", "Arm Cortex-A76"),
    ("0x41", "0xd0c", "Arm Neoverse N1"),
    ("0x41", "0xd40", "Arm Neoverse V1"),
    ("0x41", "0xd49", "Arm Neoverse N2"),
    ("0x41", "0xd4f", "Arm Neoverse V2"),
    ("0x41", "0xd84", "Arm Neoverse V3"),
    ("0x41", "0xd8e", "Arm Neoverse N3"),
    ("0xc0", "0xac3", "Ampere AmpereOne"),
    ("0x61", "0x022", "Apple M1"),
];

/// The processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// The instruction set this program was built for.
    pub architecture: Architecture,
    /// The model, such as `Arm Neoverse V2`; none when the kernel hides it.
    pub model: Option<String>,
    /// Features that matter here and that every CPU has, as the kernel spells
    /// them.
    pub features: BTreeSet<String>,
    /// Bytes of a vector of SVE, as programs begin with. None: the CPUs have no SVE, or the
    /// kernel does not tell.
    pub sve_vector_bytes: Option<u32>,
    /// The same of SME, in streaming mode.
    pub sme_vector_bytes: Option<u32>,
}

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// Another one, for which Nala has no kernels of its own.
    Other,
}

impl Architecture {
    /// Of this program.
    #[must_use]
    pub fn of_this_program() -> Self {
        match std::env::consts::ARCH {
            "x86_64" => Self::X86_64,
            "aarch64" => Self::Aarch64,
            _ => Self::Other,
        }
    }
}

impl Cpu {
    /// Reads it.
    #[must_use]
    pub fn read(fs: &dyn Filesystem) -> Self {
        let text = fs.read("/proc/cpuinfo").unwrap_or_default();
        let features = features(&text);
        let bytes = |feature, path| {
            let text = if features.contains(feature) { fs.read(path)? } else { return None };
            text.trim().parse::<u32>().ok().filter(|bytes| *bytes > 0)
        };
        let (sve_vector_bytes, sme_vector_bytes) = (bytes("sve", VECTORS.0), bytes("sme", VECTORS.1));
        let (architecture, model) = (Architecture::of_this_program(), model(&text));
        Self { architecture, model, features, sve_vector_bytes, sme_vector_bytes }
    }

    /// Whether every CPU has the feature, as the kernel spells it.
    #[must_use]
    pub fn has(&self, feature: &str) -> bool {
        self.features.contains(feature)
    }
}

/// Every value of a line `key : value`.
fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(move |(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

fn model(text: &str) -> Option<String> {
    if let Some(name) = values(text, "model name").find(|name| !name.is_empty()) {
        return Some(name.to_owned());
    }
    let implementer = values(text, "CPU implementer").next()?;
    let part = values(text, "CPU part").next()?;
    let known = ARM_PARTS.iter().find(|(i, p, _)| *i == implementer && *p == part);
    Some(match known {
        Some((.., name)) => (*name).to_owned(),
        None => format!("implementer {implementer}, part {part}"),
    })
}

/// Those that every CPU has: cores of one chip may differ.
fn features(text: &str) -> BTreeSet<String> {
    let mut common: Option<BTreeSet<&str>> = None;
    for line in values(text, "flags").chain(values(text, "Features")) {
        let all: BTreeSet<&str> = line.split_whitespace().collect();
        common = Some(match common {
            None => all,
            Some(before) => before.intersection(&all).copied().collect(),
        });
    }
    let common = common.unwrap_or_default();
    OF_INTEREST.iter().filter(|feature| common.contains(*feature)).map(|feature| (*feature).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    const GRAVITON: &str = "processor\t: 0\nBogoMIPS\t: 2100.00\n\
        Features\t: fp asimd evtstrm aes fphp asimdhp asimddp sve i8mm bf16 svei8mm sve2 rng\n\
        CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n\n\
        processor\t: 1\nFeatures\t: fp asimd asimddp sve i8mm\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n";

    fn read(cpuinfo: &str) -> Cpu {
        Cpu::read(&MemoryTree::new().with("/proc/cpuinfo", cpuinfo))
    }

    #[test]
    fn an_arm_server_is_recognised_by_its_part() {
        let cpu = read(GRAVITON);
        assert_eq!(cpu.model.as_deref(), Some("Arm Neoverse V2"));
        assert!(cpu.has("i8mm") && cpu.has("asimddp") && cpu.has("sve"));
        assert!(!cpu.has("sme"));
        // Only the first CPU has it.
        assert!(!cpu.has("bf16"));
    }

    #[test]
    fn vectors_have_a_length_where_there_are_any() {
        let fs = MemoryTree::new().with(VECTORS.0, "64\n").with(VECTORS.1, "256\n");
        let cpu = Cpu::read(&fs.clone().with("/proc/cpuinfo", GRAVITON));
        assert_eq!((cpu.sve_vector_bytes, cpu.sme_vector_bytes), (Some(64), None), "it has no SME");
        let cpu = Cpu::read(&fs.with("/proc/cpuinfo", "Features : asimd sme sme2\n"));
        assert_eq!((cpu.sve_vector_bytes, cpu.sme_vector_bytes), (None, Some(256)));
        for text in ["", "0\n", "many\n", "-16\n"] {
            let fs = MemoryTree::new().with("/proc/cpuinfo", GRAVITON).with(VECTORS.0, text);
            assert_eq!(Cpu::read(&fs).sve_vector_bytes, None, "{text:?}");
        }
    }

    #[test]
    fn an_x86_server_names_itself() {
        let cpu = read("model name\t: Intel(R) Xeon(R) Processor\nflags\t\t: fpu avx2 fma amx_int8\n");
        assert_eq!(cpu.model.as_deref(), Some("Intel(R) Xeon(R) Processor"));
        assert_eq!(cpu.features.iter().map(String::as_str).collect::<Vec<_>>(), ["amx_int8", "avx2", "fma"]);
    }

    #[test]
    fn unknown_parts_and_nonsense_are_told_as_they_are() {
        let cpu = read("CPU implementer : 0x99\nCPU part : 0x001\n");
        assert_eq!(cpu.model.as_deref(), Some("implementer 0x99, part 0x001"));
        for text in ["", ":::\nflags\n", "model name:\n"] {
            let cpu = read(text);
            assert_eq!(cpu.model, None);
            assert!(cpu.features.is_empty());
        }
    }

    #[test]
    fn a_probe_serialises() {
        let fs = MemoryTree::new().with("/proc/cpuinfo", GRAVITON);
        let machine = crate::Machine::probe_of(&fs, &(0..2).collect());
        let json = serde_json::to_value(&machine).unwrap();
        assert_eq!(json["grant"]["threads"], 2);
        assert_eq!(json["cpu"]["model"], "Arm Neoverse V2");
        assert_eq!(json["topology"]["numa_nodes"], 1);
    }
}
