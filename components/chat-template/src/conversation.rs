//! A conversation, and the variables that a template sees of it.
//!
//! A message is shown as transformers 5 shows it, which leaves out what is not
//! there; see `manner.rs` for what can be shown in more than one way.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::manner::{Arguments, Manner, Prose, Silence};
use crate::source::Source;
use crate::{Content, Error, Message, Request, Tool, ToolCall, json as text};

/// Roles that templates know. Any other is text from outside like the rest:
/// some templates print the role as part of a control token.
const ROLES: [&str; 8] = ["system", "developer", "user", "assistant", "tool", "ipython", "function", "model"];

/// A conversation, checked.
#[derive(Debug, Clone)]
pub struct Conversation {
    pub(crate) turns: Vec<Turn>,
    pub(crate) tools: Vec<Offer>,
    pub(crate) manner: Manner,
    /// Everything else that the template may ask for.
    pub(crate) others: Others,
    /// What the template looks up by name.
    names: Rc<BTreeSet<String>>,
}

/// The variables that are no part of the conversation.
#[derive(Debug, Clone)]
pub(crate) struct Others {
    pub(crate) extra: Map<String, Value>,
    pub(crate) bos: Option<String>,
    pub(crate) eos: Option<String>,
    pub(crate) add_generation_prompt: bool,
}

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) role: String,
    pub(crate) content: Content,
    pub(crate) reasoning: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) call_id: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
}

/// A tool.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Map<String, Value>,
}

impl Conversation {
    /// Checks the parts of a request that are JSON.
    ///
    /// # Errors
    /// [`Error::Invalid`], naming the part.
    pub fn of(request: &Request, source: &Source<'_>) -> Result<Self, Error> {
        let extra = match &request.extra {
            None => Map::new(),
            Some(text) => object(text)
                .map_err(|reason| Error::Invalid(format!("the extra variables of the template: {reason}")))?,
        };
        // Only objects have keys that could be looked up.
        let calls = request.messages.iter().any(|message| !message.tool_calls.is_empty());
        let has_objects = calls || !request.tools.is_empty() || request.extra.is_some();
        let mut turns = request.messages.iter().map(Turn::of).collect::<Result<Vec<_>, _>>()?;
        name_results(&mut turns);
        Ok(Self {
            turns,
            tools: request.tools.iter().map(Offer::of).collect::<Result<_, _>>()?,
            manner: Manner::default(),
            others: Others {
                extra,
                bos: request.template.bos_token.clone(),
                eos: request.template.eos_token.clone(),
                add_generation_prompt: request.add_generation_prompt,
            },
            names: Rc::new(if has_objects { source.names() } else { BTreeSet::new() }),
        })
    }

    /// The variables, every string from outside passed through `outside`.
    pub fn variables(&self, outside: &mut dyn FnMut(&str) -> String) -> Value {
        let outside = &mut Outside { names: &self.names, change: outside };
        let mut all = Map::new();
        for (key, value) in self.manner.more.iter().chain(&self.others.extra) {
            all.insert(key.clone(), outside.value(value));
        }
        let turns = self.turns.iter().map(|turn| turn.shown(&self.manner, outside)).collect();
        all.insert("messages".to_owned(), Value::Array(turns));
        let tools: Vec<Value> = self.tools.iter().map(|tool| tool.shown(outside)).collect();
        let none = tools.is_empty() && self.manner.no_tools.is_null();
        all.insert("tools".to_owned(), if none { Value::Null } else { Value::Array(tools) });
        all.entry("documents").or_insert(Value::Null);
        all.insert("add_generation_prompt".to_owned(), self.others.add_generation_prompt.into());
        for (name, text) in [("bos_token", &self.others.bos), ("eos_token", &self.others.eos)] {
            if let Some(text) = text {
                all.insert(name.to_owned(), text.as_str().into());
            }
        }
        Value::Object(all)
    }

    /// Another conversation with the same template, variables and manner.
    pub(crate) fn instead(&self, turns: Vec<Turn>, tools: Vec<Offer>) -> Self {
        Self { turns, tools, manner: self.manner.clone(), others: self.others.clone(), names: Rc::clone(&self.names) }
    }
}

impl Turn {
    /// A message with text alone.
    pub(crate) fn new(role: &str, text: impl Into<String>) -> Self {
        Self {
            role: role.to_owned(),
            content: Content::Text(text.into()),
            reasoning: None,
            name: None,
            calls: Vec::new(),
            call_id: None,
        }
    }

    fn of(message: &Message) -> Result<Self, Error> {
        Ok(Self {
            role: message.role.clone(),
            content: message.content.clone(),
            reasoning: message.reasoning.clone(),
            name: message.name.clone(),
            calls: message.tool_calls.iter().map(Call::of).collect::<Result<_, _>>()?,
            call_id: message.tool_call_id.clone(),
        })
    }

    /// What it says, as one text.
    pub(crate) fn text(&self) -> String {
        match &self.content {
            Content::None => String::new(),
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => parts.join("\n"),
        }
    }

