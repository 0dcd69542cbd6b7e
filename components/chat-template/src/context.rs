//! The variables that a template sees.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::{Content, Error, Message, Request, Tool, ToolCall};

/// Roles that templates know. Any other is text from outside like the rest:
/// some templates print the role as part of a control token.
const ROLES: [&str; 8] = ["system", "developer", "user", "assistant", "tool", "ipython", "function", "model"];

/// The variables of a template, checked.
#[derive(Debug)]
pub struct Context<'a> {
    request: &'a Request,
    /// The arguments of all tool calls, parsed, in order.
    arguments: Vec<Value>,
    /// The parameters of all tools, parsed, in order.
    parameters: Vec<Option<Value>>,
    extra: Map<String, Value>,
}

impl<'a> Context<'a> {
    /// Checks the parts of a request that are JSON.
    ///
    /// # Errors
    /// [`Error::Invalid`], naming the part.
    pub fn of(request: &'a Request) -> Result<Self, Error> {
        let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
        let tools = request.tools.iter();
        Ok(Self {
            request,
            arguments: calls.map(arguments).collect::<Result<_, _>>()?,
            parameters: tools.map(parameters).collect::<Result<_, _>>()?,
            extra: match &request.extra {
                None => Map::new(),
                Some(text) => object(text)
                    .map_err(|reason| Error::Invalid(format!("the extra variables of the template: {reason}")))?,
            },
        })
    }

    /// The request it belongs to.
    #[must_use]
    pub fn request(&self) -> &Request {
        self.request
    }

    /// The variables, every string from outside passed through `outside`.
    pub fn variables(&self, outside: &mut dyn FnMut(&str) -> String) -> Value {
        let request = self.request;
        let mut arguments = self.arguments.iter();
        let mut messages = Vec::with_capacity(request.messages.len());
        for message in &request.messages {
            messages.push(present(message, &mut arguments, outside));
        }
        let tools = request.tools.iter().zip(&self.parameters);
        let tools: Vec<Value> = tools.map(|(tool, parameters)| offer(tool, parameters.as_ref(), outside)).collect();

        let mut all = Map::new();
        for (key, value) in &self.extra {
            all.insert(key.clone(), map_strings(value, outside));
        }
        all.insert("messages".to_owned(), Value::Array(messages));
        let tools = if tools.is_empty() { Value::Null } else { Value::Array(tools) };
        all.insert("tools".to_owned(), tools);
        all.entry("documents").or_insert(Value::Null);
        all.insert("add_generation_prompt".to_owned(), request.add_generation_prompt.into());
        let template = &request.template;
        for (name, text) in [("bos_token", &template.bos_token), ("eos_token", &template.eos_token)] {
            if let Some(text) = text {
                all.insert(name.to_owned(), text.as_str().into());
            }
        }
        Value::Object(all)
    }
}

fn arguments(call: &ToolCall) -> Result<Value, Error> {
    // Some clients send nothing for a function without arguments.
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    object(text).map(Value::Object).map_err(|reason| {
        Error::Invalid(format!("the arguments of tool call {:?} ({:?}): {reason}", call.id, call.name))
    })
}

fn parameters(tool: &Tool) -> Result<Option<Value>, Error> {
    let parsed = tool.parameters.as_deref().map(object).transpose();
    parsed
        .map(|parsed| parsed.map(Value::Object))
        .map_err(|reason| Error::Invalid(format!("the parameters of tool {:?}: {reason}", tool.name)))
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

fn present<'v>(
    message: &Message,
    arguments: &mut impl Iterator<Item = &'v Value>,
    outside: &mut dyn FnMut(&str) -> String,
) -> Value {
    let mut shown = Map::new();
    let known = ROLES.contains(&message.role.as_str());
    let role = if known { message.role.clone() } else { outside(&message.role) };
    shown.insert("role".to_owned(), role.into());
    shown.insert("content".to_owned(), outside(&text(&message.content)).into());
    if let Some(name) = &message.name {
        shown.insert("name".to_owned(), outside(name).into());
    }
    if !message.tool_calls.is_empty() {
        let calls: Vec<Value> = message
            .tool_calls
            .iter()
            .zip(arguments)
            .map(|(call, arguments)| {
                json!({
                    "id": outside(&call.id),
                    "type": "function",
                    "function": {
                        "name": outside(&call.name),
                        "arguments": map_strings(arguments, outside),
                    },
                })
            })
            .collect();
        shown.insert("tool_calls".to_owned(), calls.into());
    }
    if let Some(id) = &message.tool_call_id {
        shown.insert("tool_call_id".to_owned(), outside(id).into());
    }
    Value::Object(shown)
}

fn text(content: &Content) -> Cow<'_, str> {
    match content {
        Content::None => Cow::Borrowed(""),
        Content::Text(text) => Cow::Borrowed(text),
        Content::Parts(parts) => Cow::Owned(parts.join("\n")),
    }
}

fn offer(tool: &Tool, parameters: Option<&Value>, outside: &mut dyn FnMut(&str) -> String) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), outside(&tool.name).into());
    if let Some(description) = &tool.description {
        function.insert("description".to_owned(), outside(description).into());
    }
    if let Some(parameters) = parameters {
        function.insert("parameters".to_owned(), map_strings(parameters, outside));
    }
    json!({ "type": "function", "function": function })
}

/// Passes all strings of a value through `outside`, and those keys that are more
/// than a plain name: templates look values up by their names, and a plain name
/// is no control token.
fn map_strings(value: &Value, outside: &mut dyn FnMut(&str) -> String) -> Value {
    match value {
        Value::String(text) => outside(text).into(),
        Value::Array(items) => items.iter().map(|item| map_strings(item, outside)).collect(),
        Value::Object(items) => {
            let mut mapped = Map::new();
            for (key, value) in items {
                let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                let key = if plain { key.clone() } else { outside(key) };
                mapped.insert(key, map_strings(value, outside));
            }
            Value::Object(mapped)
        }
        other => other.clone(),
    }
}
