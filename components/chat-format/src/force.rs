//! Calls that a model cannot help but make.

use serde_json::{Map, Value, json};

use crate::families::notation;
use crate::json::quote;
use crate::notation::Forcing;
use crate::{Choice, Format, Parallel, Strict, Tool};

/// What makes a model call a tool.
///
/// A grammar is over text and cannot name control tokens, so whatever has to be
/// one is in the prefix. That leaves one call for the notations that begin each
/// call with a control token. Where such a token stands between a name and its
/// arguments, and there are several tools to choose from, its text is spelled out
/// instead.
///
/// The prefix does not end a thought that the prompt has begun:
/// [`Format::end_of_thought`] has to be appended first, or the prompt be made
/// without thoughts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forced {
    /// Appended to the prompt as the template's own text: it may name control
    /// tokens. [`Parser::new`](crate::Parser::new) has to see it as the prompt's
    /// end.
    pub prefix: String,
    /// What comes after it: a grammar in llguidance's dialect of Lark.
    pub grammar: String,
}

/// Why a call cannot be forced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// There are no tools.
    #[error("there are no tools to call")]
    NoTools,
    /// The named tool is not among them.
    #[error("there is no tool named {0:?}")]
    UnknownTool(String),
}

/// The most calls of one turn that a forced model can make: a small one may not
/// find an end.
const MOST_CALLS: usize = 16;

/// White space between the parts of the arguments: enough for compact and for
/// indented text, and not more, as small models like it too much.
const WHITESPACE: &str = r"\x20{1,2}|\r?\n[\x20\x09]{0,40}";

/// Where llguidance looks for options beside a schema.
const OPTIONS: &str = "x-guidance";

/// What makes a model call one of the tools. None where `choice` forces nothing.
///
/// The arguments follow the tool's schema. Where the tool is [`Strict::Lenient`],
/// keywords that the grammar library cannot enforce are passed over; where it is
/// [`Strict::Enforced`], compiling the grammar fails. A schema that declares
/// properties and does not speak of others is taken to allow no others, which is
/// narrower than JSON Schema: no tool wants arguments that it did not declare.
///
/// With [`Choice::Auto`] nothing holds the arguments of a strict tool to its
/// schema: there is no grammar that begins only where a call does.
///
/// # Errors
/// [`Impossible`].
pub fn force(
    format: Format,
    tools: &[Tool],
    choice: &Choice,
    parallel: Parallel,
) -> Result<Option<Forced>, Impossible> {
    let tools: Vec<&Tool> = match choice {
        Choice::Auto | Choice::None => return Ok(None),
        Choice::Required | Choice::Named(_) | Choice::Among(_) if tools.is_empty() => return Err(Impossible::NoTools),
        Choice::Required => tools.iter().collect(),
        Choice::Named(name) => match tools.iter().find(|tool| tool.name == *name) {
            Some(tool) => vec![tool],
            None => return Err(Impossible::UnknownTool(name.clone())),
        },
        Choice::Among(names) => names
            .iter()
            .map(|name| {
                let tool = tools.iter().find(|tool| tool.name == *name);
                tool.ok_or_else(|| Impossible::UnknownTool(name.clone()))
            })
            .collect::<Result<_, _>>()?,
    };
    Ok(Some(write(notation(format).forced, &tools, parallel)))
}

/// The grammar of an answer that is JSON of a schema, or ends where it has written
/// `opening`, with which a call begins. Keywords that the grammar library cannot
/// enforce are passed over. In llguidance's dialect of Lark.
#[must_use]
pub fn answer_or(opening: &str, schema: &Map<String, Value>) -> String {
    let mut schema = schema.clone();
    schema.insert(OPTIONS.to_owned(), json!({ "whitespace_pattern": WHITESPACE, "lenient": true }));
    format!("start: answer | opening\nanswer: %json {}\nopening: {}\n", Value::Object(schema), text(opening))
}

