//! The parameter `reasoning`: how much the model thinks.
//!
//! Whether and how a model can be told so is up to its template, see
//! [`crate::ask::EFFORTS`]. Templates that know of no effort go their own way.

use serde_json::{Map, Value, json};

use crate::ask::EFFORTS;

use crate::error::ApiError;
use crate::part::Part;

/// What was asked for.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    /// For the template.
    pub(super) variables: Map<String, Value>,
    effort: Option<String>,
    summary: Option<String>,
}

impl Reasoning {
    /// What the answer repeats.
    pub(super) fn echo(&self) -> Value {
        json!({"effort": self.effort, "summary": self.summary})
    }
}

pub(super) fn read(value: Option<&Value>) -> Result<Reasoning, ApiError> {
    let Some(value) = value else { return Ok(Reasoning::default()) };
    let given = Part::of(value, "reasoning")?;
    given.only(&["effort", "summary", "generate_summary", "context", "mode"])?;
    let effort = given.text("effort")?;
    let mut variables = Map::new();
    match effort {
        None => {}
        Some(effort) if EFFORTS.contains(&effort) => crate::ask::effort(effort, &mut variables),
        Some(other) => {
            return Err(given.wrong("effort", &format!("one of {}", EFFORTS.join(", ")), &Value::from(other)));
        }
    }
    let mut summary = None;
    for key in ["generate_summary", "summary"] {
        match given.text(key)? {
            None => {}
            // The best that there is: the thoughts themselves, and no summary.
            Some("auto") => summary = Some("auto".to_owned()),
            Some("concise" | "detailed") => {
                let message = "is not supported, since thoughts are given in full; leave it out or send \"auto\"";
                return Err(given.unsupported(key, message));
            }
            Some(other) => return Err(given.wrong(key, "\"auto\"", &Value::from(other))),
        }
    }
    // Which of the thoughts that are sent back are shown is up to the template.
    for (key, only) in [("context", "auto"), ("mode", "standard")] {
        if given.text(key)?.is_some_and(|value| value != only) {
            return Err(given.unsupported(key, format!("is not supported; leave it out or send {only:?}")));
        }
    }
    Ok(Reasoning { variables, effort: effort.map(str::to_owned), summary })
}