    fn shown(&self, manner: &Manner, outside: &mut Outside<'_, '_>) -> Value {
        let mut shown = Map::new();
        let known = ROLES.contains(&self.role.as_str());
        let role = if known { self.role.clone() } else { outside.text(&self.role) };
        shown.insert("role".to_owned(), role.into());
        let mut part = |text: &String| json!({ "type": "text", "text": outside.text(text) });
        let content = match (&self.content, manner.prose) {
            (Content::None, _) if manner.silence == Silence::Missing && !self.calls.is_empty() => None,
            (Content::Parts(parts), _) => Some(parts.iter().map(part).collect()),
            (Content::Text(text), Prose::Parts) => Some(Value::Array(vec![part(text)])),
            (Content::Text(text), Prose::Text) => Some(outside.text(text).into()),
            (Content::None, _) => Some("".into()),
        };
        if let Some(content) = content {
            shown.insert("content".to_owned(), content);
        }
        if let Some(reasoning) = &self.reasoning {
            let reasoning = outside.text(reasoning);
            shown.insert("reasoning_content".to_owned(), reasoning.as_str().into());
            shown.insert("thinking".to_owned(), reasoning.into());
        }
        if !self.calls.is_empty() {
            let calls: Vec<Value> = self.calls.iter().map(|call| call.shown(manner, outside)).collect();
            shown.insert("tool_calls".to_owned(), calls.into());
        }
        for (key, text) in [("tool_call_id", &self.call_id), ("name", &self.name)] {
            if let Some(text) = text {
                shown.insert(key.to_owned(), outside.text(text).into());
            }
        }
        Value::Object(shown)
    }
}

impl Call {
    fn of(call: &ToolCall) -> Result<Self, Error> {
        // Some clients send nothing for a function without arguments.
        let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let arguments = object(text).map_err(|reason| {
            Error::Invalid(format!("the arguments of tool call {:?} ({:?}): {reason}", call.id, call.name))
        })?;
        Ok(Self { id: call.id.clone(), name: call.name.clone(), arguments })
    }

    fn shown(&self, manner: &Manner, outside: &mut Outside<'_, '_>) -> Value {
        let arguments = match manner.arguments {
            Arguments::Object => outside.object(&self.arguments),
            Arguments::Text => outside.text(&text::object(&self.arguments)).into(),
        };
        let name = outside.text(&self.name);
        json!({
            "id": outside.text(&self.id),
            "type": "function",
            "function": { "name": name, "arguments": arguments },
        })
    }
}

impl Offer {
    fn of(tool: &Tool) -> Result<Self, Error> {
        let parameters = match &tool.parameters {
            Some(text) => object(text)
                .map_err(|reason| Error::Invalid(format!("the parameters of tool {:?}: {reason}", tool.name)))?,
            // What a tool without parameters has, in OpenAI's words "an empty parameter list".
            None => Map::from_iter([("type".to_owned(), "object".into()), ("properties".to_owned(), json!({}))]),
        };
        // Templates print the description unasked.
        Ok(Self { name: tool.name.clone(), description: tool.description.clone().unwrap_or_default(), parameters })
    }

    /// In OpenAI's shape.
    pub(crate) fn plain(&self) -> Value {
        self.shown(&mut Outside { names: &BTreeSet::new(), change: &mut str::to_owned })
    }

    fn shown(&self, outside: &mut Outside<'_, '_>) -> Value {
        let name = outside.text(&self.name);
        let description = outside.text(&self.description);
        json!({
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": outside.object(&self.parameters),
            },
        })
    }
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

/// Many templates want to know which tool a result is of, and OpenAI's API tells
/// by the call's id alone.
fn name_results(turns: &mut [Turn]) {
    for index in 0..turns.len() {
        let (before, rest) = turns.split_at_mut(index);
        let Some(turn) = rest.first_mut().filter(|turn| turn.role == "tool" && turn.name.is_none()) else { continue };
        let calls = before.iter().rev().flat_map(|earlier| &earlier.calls);
        turn.name = calls.filter(|call| Some(&call.id) == turn.call_id.as_ref()).map(|call| call.name.clone()).next();
    }
}

/// What becomes of the strings from outside.
///
/// Keys of objects are from outside, too. Those that the template looks up by name
/// stay as they are, so that it finds them; a template that prints them prints words
/// of its own. So do strings of the same object that equal such a key, as in the
/// list of required properties of a schema.
struct Outside<'a, 'b> {
    names: &'a BTreeSet<String>,
    change: &'b mut dyn FnMut(&str) -> String,
}

impl Outside<'_, '_> {
    fn text(&mut self, text: &str) -> String {
        (self.change)(text)
    }

    fn value(&mut self, value: &Value) -> Value {
        let kept = self.kept(value);
        self.inside(value, &kept)
    }

    fn object(&mut self, items: &Map<String, Value>) -> Value {
        let mut kept = BTreeSet::new();
        items.iter().for_each(|(key, value)| self.keep(key, value, &mut kept));
        self.items(items, &kept)
    }

    /// The keys in a value that the template looks up.
    fn kept(&self, value: &Value) -> BTreeSet<String> {
        let mut kept = BTreeSet::new();
        self.collect(value, &mut kept);
        kept
    }

    fn collect(&self, value: &Value, kept: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, kept)),
            Value::Object(items) => items.iter().for_each(|(key, value)| self.keep(key, value, kept)),
            _ => {}
        }
    }

    fn keep(&self, key: &str, value: &Value, kept: &mut BTreeSet<String>) {
        if self.names.contains(key) {
            kept.insert(key.to_owned());
        }
        self.collect(value, kept);
    }

    fn inside(&mut self, value: &Value, kept: &BTreeSet<String>) -> Value {
        match value {
            Value::String(text) if kept.contains(text) => text.as_str().into(),
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.inside(item, kept)).collect(),
            Value::Object(items) => self.items(items, kept),
            other => other.clone(),
        }
    }

    fn items(&mut self, items: &Map<String, Value>, kept: &BTreeSet<String>) -> Value {
        let mut mapped = Map::new();
        for (key, value) in items {
            let key = if kept.contains(key) { key.clone() } else { self.text(key) };
            mapped.insert(key, self.inside(value, kept));
        }
        Value::Object(mapped)
    }
}