/// All that a prompt may end with where one of the tools is called by force.
pub(crate) fn prefixes(format: Format, tools: &[Tool]) -> Vec<String> {
    if tools.is_empty() {
        return Vec::new();
    }
    match notation(format).forced {
        Forcing::Object { prefix, .. } | Forcing::Array { prefix, .. } => vec![prefix.to_owned()],
        Forcing::Named { prefix, between, .. } => {
            let named = tools.iter().map(|tool| format!("{prefix}{}{between}", tool.name));
            named.chain([prefix.to_owned()]).collect()
        }
    }
}

fn write(forcing: Forcing, tools: &[&Tool], parallel: Parallel) -> Forced {
    let others = match parallel {
        Parallel::Allowed => MOST_CALLS - 1,
        Parallel::Single => 0,
    };
    let mut prefix = match forcing {
        Forcing::Object { prefix, .. } | Forcing::Array { prefix, .. } | Forcing::Named { prefix, .. } => {
            prefix.to_owned()
        }
    };
    let start = match forcing {
        Forcing::Object { again: Some(again), .. } if others > 0 => {
            format!("call ({} call){{0,{others}}}", text(again))
        }
        Forcing::Object { .. } | Forcing::Named { .. } => "call".to_owned(),
        Forcing::Array { after, .. } if others > 0 => {
            format!("\"[\" call (\", \" call){{0,{others}}} {}", text(&format!("]{after}")))
        }
        Forcing::Array { after, .. } => format!("\"[\" call {}", text(&format!("]{after}"))),
    };
    if let (Forcing::Named { between, .. }, [tool]) = (forcing, tools) {
        prefix.push_str(&tool.name);
        prefix.push_str(between);
    }
    let mut grammar = format!("start: {start}\n");
    let alternatives: Vec<String> = (0..tools.len()).map(|n| format!("call_{n}")).collect();
    grammar.push_str(&format!("call: {}\n", alternatives.join(" | ")));
    for (n, tool) in tools.iter().enumerate() {
        let name = &tool.name;
        let (before, end) = match forcing {
            Forcing::Object { keys, after, .. } => (object(keys, name), format!("}}{after}")),
            Forcing::Array { keys: Some(keys), .. } => (object(keys, name), "}".to_owned()),
            Forcing::Array { keys: None, .. } => (format!("{{{}: ", quote(name)), "}".to_owned()),
            Forcing::Named { after, .. } if tools.len() == 1 => (String::new(), after.to_owned()),
            Forcing::Named { between, after, .. } => (format!("{name}{between}"), after.to_owned()),
        };
        grammar.push_str(&format!("call_{n}: {}arguments_{n}{}\n", part(&before, "", " "), part(&end, " ", "")));
        grammar.push_str(&format!("arguments_{n}: %json {}\n", Value::Object(schema(tool))));
    }
    Forced { prefix, grammar }
}

/// What stands before the arguments in an object.
fn object((name_key, arguments_key): (&str, &str), name: &str) -> String {
    format!("{{\"{name_key}\": {}, \"{arguments_key}\": ", quote(name))
}

/// A text as Lark has it.
fn text(text: &str) -> String {
    quote(text)
}

/// The same with what stands around it; nothing if it is empty.
fn part(part: &str, before: &str, after: &str) -> String {
    if part.is_empty() { String::new() } else { format!("{before}{}{after}", text(part)) }
}

/// The schema that a tool's arguments are held to.
fn schema(tool: &Tool) -> Map<String, Value> {
    /// Keywords by which properties may be declared elsewhere.
    const ELSEWHERE: &[&str] =
        &["$ref", "additionalProperties", "allOf", "anyOf", "oneOf", "patternProperties", "unevaluatedProperties"];
    // Who declares no parameters wants no arguments; a small model would write some
    // without an end.
    let mut schema = tool.parameters.clone().unwrap_or_else(|| Map::from_iter([("properties".to_owned(), json!({}))]));
    schema.insert("type".to_owned(), json!("object"));
    if schema.contains_key("properties") && !ELSEWHERE.iter().any(|keyword| schema.contains_key(*keyword)) {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    let options = json!({ "whitespace_pattern": WHITESPACE, "lenient": tool.strict == Strict::Lenient });
    schema.insert(OPTIONS.to_owned(), options);
    schema
}
