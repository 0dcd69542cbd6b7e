//! The functions that the model may call: `tools`, `tool_choice` and
//! `parallel_tool_calls`.

use chat_format::{Choice, Parallel, Strict, Tool};
use serde_json::Value;

use super::fields::Fields;
use crate::brief::short;
use crate::error::ApiError;
use crate::part::Part;

/// The most functions of a request, as at OpenAI.
const MAX_TOOLS: usize = 128;

/// The longest name of a function, as at OpenAI.
const MAX_NAME: usize = 64;

/// What may be called, and whether it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    pub(super) tools: Vec<Tool>,
    pub(super) choice: Choice,
    pub(super) parallel: Parallel,
}

/// Reads the three parameters.
pub(super) fn read(fields: &Fields<'_>) -> Result<Offer, ApiError> {
    let tools = tools(fields.0.get("tools"))?;
    let parallel = match fields.boolean("parallel_tool_calls")? {
        Some(false) => Parallel::Single,
        _ => Parallel::Allowed,
    };
    let (tools, choice) = choice(fields.0.get("tool_choice"), tools)?;
    Ok(Offer { tools, choice, parallel })
}

fn tools(value: Option<&Value>) -> Result<Vec<Tool>, ApiError> {
    let list = match value {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_TOOLS => list,
        Some(Value::Array(list)) => {
            let message = format!("'tools' has {} functions, but at most {MAX_TOOLS} are allowed", list.len());
            return Err(ApiError::invalid("tools", message));
        }
        Some(other) => return Err(Fields::wrong("tools", "a list", other)),
    };
    let mut tools: Vec<Tool> = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let outer = Part::of(value, format!("tools[{index}]"))?;
        let tool = wrapped(value, &outer)?;
        if tools.iter().any(|known| known.name == tool.name) {
            let at = outer.at("function.name");
            return Err(ApiError::invalid(&*at, format!("'{at}' is {:?}, as that of a tool before it", tool.name)));
        }
        tools.push(tool);
    }
    Ok(tools)
}

/// A function in its wrapper, `{"type": "function", "function": {…}}`.
fn wrapped(value: &Value, outer: &Part<'_>) -> Result<Tool, ApiError> {
    outer.only(&["type", "function"])?;
    match value.get("type") {
        Some(Value::String(kind)) if kind == "function" => {}
        Some(Value::String(kind)) => {
            let message = format!("is {:?}; only tools of type function are supported", short(kind));
            return Err(outer.unsupported("type", message));
        }
        Some(other) => return Err(outer.wrong("type", "\"function\"", other)),
        None => return Err(ApiError::missing(outer.at("type"), "\"function\"")),
    }
    match outer.part("function")? {
        Some(inner) => function(&inner),
        None => Err(ApiError::missing(outer.at("function"), "an object with a 'name'")),
    }
}

/// A function: name, description, schema of its arguments.
fn function(given: &Part<'_>) -> Result<Tool, ApiError> {
    given.only(&["name", "description", "parameters", "strict"])?;
    let description = given.text("description")?.map(str::to_owned);
    let parameters = match given.get("parameters") {
        None => None,
        Some(Value::Object(schema)) => Some(schema.clone()),
        Some(other) => return Err(given.wrong("parameters", "an object, a JSON schema", other)),
    };
    let strict = match given.boolean("strict")? {
        Some(true) => Strict::Enforced,
        _ => Strict::Lenient,
    };
    Ok(Tool { name: name(given)?, description, parameters, strict })
}

/// The name of a function. Only what OpenAI allows, and dots.
fn name(given: &Part<'_>) -> Result<String, ApiError> {
    let must = "1 to 64 letters, digits, underscores, dashes or dots";
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match given.get("name") {
        None => Err(ApiError::missing(given.at("name"), must)),
        Some(Value::String(name)) if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(plain) => {
            Ok(name.clone())
        }
        Some(other) => Err(given.wrong("name", must, other)),
    }
}

const CHOICES: &str = "\"auto\", \"none\", \"required\" or an object that names a function";

/// Whether one is called, and which are left to choose from.
fn choice(value: Option<&Value>, tools: Vec<Tool>) -> Result<(Vec<Tool>, Choice), ApiError> {
    const AT: &str = "tool_choice";
    let value = match value {
        None => return Ok((tools, Choice::Auto)),
        Some(Value::String(word)) => {
            let choice = match word.as_str() {
                "auto" => Choice::Auto,
                "none" => Choice::None,
                "required" => Choice::Required,
                _ => return Err(ApiError::invalid(AT, format!("'{AT}' is {:?}; it must be {CHOICES}", short(word)))),
            };
            return Ok((tools, choice));
        }
        Some(value @ Value::Object(_)) => value,
        Some(other) => return Err(Fields::wrong(AT, CHOICES, other)),
    };
    let given = Part::of(value, AT)?;
    match value.get("type").and_then(Value::as_str) {
        Some("function") => {
            given.only(&["type", "function"])?;
            match given.part("function")? {
                Some(function) => {
                    let name = known(&function, &tools)?;
                    Ok((tools, Choice::Named(name)))
                }
                None => Err(ApiError::missing(given.at("function"), "an object with a 'name'")),
            }
        }
        Some("allowed_tools") => allowed(&given, tools),
        _ => {
            let kind = value.get("type").unwrap_or(&Value::Null);
            Err(given.wrong("type", "\"function\" or \"allowed_tools\"", kind))
        }
    }
}

