//! The parameters `tools`, `tool_choice` and `parallel_tool_calls`.

use chat_format::{Choice, Parallel, Strict, Tool};
use serde_json::{Map, Value, json};

use crate::brief::short;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::part::Part;

/// The most tools, as at OpenAI.
const MAX_TOOLS: usize = 128;
/// The longest name of a function, in characters.
const MAX_NAME: usize = 64;
const CHOICES: &str = "\"auto\", \"none\", \"required\", or an object of type function or allowed_tools";

/// What was asked for.
#[derive(Debug)]
pub(super) struct Tools {
    /// Those that the model is shown: all, or those that `allowed_tools` names.
    pub(super) shown: Vec<Tool>,
    pub(super) choice: Choice,
    pub(super) parallel: Parallel,
    /// What the answer repeats of `tools` and `tool_choice`.
    pub(super) echo: Value,
    pub(super) choice_echo: Value,
}

pub(super) fn read(fields: &Map<String, Value>) -> Result<Tools, ApiError> {
    let all = match fields.get("tools") {
        None => Vec::new(),
        Some(Value::Array(list)) if list.len() > MAX_TOOLS => {
            let message = format!("'tools' has {} tools, but at most {MAX_TOOLS} are allowed", list.len());
            return Err(ApiError::invalid("tools", message));
        }
        Some(Value::Array(list)) => {
            let one = |(index, value)| tool(&Part::of(value, format!("tools[{index}]"))?);
            list.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?
        }
        Some(other) => return Err(Fields::wrong("tools", "a list of tools", other)),
    };
    for (index, (tool, _)) in all.iter().enumerate() {
        if all.iter().take(index).any(|(other, _)| other.name == tool.name) {
            let at = format!("tools[{index}].name");
            let message =
                format!("'{at}' is {:?}, as that of a tool before it; give each a name of its own", tool.name);
            return Err(ApiError::invalid(at, message));
        }
    }
    let (tools, echo): (Vec<Tool>, Vec<Value>) = all.into_iter().unzip();
    let parallel = match Fields(fields).boolean("parallel_tool_calls")? {
        None | Some(true) => Parallel::Allowed,
        Some(false) => Parallel::Single,
    };
    let (shown, choice, choice_echo) = choose(fields.get("tool_choice"), tools)?;
    Ok(Tools { shown, choice, parallel, echo: Value::Array(echo), choice_echo })
}

fn tool(given: &Part<'_>) -> Result<(Tool, Value), ApiError> {
    match given.required("type", "function")? {
        "function" => {}
        other => {
            let message = format!("is {}; only tools of type function are supported", short(other));
            return Err(given.unsupported("type", message));
        }
    }
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

fn choose(value: Option<&Value>, tools: Vec<Tool>) -> Result<(Vec<Tool>, Choice, Value), ApiError> {
    const NAME: &str = "tool_choice";
    let (choice, echo) = match value {
        None => (Choice::Auto, json!("auto")),
        Some(Value::String(word)) => {
            let choice = mode(word).ok_or_else(|| Fields::wrong(NAME, CHOICES, &Value::from(word.as_str())))?;
            (choice, json!(word))
        }
        Some(value) => {
            let given = Part::of(value, NAME).map_err(|_| Fields::wrong(NAME, CHOICES, value))?;
            match given.required("type", "function or allowed_tools")? {
                "function" => {
                    given.only(&["type", "name"])?;
                    let name = function(&given, &tools)?;
                    (Choice::Named(name.to_owned()), json!({"type": "function", "name": name}))
                }
                "allowed_tools" => return allowed(&given, tools),
                other => {
                    let message = format!("is {}; only function and allowed_tools are supported", short(other));
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
fn allowed(given: &Part<'_>, mut tools: Vec<Tool>) -> Result<(Vec<Tool>, Choice, Value), ApiError> {
    given.only(&["type", "mode", "tools"])?;
    let word = given.text("mode")?.unwrap_or("auto");
    let choice =
        mode(word).ok_or_else(|| given.wrong("mode", "\"auto\", \"required\" or \"none\"", &Value::from(word)))?;
    let list = given.items("tools")?.filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| ApiError::missing(given.at("tools"), "a list of at least one tool"))?;
    let mut names = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let one = Part::of(value, format!("{}[{index}]", given.at("tools")))?;
        match one.required("type", "function")? {
            "function" => names.push(function(&one, &tools)?),
            other => {
                let message = format!("is {}; only tools of type function are supported", short(other));
                return Err(one.unsupported("type", message));
            }
        }
    }
    tools.retain(|tool| names.contains(&tool.name.as_str()));
    let listed: Vec<Value> = names.iter().map(|name| json!({"type": "function", "name": name})).collect();
    Ok((tools, choice, json!({"type": "allowed_tools", "mode": word, "tools": listed})))
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
fn function<'a>(given: &Part<'a>, tools: &[Tool]) -> Result<&'a str, ApiError> {
    let name = given.required("name", "the function's name")?;
    if tools.iter().any(|tool| tool.name == name) {
        return Ok(name);
    }
    let at = given.at("name");
    let message = format!("'{at}' is {:?}, but no tool in 'tools' has this name", short(name));
    Err(ApiError::invalid(at, message))
}
