//! Tools of type `mcp`: here those that the operator grants to this component.
//!
//! At OpenAI such a tool names a server somewhere, whose tools the model calls without the
//! client. Here the servers are the components that `spin.toml` names, and no client
//! chooses them: `server_url` and what belongs to it is refused. `server_label` is what the
//! client calls them by, any name.

use agent_loop::{First, Within};
use chat_format::{Strict, Tool};
use nala_sdk::tools;
use serde_json::{Map, Value, json};

use crate::brief::{brief, short};
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::part::Part;

/// The longest label, in characters.
const MAX_LABEL: usize = 64;

/// The most tools that are called first: each is a turn.
const MAX_FIRST: usize = 8;

/// What says where a server is, which is for the operator.
const ELSEWHERE: [&str; 5] = ["server_url", "connector_id", "tunnel_id", "authorization", "headers"];

/// The tools of an entry.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::responses) struct List {
    /// What the client calls it.
    pub(in crate::responses) label: String,
    pub(in crate::responses) tools: Vec<Listed>,
}

/// A tool as a list tells of it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::responses) struct Listed {
    pub(in crate::responses) name: String,
    description: String,
    schema: Map<String, Value>,
    annotations: Value,
    is_read_only: bool,
}

impl List {
    /// Reads an entry. `granted` tells which tools there are.
    pub(super) fn read(given: &Part<'_>, granted: &dyn Fn() -> Vec<tools::Tool>) -> Result<(Self, Value), ApiError> {
        let label = label(given)?;
        let there: Vec<Listed> = granted().into_iter().map(Listed::of).collect();
        refuse_what_is_elsewhere(given, &there)?;
        if given.boolean("defer_loading")? == Some(true) {
            return Err(given.unsupported("defer_loading", "is not supported; leave it out"));
        }
        if given.items("allowed_callers")?.is_some_and(|list| list.iter().any(|caller| caller != "direct")) {
            return Err(given.unsupported("allowed_callers", "is not supported; leave it out or send [\"direct\"]"));
        }
        given.only(&[
            "type",
            "server_label",
            "server_description",
            "allowed_tools",
            "require_approval",
            "defer_loading",
            "allowed_callers",
        ])?;
        if there.is_empty() {
            let at = given.place();
            let message = format!(
                "'{at}' is of type mcp, but no tools are granted to this component; its operator names them in the \
                 manifest, as `tools` under [component.NAME.tool.nala]"
            );
            return Err(ApiError::unsupported(at, message));
        }
        let tools = match given.get("allowed_tools") {
            None => there.clone(),
            Some(_) => {
                let filter = Filter::read(given, "allowed_tools", &there)?;
                there.iter().filter(|tool| filter.lets(tool)).cloned().collect()
            }
        };
        if tools.is_empty() {
            let message = "leaves no tool; leave it out, or name one of those that there are";
            return Err(given.unsupported("allowed_tools", message));
        }
        approved(given, &tools, &there)?;
        let echo = json!({
            "type": "mcp",
            "server_label": label,
            "server_description": given.text("server_description")?,
            "allowed_tools": given.get("allowed_tools"),
            "require_approval": given.get("require_approval"),
        });
        Ok((Self { label: label.to_owned(), tools }, echo))
    }