/// `{"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}`.
fn allowed(given: &Part<'_>, tools: Vec<Tool>) -> Result<(Vec<Tool>, Choice), ApiError> {
    given.only(&["type", "allowed_tools"])?;
    let Some(inner) = given.part("allowed_tools")? else {
        return Err(ApiError::missing(given.at("allowed_tools"), "'mode' and 'tools'"));
    };
    inner.only(&["mode", "tools"])?;
    let mode = match inner.get("mode") {
        Some(Value::String(mode)) if mode == "auto" => Choice::Auto,
        Some(Value::String(mode)) if mode == "required" => Choice::Required,
        other => return Err(inner.wrong("mode", "\"auto\" or \"required\"", other.unwrap_or(&Value::Null))),
    };
    let Some(Value::Array(list)) = inner.get("tools") else {
        return Err(ApiError::missing(inner.at("tools"), "a list of functions"));
    };
    let mut names = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let entry = Part::of(value, format!("{}[{index}]", inner.at("tools")))?;
        // The wrapper may be left out.
        let function = match entry.part("function")? {
            Some(function) => function,
            None => Part::of(value, entry.at("function"))?,
        };
        names.push(known(&function, &tools)?);
    }
    Ok((tools.into_iter().filter(|tool| names.contains(&tool.name)).collect(), mode))
}

/// The name of a function that is offered.
fn known(given: &Part<'_>, tools: &[Tool]) -> Result<String, ApiError> {
    let name = name(given)?;
    if tools.iter().any(|tool| tool.name == name) {
        return Ok(name);
    }
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let there = if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) };
    let at = given.at("name");
    let message = format!("'{at}' is {name:?}, which is not in 'tools'; {there}");
    Err(ApiError::invalid(at, message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offer(fields: Value) -> Result<Offer, ApiError> {
        read(&Fields(fields.as_object().unwrap()))
    }

    fn tool(name: &str) -> Value {
        json!({"type": "function", "function": {"name": name}})
    }

    #[test]
    fn functions_arrive_with_what_they_have() {
        let read = offer(json!({"tools": [
            {"type": "function", "function": {
                "name": "get_weather", "description": "Tells it", "strict": true,
                "parameters": {"type": "object", "properties": {}}}},
            {"type": "function", "function": {"name": "a.b-c", "description": null, "parameters": null}},
        ], "parallel_tool_calls": false}))
        .unwrap();
        assert_eq!((read.choice, read.parallel), (Choice::Auto, Parallel::Single));
        assert_eq!(read.tools[0].strict, Strict::Enforced);
        assert_eq!(read.tools[0].description.as_deref(), Some("Tells it"));
        assert_eq!(read.tools[0].parameters.as_ref().unwrap()["type"], "object");
        assert_eq!((read.tools[1].name.as_str(), read.tools[1].parameters.as_ref()), ("a.b-c", None));
        let none = offer(json!({})).unwrap();
        assert_eq!((none.tools.len(), none.choice, none.parallel), (0, Choice::Auto, Parallel::Allowed));
    }

    #[test]
    fn choices_are_read_in_every_form() {
        let choice = |choice: Value| {
            let read = offer(json!({"tools": [tool("f"), tool("g")], "tool_choice": choice})).unwrap();
            (read.choice, read.tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(choice(json!("auto")), (Choice::Auto, "f g".to_owned()));
        assert_eq!(choice(json!("none")), (Choice::None, "f g".to_owned()));
        assert_eq!(choice(json!("required")), (Choice::Required, "f g".to_owned()));
        let named = json!({"type": "function", "function": {"name": "g"}});
        assert_eq!(choice(named.clone()), (Choice::Named("g".to_owned()), "f g".to_owned()));
        let allowed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}});
        assert_eq!(choice(allowed), (Choice::Required, "g".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let tools = |tool: Value| json!({"tools": [tool]});
        let choice = |choice: Value| json!({"tools": [tool("f")], "tool_choice": choice});
        let named = |name: Value| choice(json!({"type": "function", "function": {"name": name}}));
        for (fields, param) in [
            (json!({"tools": {}}), "tools"),
            (json!({"tools": vec![tool("f"); 129]}), "tools"),
            (tools(json!("f")), "tools[0]"),
            (tools(json!({"function": {"name": "f"}})), "tools[0].type"),
            (tools(json!({"type": "web_search"})), "tools[0].type"),
            (tools(json!({"type": 1})), "tools[0].type"),
            (tools(json!({"type": "function"})), "tools[0].function"),
            (tools(json!({"type": "function", "name": "f"})), "tools[0].name"),
            (tools(json!({"type": "function", "function": {}})), "tools[0].function.name"),
            (tools(tool("a b")), "tools[0].function.name"),
            (tools(tool(&"x".repeat(65))), "tools[0].function.name"),
            (
                tools(json!({"type": "function", "function": {"name": "f", "parameters": []}})),
                "tools[0].function.parameters",
            ),
            (tools(json!({"type": "function", "function": {"name": "f", "strict": 1}})), "tools[0].function.strict"),
            (tools(json!({"type": "function", "function": {"name": "f", "x": 1}})), "tools[0].function.x"),
            (json!({"tools": [tool("f"), tool("f")]}), "tools[1].function.name"),
            (choice(json!("always")), "tool_choice"),
            (choice(json!(1)), "tool_choice"),
            (choice(json!({"type": "custom"})), "tool_choice.type"),
            (choice(json!({"type": "function"})), "tool_choice.function"),
            (named(json!("g")), "tool_choice.function.name"),
            (named(json!(null)), "tool_choice.function.name"),
            (choice(json!({"type": "allowed_tools"})), "tool_choice.allowed_tools"),
            (json!({"parallel_tool_calls": 1}), "parallel_tool_calls"),
        ] {
            let error = offer(fields.clone()).expect_err(&fields.to_string());
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{fields}: {}", error.message);
            assert!(error.message.contains(param), "{fields}: {}", error.message);
        }
        let message = offer(named(json!("g"))).unwrap_err().message;
        assert!(message.contains("there are f"), "{message}");
    }
}
