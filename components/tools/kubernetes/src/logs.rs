//! What containers have logged.

use serde::{Deserialize, Serialize};

use crate::api::Api;
use crate::kind::Kind;
use crate::name;

/// How many lines are asked for, if nothing else is said, and at most.
const USUAL: u32 = 100;
const MOST: u32 = 1000;

/// How much of them is told: the end, in bytes.
const TOLD: usize = 32 << 10;

/// How much is asked for, in bytes. The server counts from the beginning of the lines.
const READ: usize = 1 << 20;

pub(crate) const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "pod": {"type": "string", "minLength": 1},
    "namespace": {"type": "string", "description": "NAMESPACE"},
    "container": {"type": "string", "description": "Can be left out where the pod has one"},
    "lines": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "How many of the last lines; 100 if it is left out"},
    "since_seconds": {"type": "integer", "minimum": 1, "description": "Only what was logged within so many seconds"},
    "previous": {"type": "boolean", "description": "What the container logged before it was started again"}
  },
  "required": ["pod"],
  "additionalProperties": false
}"#;

pub(crate) const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "pod": {"type": "string"},
    "namespace": {"type": "string"},
    "text": {"type": "string"},
    "cut": {"type": "boolean", "description": "Whether the lines were longer than the text"}
  },
  "required": ["pod", "namespace", "text", "cut"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
pub(crate) struct Asked {
    pod: String,
    namespace: Option<String>,
    container: Option<String>,
    lines: Option<u32>,
    since_seconds: Option<u32>,
    #[serde(default)]
    previous: bool,
}

#[derive(Serialize)]
pub(crate) struct Logged {
    pod: String,
    namespace: String,
    text: String,
    cut: bool,
}

pub(crate) fn read(api: &Api<'_>, asked: Asked) -> Result<Logged, String> {
    let pod = name::resource(&asked.pod)?;
    let namespace = api.settings.one_namespace(asked.namespace.as_deref())?;
    let lines = asked.lines.unwrap_or(USUAL).clamp(1, MOST);
    let mut query = vec![("tailLines", lines.to_string()), ("limitBytes", READ.to_string())];
    if let Some(container) = &asked.container {
        query.push(("container", name::label("name of a container", container)?.to_owned()));
    }
    query.extend(asked.since_seconds.map(|seconds| ("sinceSeconds", seconds.max(1).to_string())));
    query.extend(asked.previous.then(|| ("previous", "true".to_owned())));
    let path = format!("{}/{pod}/log", Kind::named("pods")?.path(Some(&namespace)));
    let reply = api.text(&path, &query)?;
    let is_all_read = !reply.is_cut && reply.body.len() < READ;
    let text = String::from_utf8_lossy(&reply.body);
    let told = end(&text);
    let cut = !is_all_read || told.len() < text.len();
    Ok(Logged { pod: asked.pod.clone(), namespace, text: told.to_owned(), cut })
}

/// The end of a text, from the beginning of a line if there is one.
fn end(text: &str) -> &str {
    let Some(from) = text.len().checked_sub(TOLD) else { return text };
    let end = text.get(text.ceil_char_boundary(from)..).unwrap_or_default();
    match end.split_once('\n') {
        Some((_, lines)) if !lines.is_empty() => lines,
        _ => end,
    }
}
