//! `query_json`: a query of jq over JSON.

use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

mod bounds;
mod input;
mod output;
mod query;
#[cfg(test)]
mod tests;

pub(crate) const NAME: &str = "query_json";

const WHAT: &str = "Runs a jq query over JSON and gives its outputs, such as `.items[] | select(.price > 10) | .name` \
    or `map(.price) | add`. Takes up to 8 MiB of JSON; gives up to 1000 outputs and 256 KiB, and says when there was \
    more. There are no files, no further inputs and no environment, and no time zone but UTC.";

const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "query": {"type": "string", "description": "The query, in the language of jq"},
    "json": {"type": "string", "description": "The JSON as text; give this or data"},
    "data": {"description": "The JSON itself, any value; give this or json"}
  },
  "required": ["query"],
  "additionalProperties": false
}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "outputs": {"type": "array", "description": "What the query gave, in its order"},
    "truncated": {"type": "boolean", "description": "Whether there was more than is given here"},
    "note": {"type": "string", "description": "Why there is no more"}
  },
  "required": ["outputs", "truncated"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
struct Arguments<'a> {
    query: String,
    json: Option<String>,
    // As it was written: numbers keep all of their digits.
    #[serde(borrow, default, deserialize_with = "given")]
    data: Option<&'a RawValue>,
}

/// Tells `null` from nothing.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

pub(crate) fn tool() -> Tool {
    let mut tool = Tool::new(NAME, WHAT, INPUT).titled("Query JSON").answering(OUTPUT).read_only();
    tool.annotations.open_world = Some(false);
    tool
}

pub(crate) fn call(arguments: &str) -> Result<Answer, Error> {
    let arguments: Arguments<'_> =
        serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    Ok(answer(&arguments).map_or_else(Answer::error, Answer::structured))
}

fn answer(arguments: &Arguments<'_>) -> Result<String, String> {
    let input = match (&arguments.json, arguments.data) {
        (Some(text), None) => input::read("json", text)?,
        (None, Some(data)) => input::read("data", data.get())?,
        (Some(_), Some(_)) => return Err("give `json` or `data`, not both".to_owned()),
        (None, None) => return Err("give the JSON to query, as text in `json` or as it is in `data`".to_owned()),
    };
    query::run(&arguments.query, input)
}
