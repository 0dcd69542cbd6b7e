//! `energy_use`: what a while costs in energy.

use nala_sdk::telemetry::{self, Energy, EnergyReading, EnergyScope, EnergySensor, Load, Model};
use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Serialize};

use crate::units;

pub(crate) const NAME: &str = "energy_use";

/// For how long energy may be measured, in seconds.
const SECONDS: (f64, f64) = (0.5, 20.0);

/// For how long it is where nothing is said.
const DEFAULT: f64 = 2.0;

const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "seconds": {"type": "number", "minimum": 0.5, "maximum": 20, "description": "For how long to measure; 2 if it is left out"}
  },
  "additionalProperties": false
}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "seconds": {"type": "number", "description": "For which it was measured"},
    "joules": {"type": "number"},
    "watts": {"type": "number"},
    "scope": {"enum": ["machine", "processors", "processors and memory"], "description": "What was measured"},
    "by": {"enum": ["counters", "power"], "description": "Counters miss nothing; power is what was seen at both ends"},
    "cpu_busy_percent": {"type": ["number", "null"], "description": "Of the machine's CPU time meanwhile"},
    "generated_tokens": {"type": "integer", "description": "By all models that can be seen, meanwhile"},
    "joules_per_token": {"type": ["number", "null"], "description": "Of these; what else the machine did is in it"}
  },
  "required": ["seconds", "joules", "watts", "scope", "by", "generated_tokens"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct Told {
    seconds: f64,
    joules: f64,
    watts: f64,
    scope: &'static str,
    by: &'static str,
    cpu_busy_percent: Option<f64>,
    generated_tokens: u64,
    joules_per_token: Option<f64>,
}

/// All that is read at a moment.
struct Moment {
    load: Load,
    models: Vec<Model>,
}

pub(crate) fn tool() -> Tool {
    let what = "Measures what energy the machine uses for some seconds, in joules, watts and joules for each token \
                that its models generate meanwhile. Fails where no sensor can be read, and says why.";
    Tool::new(NAME, what, INPUT).titled("Energy").answering(OUTPUT).read_only()
}

pub(crate) fn call(arguments: &str) -> Result<Answer, Error> {
    let Arguments { seconds } = crate::arguments(arguments)?;
    let time = crate::seconds(seconds.unwrap_or(DEFAULT), SECONDS)?;
    let read = || Ok(Moment { load: telemetry::load()?, models: telemetry::models()? });
    let measure = || -> Result<Answer, telemetry::Error> {
        let before: Moment = read()?;
        // Nothing is waited for that cannot be told.
        if let Energy::Unavailable(why) = &before.load.energy {
            return Ok(Answer::error(format!("The energy is not known: {why}.")));
        }
        std::thread::sleep(time);
        Ok(tell(&before, &read()?))
    };
    Ok(measure().unwrap_or_else(crate::refused))
}

fn tell(before: &Moment, after: &Moment) -> Answer {
    let seconds = after.load.at_ms.saturating_sub(before.load.at_ms) as f64 / 1000.0;
    if seconds <= 0.0 {
        return Answer::error("Both readings are one, since there was no newer one; measure for longer.");
    }
    let spent = match (&before.load.energy, &after.load.energy) {
        (Energy::Measured(before), Energy::Measured(after)) => spent(before, after, seconds),
        (_, Energy::Unavailable(why)) | (Energy::Unavailable(why), _) => {
            return Answer::error(format!("The energy is not known: {why}."));
        }
    };
    let Some((joules, scope, by)) = spent else {
        return Answer::error(
            "The energy is not known: there are sensors of parts only, or a counter has begun anew. Measure again.",
        );
    };
    let tokens = |moment: &Moment| moment.models.iter().map(|model| model.generated_tokens).sum::<u64>();
    let generated_tokens = tokens(after).saturating_sub(tokens(before));
    let busy = before.load.cpu.as_ref().zip(after.load.cpu.as_ref()).and_then(|(before, after)| {
        let total = after.total_us.checked_sub(before.total_us).filter(|total| *total > 0)?;
        Some(after.busy_us.saturating_sub(before.busy_us).min(total) as f64 / total as f64 * 100.0)
    });
    let told = Told {
        seconds,
        joules: units::rounded(joules),
        watts: units::rounded(joules / seconds),
        scope,
        by,
        cpu_busy_percent: busy.map(units::rounded),
        generated_tokens,
        joules_per_token: (generated_tokens > 0).then(|| units::rounded(joules / generated_tokens as f64)),
    };
    let each = told.joules_per_token.map(|joules| format!(", {joules:.2} J for each"));
    let text = format!(
        "{scope}: {:.1} J in {seconds:.1} s, which is {:.1} W (by {by}); {} generated meanwhile{}",
        told.joules,
        told.watts,
        units::count(generated_tokens, "token"),
        each.unwrap_or_default(),
    );
    crate::answer(text, &told)
}

/// Joules between two readings, of what, and how they are known: by one sensor of the whole
/// machine, else by all of its processors, with memory where that has its own.
fn spent(before: &[EnergySensor], after: &[EnergySensor], seconds: f64) -> Option<(f64, &'static str, &'static str)> {
    let of = |scope: EnergyScope| {
        let sensors = || after.iter().filter(move |sensor| sensor.scope == scope);
        let sum = |is_meant: fn(&EnergyReading) -> bool, at_most: usize| {
            let meant: Vec<_> = sensors().filter(|sensor| is_meant(&sensor.reading)).take(at_most).collect();
            let joules = meant.iter().map(|sensor| {
                let before = before.iter().find(|before| before.name == sensor.name)?;
                since(&before.reading, &sensor.reading, seconds)
            });
            joules.sum::<Option<f64>>().filter(|_| !meant.is_empty())
        };
        // Two sensors of the whole machine would count it twice.
        let at_most = if scope == EnergyScope::Machine { 1 } else { usize::MAX };
        let counted = sum(|reading| matches!(reading, EnergyReading::Counter(_)), at_most);
        let counted = counted.map(|joules| (joules, "counters"));
        counted.or_else(|| {
            sum(|reading| matches!(reading, EnergyReading::Power(_)), at_most).map(|joules| (joules, "power"))
        })
    };
    if let Some((joules, by)) = of(EnergyScope::Machine) {
        return Some((joules, "machine", by));
    }
    let (processors, by) = of(EnergyScope::Package)?;
    Some(match of(EnergyScope::Memory) {
        Some((memory, by_too)) if by_too == by => (processors + memory, "processors and memory", by),
        _ => (processors, "processors", by),
    })
}

/// Joules that a sensor has seen. None: it has begun anew.
fn since(before: &EnergyReading, after: &EnergyReading, seconds: f64) -> Option<f64> {
    match (before, after) {
        (EnergyReading::Counter(before), EnergyReading::Counter(after)) => {
            let round =
                || after.highest?.checked_sub(before.microjoules)?.checked_add(after.microjoules)?.checked_add(1);
            let microjoules = after.microjoules.checked_sub(before.microjoules).or_else(round)?;
            Some(microjoules as f64 / 1e6)
        }
        (EnergyReading::Power(before), EnergyReading::Power(after)) => {
            Some(before.midpoint(*after) as f64 / 1e6 * seconds)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use nala_sdk::telemetry::EnergyCounter;

    use super::*;

    fn sensor(name: &str, scope: EnergyScope, reading: EnergyReading) -> EnergySensor {
        EnergySensor { name: name.to_owned(), scope, reading }
    }

    fn counter(name: &str, scope: EnergyScope, joules: u64) -> EnergySensor {
        let counter = EnergyCounter { microjoules: joules * 1_000_000, highest: Some(999_999_999) };
        sensor(name, scope, EnergyReading::Counter(counter))
    }

    #[test]
    fn processors_and_memory_are_added_and_parts_are_not() {
        let all = |by: u64| {
            vec![
                counter("core", EnergyScope::Part, by),
                counter("one", EnergyScope::Package, 100 + 2 * by),
                // Goes round at 1000.
                counter("other", EnergyScope::Package, (995 + by) % 1000),
                counter("ram", EnergyScope::Memory, by),
            ]
        };
        assert_eq!(spent(&all(0), &all(10), 2.0), Some((40.0, "processors and memory", "counters")));
        let power = |watts: u64| vec![sensor("board", EnergyScope::Machine, EnergyReading::Power(watts * 1_000_000))];
        let with = |by: u64| [all(by), power(100 + by)].concat();
        assert_eq!(spent(&with(0), &with(10), 2.0), Some((210.0, "machine", "power")));
        assert_eq!(spent(&all(0), &[counter("core", EnergyScope::Part, 10)], 2.0), None);
        assert_eq!(spent(&[], &all(10), 2.0), None);
    }
}
