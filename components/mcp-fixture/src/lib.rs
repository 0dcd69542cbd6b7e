//! What the conformance suite of the Model Context Protocol asks a server for: tools,
//! resources and prompts with the names and answers that it expects.

mod asking;
mod media;
mod reading;
mod telling;

use nala_sdk::tools::{Answer, Error, Tool};

/// A tool, and what it does with its arguments.
pub(crate) struct Known {
    name: &'static str,
    description: &'static str,
    schema: &'static str,
    call: fn(&serde_json::Value) -> Result<Answer, Error>,
}

/// The schema of a tool that takes nothing.
pub(crate) const NOTHING: &str = r#"{"type": "object", "properties": {}, "additionalProperties": false}"#;

fn all() -> impl Iterator<Item = &'static Known> {
    media::TOOLS.iter().chain(telling::TOOLS).chain(asking::TOOLS)
}

fn tools() -> Vec<Tool> {
    all().map(|known| Tool::new(known.name, known.description, known.schema)).collect()
}

fn call(name: &str, arguments: &str) -> Result<Answer, Error> {
    let arguments = serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    let known = all().find(|known| known.name == name);
    known
        .map_or_else(|| Err(Error::UnknownTool(format!("there is no tool {name:?}"))), |known| (known.call)(&arguments))
}

nala_sdk::provider!(tools, call);
nala_sdk::library!(reading::catalogue, reading::read, reading::fill, reading::complete);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_schemas_are_json() {
        let mut names: Vec<String> = tools().into_iter().map(|tool| tool.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        for tool in tools() {
            serde_json::from_str::<serde_json::Value>(&tool.input_schema).unwrap();
        }
        assert!(matches!(call("none", "{}"), Err(Error::UnknownTool(_))));
        assert!(matches!(call("test_simple_text", "{}"), Ok(answer) if !answer.is_error));
    }
}