    /// The tools, as the model may call them.
    pub(super) fn callable(&self) -> impl Iterator<Item = Tool> {
        self.tools.iter().map(|tool| Tool {
            name: tool.name.clone(),
            description: Some(tool.description.clone()),
            parameters: Some(tool.schema.clone()),
            strict: Strict::Lenient,
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }
}

impl Listed {
    fn of(tool: tools::Tool) -> Self {
        let tools::Annotations { read_only, destructive, idempotent, open_world } = tool.annotations;
        let hints = [
            ("title", tool.title.map(Value::from)),
            ("readOnlyHint", read_only.map(Value::from)),
            ("destructiveHint", destructive.map(Value::from)),
            ("idempotentHint", idempotent.map(Value::from)),
            ("openWorldHint", open_world.map(Value::from)),
        ];
        let hints: Map<String, Value> =
            hints.into_iter().filter_map(|(name, hint)| Some((name.to_owned(), hint?))).collect();
        Self {
            name: tool.name,
            description: tool.description,
            // The host has read it as an object.
            schema: serde_json::from_str(&tool.input_schema).unwrap_or_default(),
            annotations: if hints.is_empty() { Value::Null } else { Value::Object(hints) },
            is_read_only: read_only == Some(true),
        }
    }

    /// As an item of type `mcp_list_tools` has it.
    pub(in crate::responses) fn json(&self) -> Value {
        json!({
            "name": self.name, "description": self.description, "input_schema": self.schema,
            "annotations": self.annotations,
        })
    }
}

/// Reads `call_first`, which agents have, too: the server's tools that are called first, one
/// a turn, by their names or with a schema that is narrower than the tool's own.
pub(super) fn first(value: Option<&Value>, shown: &[Tool], lists: &[List]) -> Result<Vec<First>, ApiError> {
    const NAME: &str = "call_first";
    let list = match value {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_FIRST => list,
        Some(Value::Array(list)) => {
            let message = format!("'{NAME}' has {} tools, but at most {MAX_FIRST} are allowed", list.len());
            return Err(ApiError::invalid(NAME, message));
        }
        Some(other) => return Err(Fields::wrong(NAME, "a list of tools", other)),
    };
    let there: Vec<&str> =
        shown.iter().map(|tool| tool.name.as_str()).filter(|name| lists.iter().any(|list| list.has(name))).collect();
    let one = |(index, value): (usize, &Value)| {
        let at = format!("{NAME}[{index}]");
        let (first, at) = match value {
            Value::String(tool) => (First::Tool(tool.clone()), at),
            Value::Object(_) => within(&Part::of(value, at)?)?,
            other => {
                return Err(Fields::wrong(&at, "the name of a tool, or an object with 'tool' and 'arguments'", other));
            }
        };
        if there.contains(&first.tool()) {
            return Ok(first);
        }
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        let message = format!(
            "'{at}' is {:?}, but of the tools of type mcp that may be called there are {there}",
            short(first.tool())
        );
        Err(ApiError::invalid(at, message))
    };
    list.iter().enumerate().map(one).collect()
}

fn within(given: &Part<'_>) -> Result<(First, String), ApiError> {
    given.only(&["tool", "arguments"])?;
    let tool = given.required("tool", "the name of a tool")?.to_owned();
    let arguments = match given.get("arguments") {
        Some(Value::Object(schema)) => schema.clone(),
        Some(other) => return Err(given.wrong("arguments", "an object, a JSON schema", other)),
        None => return Err(ApiError::missing(given.at("arguments"), "the JSON schema of the arguments")),
    };
    Ok((First::Within(Within { tool, arguments }), given.at("tool")))
}

fn label<'a>(given: &Part<'a>) -> Result<&'a str, ApiError> {
    let label = given.required("server_label", "a name for the tools, such as \"nala\"")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=MAX_LABEL).contains(&label.len()) && label.chars().all(plain) {
        return Ok(label);
    }
    Err(given.wrong("server_label", "1 to 64 letters, digits, underscores and dashes", &Value::from(label)))
}

fn refuse_what_is_elsewhere(given: &Part<'_>, there: &[Listed]) -> Result<(), ApiError> {
    match ELSEWHERE.iter().find(|key| given.get(key).is_some()) {
        None => Ok(()),
        Some(key) => {
            let message = format!(
                "is not supported: which tools there are is for the operator to say, in the manifest; leave it out to \
                 have {}",
                names(there)
            );
            Err(given.unsupported(key, message))
        }
    }
}

