//! A tool that calculates: exact numbers, functions, percentages and units.
//!
//! A model guesses at arithmetic; this does not. Numbers are fractions of integers, so what
//! has an exact value is told exactly, and the answer says where it was rounded. What an
//! expression may cost is bounded by `limits`.

mod decimal;
mod function;
mod limits;
mod measure;
mod number;
mod parser;
mod power;
mod problem;
mod quantity;
mod series;
mod token;
mod unit;

#[cfg(test)]
mod tests;

use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Serialize};

const WHAT: &str = "Calculates an expression, exactly where that is possible. \
    Operators: + - * / ^ ! and parentheses; `a % b` or `a mod b` is the remainder, with the sign of b. \
    Percent: `20% of 150` is 30, `150 + 20%` is 180, `150 * 20%` is 30, `30 / 150 in %` is 20 %. \
    Functions: sqrt cbrt abs floor ceil trunc round(x, digits) min max sum avg ln log10 log2 log(x, base) \
    exp sin cos tan asin acos atan (radians, or `sin(30 deg)`) factorial; constants: pi e. \
    Units: `3 km + 200 m in mi`, `72 °F to °C`, `5 ft 11 in to cm`, `90 km/h * 20 min`, `2 GB / (50 Mbit/s)`; \
    length, area, volume, mass, time, speed, data (kB is 1000 bytes, KiB 1024), temperature, energy, power, \
    pressure, force, frequency, angle. \
    Decimals are written with a point, thousands with `_`: 1_234.5.";

const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "expression": {
      "type": "string",
      "description": "What to calculate, such as (0.1 + 0.2) * 3 or 3 km + 200 m in mi; at most 4000 characters"
    }
  },
  "required": ["expression"],
  "additionalProperties": false
}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "result": {"type": "string", "description": "A decimal number such as 0.3, 1591 or 1e100"},
    "unit": {"type": ["string", "null"], "description": "The unit of the result, null for a plain number"},
    "exact": {"type": "boolean", "description": "Whether nothing was rounded; else 34 significant digits are told"}
  },
  "required": ["result", "unit", "exact"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
struct Arguments {
    expression: String,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct Outcome {
    result: String,
    unit: Option<String>,
    exact: bool,
}

fn tools() -> Vec<Tool> {
    vec![Tool::new("calculate", WHAT, INPUT).titled("Calculator").answering(OUTPUT).read_only()]
}

fn call(_name: &str, arguments: &str) -> Result<Answer, Error> {
    let arguments: Arguments =
        serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    Ok(tell(&arguments.expression))
}

/// What is to be said of an expression.
fn tell(expression: &str) -> Answer {
    let outcome = match calculate(expression) {
        Ok(outcome) => outcome,
        Err(problem) => return Answer::error(problem.to_string()),
    };
    match serde_json::to_string(&outcome) {
        Ok(json) => Answer::structured(json),
        Err(error) => Answer::error(error.to_string()),
    }
}

fn calculate(expression: &str) -> Result<Outcome, problem::Problem> {
    let quantity = parser::read(expression)?;
    let (result, exact) = decimal::write(quantity.number());
    Ok(Outcome { result, unit: quantity.unit(), exact })
}

nala_sdk::provider!(tools, call);
