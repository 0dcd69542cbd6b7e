//! The parameters `tools`, `tool_choice` and `parallel_tool_calls`.

use agent_loop::First;
use chat_format::{Choice, Parallel, Strict, Tool};
use nala_sdk::tools;
use serde_json::{Map, Value, json};

use super::served::{self, List};
use crate::brief::short;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::part::Part;

/// The most tools, as at OpenAI.
const MAX_TOOLS: usize = 128;
/// The longest name of a function, in characters.
const MAX_NAME: usize = 64;
const CHOICES: &str = "\"auto\", \"none\", \"required\", or an object of type function, mcp or allowed_tools";

/// What was asked for.
#[derive(Debug)]
pub(super) struct Tools {
    /// Those that the model is shown: all, or those that `allowed_tools` names.
    pub(super) shown: Vec<Tool>,
    pub(super) choice: Choice,
    pub(super) parallel: Parallel,
    /// Those that are the server's, an entry of type mcp each.
    pub(super) lists: Vec<List>,
    /// Those of them that are called first. The choice is the first one.
    pub(super) first: Vec<First>,
    /// What the answer repeats of `tools` and `tool_choice`.
    pub(super) echo: Value,
    pub(super) choice_echo: Value,
}

/// An entry of `tools`.
enum Entry {
    Function(Tool),
    Mcp(List),
}

/// All of them.
struct Offer {
    /// Each tool, and where its entry stands.
    tools: Vec<(Tool, String)>,
    lists: Vec<List>,
    echo: Vec<Value>,
}

/// Reads the three. `granted` tells which tools the server has.
pub(super) fn read(fields: &Map<String, Value>, granted: &dyn Fn() -> Vec<tools::Tool>) -> Result<Tools, ApiError> {
    let Offer { tools, lists, echo } = offer(fields.get("tools"), granted)?;
    refuse_what_is_twice(&tools, &lists)?;
    let tools = tools.into_iter().map(|(tool, _)| tool).collect();
    let parallel = match Fields(fields).boolean("parallel_tool_calls")? {
        None | Some(true) => Parallel::Allowed,
        Some(false) => Parallel::Single,
    };
    let (shown, mut choice, choice_echo) = choose(fields.get("tool_choice"), tools, &lists)?;
    let first = served::first(fields.get("call_first"), &shown, &lists)?;
    if let Some(first) = first.first() {
        if choice != Choice::Auto {
            let message = "'tool_choice' and 'call_first' both say what is called first; leave one of them out";
            return Err(ApiError::invalid("tool_choice", message));
        }
        choice = Choice::Named(first.tool().to_owned());
    }
    Ok(Tools { shown, choice, parallel, lists, first, echo: Value::Array(echo), choice_echo })
}

fn offer(value: Option<&Value>, granted: &dyn Fn() -> Vec<tools::Tool>) -> Result<Offer, ApiError> {
    let mut offer = Offer { tools: Vec::new(), lists: Vec::new(), echo: Vec::new() };
    let list = match value {
        None => return Ok(offer),
        Some(Value::Array(list)) if list.len() > MAX_TOOLS => {
            let message = format!("'tools' has {} tools, but at most {MAX_TOOLS} are allowed", list.len());
            return Err(ApiError::invalid("tools", message));
        }
        Some(Value::Array(list)) => list,
        Some(other) => return Err(Fields::wrong("tools", "a list of tools", other)),
    };
    for (index, value) in list.iter().enumerate() {
        let part = Part::of(value, format!("tools[{index}]"))?;
        let (entry, echo) = entry(&part, granted)?;
        match entry {
            Entry::Function(tool) => offer.tools.push((tool, part.at("name"))),
            Entry::Mcp(list) => {
                offer.tools.extend(list.callable().map(|tool| (tool, part.place().to_owned())));
                offer.lists.push(list);
                // Before more of them are read: each can have all the tools that there are.
                refuse_what_is_twice(&offer.tools, &offer.lists)?;
            }
        }
        offer.echo.push(echo);
    }
    Ok(offer)
}

