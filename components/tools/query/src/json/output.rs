//! What a query gives, as JSON.

use jaq_json::{Num, Val};
use serde::de::IgnoredAny;

use super::input::DEPTH;
use crate::limits::OUTPUT_BYTES;

/// How many outputs an answer has.
const OUTPUTS: usize = 1000;

/// What is given, until there is too much of it.
#[derive(Default)]
pub(crate) struct Outputs {
    json: String,
    number: usize,
    cut: Option<String>,
}

/// Why a value is not written.
enum Refused {
    Large,
    Deep,
}

impl Outputs {
    /// How many there are.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Adds one. False: there is no room for more.
    pub(crate) fn push(&mut self, value: &Val) -> Result<bool, String> {
        if self.number == OUTPUTS {
            self.cut = Some(format!("the query gives more than {OUTPUTS} outputs: only the first are here"));
            return Ok(false);
        }
        let before = self.json.len();
        if before > 0 {
            self.json.push(',');
        }
        match write(&mut self.json, value, 0) {
            Ok(()) => {
                self.number += 1;
                Ok(true)
            }
            Err(Refused::Large) if self.number > 0 => {
                self.json.truncate(before);
                self.cut = Some(format!(
                    "there is no room for more than {} outputs in 256 KiB: select less of each, or skip these",
                    self.number
                ));
                Ok(false)
            }
            Err(Refused::Large) => {
                Err("the first output alone is larger than 256 KiB: select less, such as `.[:20]` or `keys`".to_owned())
            }
            Err(Refused::Deep) => Err(format!("output {} nests deeper than {DEPTH}", self.number + 1)),
        }
    }

    /// All of it.
    pub(crate) fn finish(self) -> Result<String, String> {
        let Self { json, cut, .. } = self;
        let truncated = cut.is_some();
        let note = match cut {
            Some(note) => format!(",\"note\":{}", serde_json::to_string(&note).map_err(|error| error.to_string())?),
            None => String::new(),
        };
        Ok(format!("{{\"outputs\":[{json}],\"truncated\":{truncated}{note}}}"))
    }
}

fn write(out: &mut String, value: &Val, depth: usize) -> Result<(), Refused> {
    if depth > DEPTH {
        return Err(Refused::Deep);
    }
    match value {
        Val::Null => out.push_str("null"),
        Val::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Val::Num(number) => write_number(out, number),
        Val::BStr(bytes) | Val::TStr(bytes) => write_string(out, bytes)?,
        Val::Arr(values) => {
            out.push('[');
            for (n, value) in values.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(out, value, depth + 1)?;
            }
            out.push(']');
        }
        Val::Obj(entries) => {
            out.push('{');
            for (n, (key, value)) in entries.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                match key {
                    Val::BStr(bytes) | Val::TStr(bytes) => write_string(out, bytes)?,
                    // The language has other keys, and JSON has not.
                    other => {
                        let mut key = String::new();
                        write(&mut key, other, depth + 1)?;
                        write_string(out, key.as_bytes())?;
                    }
                }
                out.push(':');
                write(out, value, depth + 1)?;
            }
            out.push('}');
        }
    }
    if out.len() > OUTPUT_BYTES { Err(Refused::Large) } else { Ok(()) }
}

fn write_string(out: &mut String, bytes: &[u8]) -> Result<(), Refused> {
    // Before it is copied, which may be more than there is memory for.
    if bytes.len() > OUTPUT_BYTES {
        return Err(Refused::Large);
    }
    out.push_str(&serde_json::Value::from(String::from_utf8_lossy(bytes)).to_string());
    Ok(())
}

/// A number as every reader of JSON takes it.
fn write_number(out: &mut String, number: &Num) {
    let text = match number {
        Num::Int(number) => return out.push_str(&number.to_string()),
        // As jq has it: what is whole is written so.
        Num::Float(number) if number.fract() == 0.0 && number.abs() < 1e17 => format!("{number:.0}"),
        other => other.to_string(),
    };
    let float = match text.as_str() {
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        text => text.parse().unwrap_or(f64::NAN),
    };
    // Most readers refuse what is beyond 64 bits of floating point; jq clamps it, too.
    if float.is_nan() {
        out.push_str("null");
    } else if float.is_infinite() {
        out.push_str(if float > 0.0 { "1.7976931348623157e308" } else { "-1.7976931348623157e308" });
    } else if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
        out.push_str(&text);
    } else {
        // Digits that the language takes and JSON does not, such as `01.5`.
        out.push_str(&serde_json::Value::from(float).to_string());
    }
}
