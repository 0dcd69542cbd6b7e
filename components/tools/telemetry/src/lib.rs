//! Tools that tell a model about the machine that it runs on: what that is, how busy it is,
//! what its models do, and what energy a while takes.
//!
//! The component has to be granted `telemetry`. Whoever is not is told so.

mod energy;
mod load;
mod machine;
mod models;
mod units;

use std::time::Duration;

use nala_sdk::telemetry;
use nala_sdk::tools::{Answer, Error, Tool};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn tools() -> Vec<Tool> {
    vec![machine::tool(), load::tool(), models::tool(), energy::tool()]
}

fn call(name: &str, arguments: &str) -> Result<Answer, Error> {
    match name {
        machine::NAME => machine::call(arguments),
        load::NAME => load::call(arguments),
        models::NAME => models::call(arguments),
        energy::NAME => energy::call(arguments),
        _ => Err(Error::UnknownTool(name.to_owned())),
    }
}

/// The arguments of a call.
fn arguments<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::InvalidArguments(error.to_string()))
}

/// A number of seconds that a call is to last.
fn seconds(seconds: f64, (least, most): (f64, f64)) -> Result<Duration, Error> {
    if (least..=most).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(Error::InvalidArguments(format!("`seconds` is {seconds}; write a number from {least} to {most}")))
}

/// A text to read, and the same as JSON.
fn answer(text: String, structured: &impl Serialize) -> Answer {
    match serde_json::to_string(structured) {
        Ok(json) => Answer { structured: Some(json), ..Answer::text(text) },
        Err(error) => Answer::error(error.to_string()),
    }
}

/// What a model is told where there is no reading.
fn refused(error: telemetry::Error) -> Answer {
    match error {
        telemetry::Error::Denied(why) => Answer::error(format!("This is not allowed: {why}.")),
        telemetry::Error::Unavailable(why) => Answer::error(format!("This cannot be read: {why}.")),
    }
}

nala_sdk::provider!(tools, call);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_described() {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        for tool in tools() {
            assert_eq!(read(&tool.input_schema)["type"], "object", "{}", tool.name);
            let output = read(tool.output_schema.as_deref().unwrap());
            for name in output["required"].as_array().unwrap() {
                assert!(output["properties"].get(name.as_str().unwrap()).is_some(), "{}: {name}", tool.name);
            }
            assert_eq!(tool.annotations.read_only, Some(true));
        }
    }

    #[test]
    fn a_call_lasts_as_long_as_it_may() {
        assert_eq!(seconds(0.5, (0.2, 20.0)).unwrap(), Duration::from_millis(500));
        for wrong in [0.0, -1.0, 21.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(seconds(wrong, (0.2, 20.0)), Err(Error::InvalidArguments(_))), "{wrong}");
        }
        // Refused before anything is read.
        for (name, wrong) in [("energy_use", r#"{"seconds": 1000}"#), ("model_status", r#"{"second": 1}"#)] {
            assert!(matches!(call(name, wrong), Err(Error::InvalidArguments(_))), "{name}");
        }
        assert!(matches!(call("machine", "{}"), Err(Error::UnknownTool(_))));
    }
}
