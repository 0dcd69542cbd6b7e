//! `machine_load`: how busy the machine is.

use nala_sdk::telemetry::{self, Load, Waited};
use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Serialize};

use crate::units;

pub(crate) const NAME: &str = "machine_load";

const INPUT: &str = r#"{"type": "object", "properties": {}, "additionalProperties": false}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "cpu_busy_percent": {"type": ["number", "null"], "description": "Of the machine's CPU time, just before"},
    "over_seconds": {"type": ["number", "null"], "description": "How long that was"},
    "load_averages": {
      "type": ["array", "null"],
      "items": {"type": "number"},
      "description": "Threads that ran or wanted to, over 1, 5 and 15 minutes"
    },
    "memory_total_bytes": {"type": ["integer", "null"]},
    "memory_used_bytes": {"type": ["integer", "null"], "description": "By the machine"},
    "memory_available_bytes": {"type": ["integer", "null"], "description": "What the server could still have"},
    "pressure_percent": {
      "type": "object",
      "properties": {
        "cpu": {"type": ["number", "null"]},
        "memory": {"type": ["number", "null"]},
        "io": {"type": ["number", "null"]}
      },
      "description": "Part of the last ten seconds in which something waited"
    },
    "clock_mhz": {"type": ["number", "null"], "description": "Of the fastest CPU"},
    "throttled_seconds": {"type": ["number", "null"], "description": "For which a quota has held the server up so far"},
    "temperatures_celsius": {"type": "object", "additionalProperties": {"type": "number"}}
  },
  "required": ["cpu_busy_percent", "load_averages", "memory_total_bytes", "memory_used_bytes", "memory_available_bytes"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {}

#[derive(Serialize)]
struct Told {
    cpu_busy_percent: Option<f64>,
    over_seconds: Option<f64>,
    load_averages: Option<[f64; 3]>,
    memory_total_bytes: Option<u64>,
    memory_used_bytes: Option<u64>,
    memory_available_bytes: Option<u64>,
    pressure_percent: Pressures,
    clock_mhz: Option<f64>,
    throttled_seconds: Option<f64>,
    temperatures_celsius: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct Pressures {
    cpu: Option<f64>,
    memory: Option<f64>,
    io: Option<f64>,
}

pub(crate) fn tool() -> Tool {
    let what = "Tells how busy the machine is now: CPUs, load averages, memory, pressure, clock rate and temperatures.";
    Tool::new(NAME, what, INPUT).titled("Load").answering(OUTPUT).read_only()
}

pub(crate) fn call(arguments: &str) -> Result<Answer, Error> {
    let Arguments {} = crate::arguments(arguments)?;
    Ok(telemetry::load().map_or_else(crate::refused, |load| tell(&load)))
}

fn tell(load: &Load) -> Answer {
    let ten_seconds = |waited: &Option<Waited>| waited.as_ref().map(|waited| waited.ten_seconds_percent);
    let told = Told {
        cpu_busy_percent: load.cpu_use.as_ref().map(|cpus| units::rounded(cpus.busy * 100.0)),
        over_seconds: load.cpu_use.as_ref().map(|cpus| f64::from(cpus.over_ms) / 1000.0),
        load_averages: load
            .averages
            .as_ref()
            .map(|averages| [averages.one_minute, averages.five_minutes, averages.fifteen_minutes]),
        memory_total_bytes: load.memory.total_bytes,
        memory_used_bytes: load.memory.used_bytes,
        memory_available_bytes: load.memory.available_bytes,
        pressure_percent: Pressures {
            cpu: ten_seconds(&load.pressure.cpu),
            memory: ten_seconds(&load.pressure.memory),
            io: ten_seconds(&load.pressure.io),
        },
        clock_mhz: load.clock_rate.as_ref().map(|rate| rate.highest_khz as f64 / 1000.0),
        throttled_seconds: load.group.as_ref().map(|group| group.throttled_us as f64 / 1e6),
        temperatures_celsius: load
            .temperatures
            .iter()
            .map(|temperature| (temperature.zone.clone(), temperature.celsius.into()))
            .collect(),
    };
    crate::answer(text(&told), &told)
}

fn text(told: &Told) -> String {
    let mut lines = Vec::new();
    match (told.cpu_busy_percent, told.over_seconds) {
        (Some(busy), Some(over)) => lines.push(format!("CPUs: {busy:.0} % busy over the last {over:.1} s")),
        _ => lines.push("CPUs: how busy they are is not known".to_owned()),
    }
    if let Some([one, five, fifteen]) = told.load_averages {
        lines.push(format!("Load averages: {one:.2} (1 min), {five:.2} (5 min), {fifteen:.2} (15 min)"));
    }
    let bytes = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), units::bytes);
    lines.push(format!(
        "Memory: {} of {} used, {} available",
        bytes(told.memory_used_bytes),
        bytes(told.memory_total_bytes),
        bytes(told.memory_available_bytes)
    ));
    let Pressures { cpu, memory, io } = &told.pressure_percent;
    let waited = [("CPUs", cpu), ("memory", memory), ("disks", io)];
    let waited: Vec<String> =
        waited.iter().filter_map(|(what, part)| part.map(|part| format!("{part:.0} % for {what}"))).collect();
    if !waited.is_empty() {
        lines.push(format!("Waiting, over ten seconds: {}", waited.join(", ")));
    }
    lines.extend(told.clock_mhz.map(|rate| format!("Clock: {rate:.0} MHz")));
    if let Some(held_up) = told.throttled_seconds.filter(|seconds| *seconds > 0.0) {
        lines.push(format!("A quota has held the server up for {held_up:.1} s so far"));
    }
    let warm = told.temperatures_celsius.iter().filter_map(|(zone, celsius)| Some((zone, celsius.as_f64()?)));
    if let Some((zone, celsius)) = warm.max_by(|(_, one), (_, other)| one.total_cmp(other)) {
        lines.push(format!("Warmest: {zone} with {celsius:.0} °C"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use nala_sdk::telemetry::{ClockRate, CpuUse, Energy, GroupCpu, LoadAverages, MemoryUse, Pressure, Temperature};
    use nala_sdk::tools::Content;

    use super::*;

    fn told(load: &Load) -> (String, serde_json::Value) {
        let answer = tell(load);
        let Content::Text(text) = &answer.content[0] else { panic!("{answer:?}") };
        (text.clone(), serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap())
    }

    fn nothing() -> Load {
        let none = None;
        Load {
            at_ms: 0,
            averages: none,
            cpu_use: None,
            cpu: None,
            group: None,
            memory: MemoryUse {
                total_bytes: None,
                used_bytes: None,
                available_bytes: None,
                group_bytes: None,
                limit_bytes: None,
            },
            pressure: Pressure { cpu: None, memory: None, io: None },
            clock_rate: None,
            temperatures: Vec::new(),
            energy: Energy::Unavailable("none".to_owned()),
        }
    }

    #[test]
    fn a_load_is_told_in_words_and_as_json() {
        let zone = |zone: &str, celsius| Temperature { zone: zone.to_owned(), celsius };
        let load = Load {
            averages: Some(LoadAverages { one_minute: 1.5, five_minutes: 1.0, fifteen_minutes: 0.25 }),
            cpu_use: Some(CpuUse { busy: 0.754, over_ms: 200 }),
            group: Some(GroupCpu { used_us: 1, throttled_us: 2_500_000 }),
            memory: MemoryUse {
                total_bytes: Some(16 << 30),
                used_bytes: Some(4 << 30),
                available_bytes: Some(3 << 30),
                group_bytes: None,
                limit_bytes: None,
            },
            pressure: Pressure {
                cpu: Some(Waited {
                    ten_seconds_percent: 12.0,
                    minute_percent: 1.0,
                    five_minutes_percent: 0.0,
                    total_us: 5,
                }),
                memory: None,
                io: None,
            },
            clock_rate: Some(ClockRate { lowest_khz: 800_000, highest_khz: 2_600_000, limit_khz: None }),
            temperatures: vec![zone("acpitz", 27.8), zone("x86_pkg_temp", 61.0)],
            ..nothing()
        };
        let (text, json) = told(&load);
        assert_eq!(
            text,
            "CPUs: 75 % busy over the last 0.2 s\n\
             Load averages: 1.50 (1 min), 1.00 (5 min), 0.25 (15 min)\n\
             Memory: 4 GiB of 16 GiB used, 3 GiB available\n\
             Waiting, over ten seconds: 12 % for CPUs\n\
             Clock: 2600 MHz\n\
             A quota has held the server up for 2.5 s so far\n\
             Warmest: x86_pkg_temp with 61 °C"
        );
        assert_eq!((&json["cpu_busy_percent"], &json["load_averages"][2]), (&75.4.into(), &0.25.into()), "{json}");
        let schema: serde_json::Value = serde_json::from_str(OUTPUT).unwrap();
        for name in json.as_object().unwrap().keys() {
            assert!(schema["properties"].get(name).is_some(), "{name} is in no schema");
        }
    }

    #[test]
    fn what_is_not_known_is_told_as_that() {
        let (text, json) = told(&nothing());
        assert!(text.starts_with("CPUs: how busy they are is not known"), "{text}");
        assert!(json["load_averages"].is_null() && json["pressure_percent"]["io"].is_null(), "{json}");
    }
}
