//! A tool that reads what is at a URL, and gives pages as text.
//!
//! The hosts that it reaches are those of `allowed_outbound_hosts` in its manifest. All
//! else is made for servers that mean harm: what is read, and how long, is bounded, and
//! the work for a page grows with its bytes, however its elements lie in each other.

mod answer;
mod charset;
mod follow;
mod host;
mod html;
mod kind;
mod web;

use nala_sdk::tools::{Answer, Error, Tool};
use serde::Deserialize;

const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "url": {"type": "string", "description": "What to read, from http:// or https:// on"},
    "format": {
      "enum": ["text", "markdown", "raw"],
      "description": "How to give a page: its text (if left out), Markdown with links, or its HTML"
    },
    "max_bytes": {
      "type": "integer",
      "minimum": 1,
      "maximum": 1048576,
      "description": "The most bytes of text to give; 65536 if it is left out"
    }
  },
  "required": ["url"],
  "additionalProperties": false
}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "url": {"type": "string", "description": "Where it was found, behind all redirects"},
    "redirects": {
      "type": "array",
      "items": {"type": "string"},
      "description": "The URLs that led there, the first one first"
    },
    "status": {"type": "integer"},
    "content_type": {"type": "string", "description": "As the server says; empty if it does not"},
    "title": {"type": "string"},
    "text": {"type": "string"},
    "cut": {"type": "boolean", "description": "Whether there is more than the text has"},
    "note": {"type": "string", "description": "Why it is cut"}
  },
  "required": ["url", "redirects", "status", "content_type", "text", "cut"],
  "additionalProperties": false
}"#;

/// How a page is to be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Text,
    Markdown,
    Raw,
}

#[derive(Deserialize)]
struct Arguments {
    url: String,
    #[serde(default)]
    format: Format,
    max_bytes: Option<usize>,
}

fn tools() -> Vec<Tool> {
    let what = "Reads what is at a URL. Pages are given as text or Markdown, JSON and other text as it is, \
                pictures as pictures.";
    vec![Tool::new("fetch", what, INPUT).titled("Fetch").answering(OUTPUT).read_only().open_world()]
}

fn call(_name: &str, arguments: &str) -> Result<Answer, Error> {
    let Arguments { url, format, max_bytes } =
        serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    let most = max_bytes.unwrap_or(answer::TEXT_DEFAULT).clamp(1, answer::TEXT_MOST);
    Ok(answer::fetch(&host::Wasi, &url, format, most).unwrap_or_else(Answer::error))
}

nala_sdk::provider!(tools, call);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_are_json() {
        for tool in tools() {
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&tool.input_schema)["type"], "object");
            assert_eq!(read(&tool.input_schema)["properties"]["max_bytes"]["maximum"], answer::TEXT_MOST);
            read(tool.output_schema.as_deref().unwrap());
            assert_eq!(tool.annotations.read_only, Some(true));
            assert_eq!(tool.annotations.open_world, Some(true));
        }
    }

    #[test]
    fn arguments_that_cannot_be_read_are_told() {
        for arguments in ["", "[]", "{}", r#"{"url": 1}"#, r#"{"url": "http://a", "format": "pdf"}"#] {
            assert!(matches!(call("fetch", arguments), Err(Error::InvalidArguments(_))), "{arguments}");
        }
    }
}