fn refuse_what_is_twice(tools: &[(Tool, String)], lists: &[List]) -> Result<(), ApiError> {
    let labels: Vec<&str> = lists.iter().map(|list| list.label.as_str()).collect();
    if let Some((_, label)) =
        labels.iter().enumerate().find(|(index, label)| labels.iter().take(*index).any(|other| other == *label))
    {
        let message = format!("'tools' has two entries of type mcp with the label {label:?}; give each one of its own");
        return Err(ApiError::invalid("tools", message));
    }
    for (index, (tool, at)) in tools.iter().enumerate() {
        if !tools.iter().take(index).any(|(other, _)| other.name == tool.name) {
            continue;
        }
        let message = match lists.iter().any(|list| list.has(&tool.name)) {
            true => format!(
                "'{at}' has the tool {:?}, as an entry before it; leave it out of one of them, by another name or by \
                 'allowed_tools'",
                tool.name
            ),
            false => {
                format!("'{at}' is {:?}, as that of a tool before it; give each a name of its own", tool.name)
            }
        };
        return Err(ApiError::invalid(at, message));
    }
    Ok(())
}

fn entry(given: &Part<'_>, granted: &dyn Fn() -> Vec<tools::Tool>) -> Result<(Entry, Value), ApiError> {
    match given.required("type", "function or mcp")? {
        "function" => function_of(given).map(|(tool, echo)| (Entry::Function(tool), echo)),
        "mcp" => List::read(given, granted).map(|(list, echo)| (Entry::Mcp(list), echo)),
        other => {
            let message = format!("is {}; only tools of type function and mcp are supported", short(other));
            Err(given.unsupported("type", message))
        }
    }
}

fn function_of(given: &Part<'_>) -> Result<(Tool, Value), ApiError> {
    if given.get("function").is_some() {
        let message =
            "is how chat completions have it; here 'name', 'description' and 'parameters' stand beside 'type'";
        return Err(given.unsupported("function", message));
    }
    for (key, only) in [("async", false), ("defer_loading", false)] {
        if given.boolean(key)?.is_some_and(|value| value != only) {
            return Err(given.unsupported(key, "is not supported; leave it out"));
        }
    }
    if given.items("allowed_callers")?.is_some_and(|list| list.iter().any(|caller| caller != "direct")) {
        return Err(given.unsupported("allowed_callers", "is not supported; leave it out or send [\"direct\"]"));
    }
    given.only(&[
        "type",
        "name",
        "description",
        "parameters",
        "strict",
        "async",
        "defer_loading",
        "allowed_callers",
    ])?;
    let name = given.required("name", "the function's name")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=MAX_NAME).contains(&name.len()) || !name.chars().all(plain) {
        let must = "1 to 64 letters, digits, underscores and dashes";
        return Err(given.wrong("name", must, &Value::from(name)));
    }
    let description = given.text("description")?;
    let parameters = match given.get("parameters") {
        None => None,
        Some(Value::Object(schema)) => Some(schema.clone()),
        Some(other) => return Err(given.wrong("parameters", "an object, a JSON schema", other)),
    };
    let strict = given.boolean("strict")?;
    let echo = json!({
        "type": "function", "name": name, "description": description, "parameters": parameters, "strict": strict,
    });
    let tool = Tool {
        name: name.to_owned(),
        description: description.map(str::to_owned),
        parameters,
        strict: if strict == Some(true) { Strict::Enforced } else { Strict::Lenient },
    };
    Ok((tool, echo))
}

fn choose(value: Option<&Value>, tools: Vec<Tool>, lists: &[List]) -> Result<(Vec<Tool>, Choice, Value), ApiError> {
    const NAME: &str = "tool_choice";
    let (choice, echo) = match value {
        None => (Choice::Auto, json!("auto")),
        Some(Value::String(word)) => {
            let choice = mode(word).ok_or_else(|| Fields::wrong(NAME, CHOICES, &Value::from(word.as_str())))?;
            (choice, json!(word))
        }
        Some(value) => {
            let given = Part::of(value, NAME).map_err(|_| Fields::wrong(NAME, CHOICES, value))?;
            match given.required("type", "function, mcp or allowed_tools")? {
                "function" => {
                    given.only(&["type", "name"])?;
                    let name = function(&given, &tools, lists)?;
                    (Choice::Named(name.to_owned()), json!({"type": "function", "name": name}))
                }
                "mcp" => {
                    let (names, echo) = mcp(&given, lists)?;
                    let choice = match given.get("name") {
                        Some(_) => Choice::Named(names.concat()),
                        None => Choice::Among(names),
                    };
                    (choice, echo)
                }
                "allowed_tools" => return allowed(&given, tools, lists),
                other => {
                    let message = format!("is {}; only function, mcp and allowed_tools are supported", short(other));
                    return Err(given.unsupported("type", message));
                }
            }
        }
    };
    if choice == Choice::Required && tools.is_empty() {
        return Err(ApiError::invalid(NAME, "'tool_choice' is \"required\", but there are no tools; send 'tools'"));
    }
    Ok((tools, choice, echo))
}

