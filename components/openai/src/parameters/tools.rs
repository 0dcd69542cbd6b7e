//! The functions that the model may call: `tools`, `tool_choice` and
//! `parallel_tool_calls`.

use chat_format::{Choice, Parallel, Strict, Tool};
use serde_json::{Map, Value};

use super::fields::Fields;
use crate::brief::{brief, short};
use crate::error::ApiError;

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
        let at = format!("tools[{index}]");
        let tool = wrapped(value, &at)?;
        if tools.iter().any(|known| known.name == tool.name) {
            let at = format!("{at}.function.name");
            return Err(ApiError::invalid(&*at, format!("'{at}' is {:?}, as that of a tool before it", tool.name)));
        }
        tools.push(tool);
    }
    Ok(tools)
}

/// A function in its wrapper, `{"type": "function", "function": {…}}`.
fn wrapped(value: &Value, at: &str) -> Result<Tool, ApiError> {
    let fields = object(value, at)?;
    only(fields, at, &["type", "function"])?;
    match fields.get("type") {
        Some(Value::String(kind)) if kind == "function" => {}
        Some(Value::String(kind)) => {
            let at = format!("{at}.type");
            let message = format!("'{at}' is {:?}; only tools of type function are supported", short(kind));
            return Err(ApiError::unsupported(at, message));
        }
        Some(other) => return Err(Fields::wrong(&format!("{at}.type"), "\"function\"", other)),
        None => return Err(ApiError::missing(format!("{at}.type"), "\"function\"")),
    }
    let at = format!("{at}.function");
    match fields.get("function") {
        Some(value) => function(value, &at),
        None => Err(ApiError::missing(at, "an object with a 'name'")),
    }
}

/// A function: name, description, schema of its arguments.
fn function(value: &Value, at: &str) -> Result<Tool, ApiError> {
    let fields = object(value, at)?;
    only(fields, at, &["name", "description", "parameters", "strict"])?;
    let description = match given(fields, "description") {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => return Err(Fields::wrong(&format!("{at}.description"), "a string", other)),
    };
    let parameters = match given(fields, "parameters") {
        None => None,
        Some(Value::Object(schema)) => Some(schema.clone()),
        Some(other) => return Err(Fields::wrong(&format!("{at}.parameters"), "an object, a JSON schema", other)),
    };
    let strict = match given(fields, "strict") {
        None | Some(Value::Bool(false)) => Strict::Lenient,
        Some(Value::Bool(true)) => Strict::Enforced,
        Some(other) => return Err(Fields::wrong(&format!("{at}.strict"), "true or false", other)),
    };
    Ok(Tool { name: name(fields, &format!("{at}.name"))?, description, parameters, strict })
}

/// The name of a function. Only what OpenAI allows, and dots.
fn name(fields: &Map<String, Value>, at: &str) -> Result<String, ApiError> {
    let must = "1 to 64 letters, digits, underscores, dashes or dots";
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match given(fields, "name") {
        None => Err(ApiError::missing(at, must)),
        Some(Value::String(name)) if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(plain) => {
            Ok(name.clone())
        }
        Some(other) => Err(Fields::wrong(at, must, other)),
    }
}

const CHOICES: &str = "\"auto\", \"none\", \"required\" or an object that names a function";

/// Whether one is called, and which are left to choose from.
fn choice(value: Option<&Value>, tools: Vec<Tool>) -> Result<(Vec<Tool>, Choice), ApiError> {
    const AT: &str = "tool_choice";
    let fields = match value {
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
        Some(Value::Object(fields)) => fields,
        Some(other) => return Err(Fields::wrong(AT, CHOICES, other)),
    };
    match fields.get("type").and_then(Value::as_str) {
        Some("function") => {
            only(fields, AT, &["type", "function"])?;
            let at = "tool_choice.function";
            let function = given(fields, "function").ok_or_else(|| ApiError::missing(at, "an object with a 'name'"))?;
            let name = known(object(function, at)?, "tool_choice.function.name", &tools)?;
            Ok((tools, Choice::Named(name)))
        }
        Some("allowed_tools") => allowed(fields, tools),
        _ => {
            let at = "tool_choice.type";
            let kind = fields.get("type").unwrap_or(&Value::Null);
            Err(Fields::wrong(at, "\"function\" or \"allowed_tools\"", kind))
        }
    }
}

/// `{"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}`.
fn allowed(fields: &Map<String, Value>, tools: Vec<Tool>) -> Result<(Vec<Tool>, Choice), ApiError> {
    only(fields, "tool_choice", &["type", "allowed_tools"])?;
    let at = "tool_choice.allowed_tools";
    let inner = given(fields, "allowed_tools").ok_or_else(|| ApiError::missing(at, "'mode' and 'tools'"))?;
    let inner = object(inner, at)?;
    only(inner, at, &["mode", "tools"])?;
    let mode = match given(inner, "mode") {
        Some(Value::String(mode)) if mode == "auto" => Choice::Auto,
        Some(Value::String(mode)) if mode == "required" => Choice::Required,
        other => {
            let other = other.unwrap_or(&Value::Null);
            return Err(Fields::wrong("tool_choice.allowed_tools.mode", "\"auto\" or \"required\"", other));
        }
    };
    let at = "tool_choice.allowed_tools.tools";
    let Some(Value::Array(list)) = given(inner, "tools") else {
        return Err(ApiError::missing(at, "a list of functions"));
    };
    let mut names = Vec::with_capacity(list.len());
    for (index, entry) in list.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let entry = object(entry, &at)?;
        let inner = match given(entry, "function") {
            Some(function) => object(function, &format!("{at}.function"))?,
            None => entry,
        };
        names.push(known(inner, &format!("{at}.function.name"), &tools)?);
    }
    Ok((tools.into_iter().filter(|tool| names.contains(&tool.name)).collect(), mode))
}

/// The name of a function that is offered.
fn known(fields: &Map<String, Value>, at: &str, tools: &[Tool]) -> Result<String, ApiError> {
    let name = name(fields, at)?;
    if tools.iter().any(|tool| tool.name == name) {
        return Ok(name);
    }
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let there = if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) };
    Err(ApiError::invalid(at, format!("'{at}' is {name:?}, which is not in 'tools'; {there}")))
}

fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, ApiError> {
    value.as_object().ok_or_else(|| ApiError::invalid(at, format!("'{at}' must be an object, not {}", brief(value))))
}

/// A value that is there and not null.
fn given<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    fields.get(key).filter(|value| !value.is_null())
}

fn only(fields: &Map<String, Value>, at: &str, keys: &[&str]) -> Result<(), ApiError> {
    match fields.iter().find(|(key, value)| !value.is_null() && !keys.contains(&key.as_str())) {
        Some((key, _)) => Err(ApiError::unknown(format!("{at}.{}", short(key)))),
        None => Ok(()),
    }
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
