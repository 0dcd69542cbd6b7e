//! The agent as a tool of others: of another agent, or of a client of the Model Context
//! Protocol.

use nala_sdk::Error as SdkError;
use nala_sdk::tools::{self, Answer, Error, Tool};
use serde_json::Value;

use crate::job::Job;
use crate::run::Run;
use crate::settings::Settings;
use crate::step::Step;

/// What it takes: what a run takes, but for whether it is streamed.
const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "input": {"type": "string", "description": "What is to be done"},
        "answer_schema": {"type": "object", "description": "JSON Schema of the answer, an object"},
        "max_steps": {"type": "integer", "minimum": 1},
        "max_tokens": {"type": "integer", "minimum": 1}
    },
    "required": ["input"],
    "additionalProperties": false
}"#;

/// The one tool that it is.
pub(crate) fn tools() -> Vec<Tool> {
    // What is wrong with them is told when it is called.
    let settings = Settings::of_environment().unwrap_or_default();
    vec![Tool::new(settings.tool_name, settings.tool_description, SCHEMA).open_world()]
}

/// A whole run.
pub(crate) fn call(_name: &str, arguments: &str) -> Result<Answer, Error> {
    let settings = Settings::of_environment().map_err(Error::Failed)?;
    let job = Job::read(arguments.as_bytes()).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    let is_structured = job.answer_schema.is_some();
    let run = Run::unnamed(job, &settings).map_err(failed)?;
    let mut calls = 0.0;
    let end = run.go(&mut |step| {
        if let Step::Call { tool, .. } = step {
            calls += 1.0;
            tools::report(calls, None, Some(&format!("calls {tool}")));
        }
        Ok(())
    });
    let end = end.map_err(failed)?;
    Ok(match end.answer {
        Value::Null => Answer::error(format!("there is no answer: the agent was stopped ({})", end.reason.as_str())),
        Value::String(text) => Answer::text(text),
        other if is_structured => Answer::structured(other.to_string()),
        other => Answer::text(other.to_string()),
    })
}

fn failed(error: SdkError) -> Error {
    match error {
        SdkError::Status(400, why) => Error::InvalidArguments(why),
        error => Error::Failed(error.to_string()),
    }
}
