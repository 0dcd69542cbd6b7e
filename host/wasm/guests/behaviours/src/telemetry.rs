//! What the handler learns about the machine.

use std::time::{Duration, Instant};

use bindings::nala::machine::telemetry::{get_load, get_machine, get_models};

mod bindings {
    #![allow(missing_docs, reason = "generated")]
    wit_bindgen::generate!({
        path: "../../../../wit/nala-machine",
        world: "nala:machine/user",
        generate_all,
    });
}

pub(crate) fn machine() -> String {
    format!("{:?}", get_machine())
}

pub(crate) fn load() -> String {
    format!("{:?}", get_load())
}

/// How many different readings there are for so many milliseconds of asking.
pub(crate) fn loads(for_ms: u64) -> String {
    let first = get_load().unwrap();
    let (mut last, mut count, mut asked) = (first.at_ms, 1, 1);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(for_ms) {
        let now = get_load().unwrap().at_ms;
        asked += 1;
        if now != last {
            (last, count) = (now, count + 1);
        }
    }
    format!("{count} {asked}")
}

/// The name, state and runs of each model.
pub(crate) fn models() -> String {
    match get_models() {
        Ok(models) => {
            let one = |model: &bindings::nala::machine::telemetry::Model| {
                format!("{} {:?} {} {}", model.name, model.state, model.running, model.kv_cells)
            };
            models.iter().map(one).collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("{error:?}"),
    }
}