fn names(tools: &[Listed]) -> String {
    match tools {
        [] => "those that are granted there".to_owned(),
        tools => tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", "),
    }
}

/// Which tools are meant. Where both are given, both have to hold.
struct Filter<'a> {
    names: Option<Vec<&'a str>>,
    read_only: Option<bool>,
}

impl<'a> Filter<'a> {
    /// Reads a list of names, or an object with `tool_names` and `read_only`.
    fn read(given: &Part<'a>, key: &str, there: &[Listed]) -> Result<Self, ApiError> {
        if let Some(Value::Array(list)) = given.get(key) {
            return Ok(Self { names: Some(known(list, &given.at(key), there)?), read_only: None });
        }
        let Some(filter) = given.part(key)? else { return Ok(Self { names: None, read_only: None }) };
        filter.only(&["tool_names", "read_only"])?;
        let names = filter.items("tool_names")?.map(|list| known(list, &filter.at("tool_names"), there));
        Ok(Self { names: names.transpose()?, read_only: filter.boolean("read_only")? })
    }

    fn lets(&self, tool: &Listed) -> bool {
        let is_named = self.names.as_ref().is_none_or(|names| names.contains(&tool.name.as_str()));
        is_named && self.read_only.is_none_or(|read_only| read_only == tool.is_read_only)
    }
}

/// The names of tools that there are.
fn known<'a>(list: &'a [Value], at: &str, there: &[Listed]) -> Result<Vec<&'a str>, ApiError> {
    let one = |(index, value): (usize, &'a Value)| match value.as_str() {
        Some(name) if there.iter().any(|tool| tool.name == name) => Ok(name),
        Some(name) => {
            let at = format!("{at}[{index}]");
            let message = format!("'{at}' is {:?}, but there is no such tool; there are {}", short(name), names(there));
            Err(ApiError::invalid(at, message))
        }
        None => {
            let at = format!("{at}[{index}]");
            let message = format!("'{at}' must be the name of a tool, not {}", brief(value));
            Err(ApiError::invalid(at, message))
        }
    };
    list.iter().enumerate().map(one).collect()
}

/// Refuses tools that somebody would have to approve of, of those that there are. What is left out means that at
/// OpenAI, so the client has to say that it is not what it means.
fn approved(given: &Part<'_>, tools: &[Listed], there: &[Listed]) -> Result<(), ApiError> {
    const KEY: &str = "require_approval";
    const FIX: &str = "nobody is asked to approve of calls here: send \"never\", and in 'allowed_tools' only tools \
                       that may be called without";
    let unapproved = match given.get(KEY) {
        Some(Value::String(word)) if word == "never" => return Ok(()),
        Some(Value::String(word)) if word == "always" => {
            return Err(given.unsupported(KEY, format!("is \"always\", but {FIX}")));
        }
        Some(Value::Object(_)) => {
            let approval = Part::of(given.get(KEY).unwrap_or(&Value::Null), given.at(KEY))?;
            approval.only(&["always", "never"])?;
            let never = match approval.get("never") {
                None => return Err(given.unsupported(KEY, format!("has no \"never\", but {FIX}"))),
                Some(_) => Filter::read(&approval, "never", there)?,
            };
            let always = approval.get("always").map(|_| Filter::read(&approval, "always", there)).transpose()?;
            let is_asked =
                |tool: &&Listed| !never.lets(tool) || always.as_ref().is_some_and(|always| always.lets(tool));
            tools.iter().filter(is_asked).map(|tool| tool.name.as_str()).collect::<Vec<_>>()
        }
        Some(other) => return Err(given.wrong(KEY, "\"never\" or an object with filters", other)),
        None => {
            let at = given.at(KEY);
            return Err(ApiError::missing(at, FIX));
        }
    };
    match unapproved.is_empty() {
        true => Ok(()),
        false => Err(given.unsupported(KEY, format!("asks for approval of {}, but {FIX}", unapproved.join(", ")))),
    }
}
