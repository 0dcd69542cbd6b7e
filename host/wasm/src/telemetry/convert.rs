//! From readings to what a guest is shown.

use std::time::Duration;

use nala_engine::ModelState as EngineState;
use nala_machine::{self as machine, CpuList};

use super::Fineness;
use super::bindings::nala::machine::telemetry as wit;
use super::readings::{ModelMoment, Moment};

/// Numbers that are rounded down to whole steps where they are to be.
impl Fineness {
    fn whole(self, number: u64, step: u64) -> u64 {
        match self {
            Self::Exact => number,
            Self::Coarse => number - number % step,
        }
    }

    fn part(self, number: f64, steps_of_one: f64) -> f64 {
        match self {
            Self::Exact => number,
            Self::Coarse => (number * steps_of_one).round() / steps_of_one,
        }
    }

    /// Bytes, to 64 MiB.
    fn bytes(self, bytes: u64) -> u64 {
        self.whole(bytes, 64 << 20)
    }

    /// Microseconds that are counted, to a tenth of a second.
    fn micros(self, micros: u64) -> u64 {
        self.whole(micros, 100_000)
    }

    /// Energy and power, to whole joules and watts.
    fn joules(self, millionths: u64) -> u64 {
        self.whole(millionths, 1_000_000)
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn short(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What the machine has. Only what the host is granted of memory may change with others.
pub(super) fn machine(machine: &machine::Machine, fineness: Fineness) -> wit::Machine {
    let machine::Machine { cpu, grant, topology, memory, caches } = machine;
    let architecture = match cpu.architecture {
        machine::Architecture::X86_64 => "x86_64",
        machine::Architecture::Aarch64 => "aarch64",
        machine::Architecture::Other => "other",
    };
    wit::Machine {
        architecture: architecture.to_owned(),
        cpu_model: cpu.model.clone(),
        features: cpu.features.iter().cloned().collect(),
        sve_vector_bytes: cpu.sve_vector_bytes,
        sme_vector_bytes: cpu.sme_vector_bytes,
        logical_cpus: topology.logical_cpus.map(count),
        cores: topology.cores.map(count),
        granted_threads: count(grant.threads),
        quota_millicpus: grant.quota.as_ref().map(|quota| (quota.cpus() * 1000.0) as u32),
        caches: caches.groups().into_iter().map(cache).collect(),
        clusters: caches.clusters().iter().map(CpuList::to_string).collect(),
        nodes: topology
            .nodes
            .iter()
            .map(|node| wit::NumaNode {
                number: node.number,
                cpus: node.cpus.to_string(),
                memory_bytes: node.memory_bytes,
            })
            .collect(),
        memory_bytes: memory.total_bytes,
        memory_limit_bytes: memory.limit_bytes.map(|bytes| fineness.bytes(bytes)),
        page_bytes: count(memory.page_bytes),
    }
}

fn cache(group: machine::CacheGroup) -> wit::Cache {
    wit::Cache {
        level: group.level,
        kind: match group.kind {
            machine::CacheKind::Data => wit::CacheKind::Data,
            machine::CacheKind::Instruction => wit::CacheKind::Instruction,
            machine::CacheKind::Unified => wit::CacheKind::Unified,
        },
        size_bytes: group.size_bytes,
        line_bytes: group.line_bytes.map(short),
        shared_by: count(group.shared_by),
        count: count(group.count),
    }
}

/// How much it has to do.
pub(super) fn load(moment: &Moment, fineness: Fineness) -> wit::Load {
    let Moment { load, energy, busy, at_ms, .. } = moment;
    let machine::Load { averages, cpu, group, memory, pressure, clock_rate, temperatures } = load;
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| fineness.bytes(bytes));
    let tenth = |number: f64| fineness.part(number, 10.0);
    wit::Load {
        at_ms: *at_ms,
        averages: averages.map(|averages| wit::LoadAverages {
            one_minute: tenth(averages.one_minute),
            five_minutes: tenth(averages.five_minutes),
            fifteen_minutes: tenth(averages.fifteen_minutes),
        }),
        cpu_use: busy.map(|(busy, over)| wit::CpuUse { busy: fineness.part(busy, 20.0), over_ms: millis(over) }),
        cpu: cpu.map(|cpu| wit::CpuTimes {
            busy_us: fineness.micros(cpu.busy_us),
            stolen_us: fineness.micros(cpu.stolen_us),
            total_us: fineness.micros(cpu.total_us),
        }),
        group: group.map(|group| wit::GroupCpu {
            used_us: fineness.micros(group.used_us),
            throttled_us: fineness.micros(group.throttled_us),
        }),
        memory: wit::MemoryUse {
            total_bytes: memory.total_bytes,
            used_bytes: bytes(memory.used_bytes),
            available_bytes: bytes(memory.available_bytes),
            group_bytes: bytes(memory.group_bytes),
            limit_bytes: bytes(memory.limit_bytes),
        },
        pressure: wit::Pressure {
            cpu: pressure.cpu.map(|one| waited(one, fineness)),
            memory: pressure.memory.map(|one| waited(one, fineness)),
            io: pressure.io.map(|one| waited(one, fineness)),
        },
        clock_rate: clock_rate.map(|rate| wit::ClockRate {
            lowest_khz: fineness.whole(rate.lowest_khz, 100_000),
            highest_khz: fineness.whole(rate.highest_khz, 100_000),
            limit_khz: rate.limit_khz,
        }),
        temperatures: temperatures
            .iter()
            .map(|one| wit::Temperature { zone: one.zone.clone(), celsius: fineness.part(one.celsius, 1.0) })
            .collect(),
        energy: match energy {
            machine::Energy::Measured { sensors } => {
                wit::Energy::Measured(sensors.iter().map(|one| sensor(one, fineness)).collect())
            }
            machine::Energy::Unavailable { why } => wit::Energy::Unavailable(why.clone()),
        },
    }
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn waited(waited: machine::Waited, fineness: Fineness) -> wit::Waited {
    let percent = |percent| fineness.part(percent, 1.0);
    wit::Waited {
        ten_seconds_percent: percent(waited.ten_seconds_percent),
        minute_percent: percent(waited.minute_percent),
        five_minutes_percent: percent(waited.five_minutes_percent),
        total_us: fineness.micros(waited.total_us),
    }
}

fn sensor(sensor: &machine::Sensor, fineness: Fineness) -> wit::EnergySensor {
    wit::EnergySensor {
        name: sensor.name.clone(),
        scope: match sensor.scope {
            machine::Scope::Machine => wit::EnergyScope::Machine,
            machine::Scope::Package => wit::EnergyScope::Package,
            machine::Scope::Memory => wit::EnergyScope::Memory,
            machine::Scope::Part => wit::EnergyScope::Part,
        },
        reading: match sensor.reading {
            machine::Reading::Counter { microjoules, highest } => {
                wit::EnergyReading::Counter(wit::EnergyCounter { microjoules: fineness.joules(microjoules), highest })
            }
            machine::Reading::Power { microwatts } => wit::EnergyReading::Power(fineness.joules(microwatts)),
        },
    }
}

/// What a model does.
pub(super) fn model(moment: &ModelMoment, fineness: Fineness) -> wit::Model {
    let (cells, tokens) = (|cells| fineness.whole(cells, 256), |tokens| fineness.whole(tokens, 100));
    wit::Model {
        name: moment.name.to_string(),
        state: match moment.state {
            EngineState::Unloaded => wit::ModelState::Unloaded,
            EngineState::Loading => wit::ModelState::Loading,
            EngineState::Loaded => wit::ModelState::Loaded,
            EngineState::Unloading => wit::ModelState::Unloading,
        },
        at_ms: moment.at_ms,
        sessions: short(moment.sessions),
        running: short(moment.running),
        waiting: short(moment.waiting),
        kv_cells_used: cells(moment.kv_cells_used),
        kv_cells_cached: cells(moment.kv_cells_cached),
        kv_cells: moment.kv_cells,
        prompt_tokens: tokens(moment.prompt_tokens),
        cached_tokens: tokens(moment.cached_tokens),
        generated_tokens: tokens(moment.generated_tokens),
        steps: fineness.whole(moment.steps, 10),
        step_us: fineness.micros(moment.step_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_others_are_shown_rounded_figures() {
        let of =
            |fineness: Fineness| (fineness.bytes(100 << 20), fineness.joules(2_999_999), fineness.part(0.97, 20.0));
        assert_eq!(of(Fineness::Exact), (100 << 20, 2_999_999, 0.97));
        assert_eq!(of(Fineness::Coarse), (64 << 20, 2_000_000, 0.95));
    }
}