/// Shows the model the tools that it may call and no others: nothing else keeps it
/// from calling them.
fn allowed(given: &Part<'_>, mut tools: Vec<Tool>, lists: &[List]) -> Result<(Vec<Tool>, Choice, Value), ApiError> {
    given.only(&["type", "mode", "tools"])?;
    let word = given.text("mode")?.unwrap_or("auto");
    let choice =
        mode(word).ok_or_else(|| given.wrong("mode", "\"auto\", \"required\" or \"none\"", &Value::from(word)))?;
    let list = given.items("tools")?.filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| ApiError::missing(given.at("tools"), "a list of at least one tool"))?;
    let (mut names, mut listed) = (Vec::new(), Vec::new());
    for (index, value) in list.iter().enumerate() {
        let one = Part::of(value, format!("{}[{index}]", given.at("tools")))?;
        match one.required("type", "function or mcp")? {
            "function" => {
                let name = function(&one, &tools, lists)?;
                names.push(name.to_owned());
                listed.push(json!({"type": "function", "name": name}));
            }
            "mcp" => {
                let (those, echo) = mcp(&one, lists)?;
                names.extend(those);
                listed.push(echo);
            }
            other => {
                let message = format!("is {}; only tools of type function and mcp are supported", short(other));
                return Err(one.unsupported("type", message));
            }
        }
    }
    tools.retain(|tool| names.contains(&tool.name));
    Ok((tools, choice, json!({"type": "allowed_tools", "mode": word, "tools": listed})))
}

/// The names of the server's tools that are meant: all of a label, or one.
fn mcp(given: &Part<'_>, lists: &[List]) -> Result<(Vec<String>, Value), ApiError> {
    given.only(&["type", "server_label", "name"])?;
    let label = given.required("server_label", "the label of an entry of 'tools'")?;
    let Some(list) = lists.iter().find(|list| list.label == label) else {
        let at = given.at("server_label");
        let there: Vec<&str> = lists.iter().map(|list| list.label.as_str()).collect();
        let there = match there.as_slice() {
            [] => "there are none of type mcp".to_owned(),
            labels => format!("there are {}", labels.join(", ")),
        };
        let message = format!("'{at}' is {:?}, but no entry of 'tools' has this label; {there}", short(label));
        return Err(ApiError::invalid(at, message));
    };
    let all = || list.tools.iter().map(|tool| tool.name.clone());
    let echo = |name| json!({"type": "mcp", "server_label": label, "name": name});
    match given.text("name")? {
        None => Ok((all().collect(), echo(None::<&str>))),
        Some(name) if list.has(name) => Ok((vec![name.to_owned()], echo(Some(name)))),
        Some(name) => {
            let at = given.at("name");
            let there = all().collect::<Vec<_>>().join(", ");
            let message = format!("'{at}' is {:?}, but {label:?} has no such tool; it has {there}", short(name));
            Err(ApiError::invalid(at, message))
        }
    }
}

fn mode(word: &str) -> Option<Choice> {
    match word {
        "auto" => Some(Choice::Auto),
        "none" => Some(Choice::None),
        "required" => Some(Choice::Required),
        _ => None,
    }
}

/// The name of a function that is among the tools.
fn function<'a>(given: &Part<'a>, tools: &[Tool], lists: &[List]) -> Result<&'a str, ApiError> {
    let name = given.required("name", "the function's name")?;
    if tools.iter().any(|tool| tool.name == name) && !lists.iter().any(|list| list.has(name)) {
        return Ok(name);
    }
    let at = given.at("name");
    let message = format!("'{at}' is {:?}, but no function in 'tools' has this name", short(name));
    Err(ApiError::invalid(at, message))
}
