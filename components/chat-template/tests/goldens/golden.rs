//! The files that goldens/make.py writes.

use std::path::PathBuf;

use chat_template::engine::Program;
use chat_template::source::Source;
use chat_template::{Content, Error, Message, Request, Template, Tool, ToolCall};
use serde_json::{Map, Value};

/// What the reference made of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Prompt(String),
    /// The template raised this.
    Refused(String),
    /// Something else went wrong.
    Failed(String),
    /// The sandbox refused to change a list; outside of it, this is the prompt.
    Locked(String),
}

pub(crate) struct Goldens {
    pub(crate) now: u64,
    pub(crate) bos: String,
    pub(crate) eos: String,
    /// Names and variables.
    pub(crate) conversations: Map<String, Value>,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("goldens")
}

fn json(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder().join(path)).unwrap()).unwrap()
}

impl Goldens {
    pub(crate) fn read() -> Self {
        let shared = json("conversations.json");
        let text = |key: &str| shared[key].as_str().unwrap().to_owned();
        Self {
            now: shared["now"].as_u64().unwrap(),
            bos: text("bos"),
            eos: text("eos"),
            conversations: shared["conversations"].as_object().unwrap().clone(),
        }
    }

    /// What the reference made of each conversation.
    pub(crate) fn of(&self, template: &str) -> Vec<(String, Outcome)> {
        let all = json(&format!("prompts/{template}.json"));
        let outcome = |found: &Value| {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            text(&found["prompt"])
                .map(Outcome::Prompt)
                .or_else(|| text(&found["refused"]).map(Outcome::Refused))
                .or_else(|| text(&found["unlocked"]["prompt"]).map(Outcome::Locked))
                .or_else(|| text(&found["failed"]).map(Outcome::Failed))
        };
        let mut outcomes = Vec::new();
        for (conversation, found) in all.as_object().unwrap() {
            let found = found["as"].as_str().map_or(found, |same| &all[same]);
            outcomes.push((conversation.clone(), outcome(found).unwrap()));
        }
        outcomes
    }

    /// What the engine makes of a conversation without any fixing up.
    pub(crate) fn raw(&self, source: &str, conversation: &str) -> Result<String, Error> {
        let mut variables = self.conversations[conversation].clone();
        let special = [("bos_token", &self.bos), ("eos_token", &self.eos)];
        for (name, text) in special {
            variables[name] = text.as_str().into();
        }
        variables["documents"] = Value::Null;
        let source = Source::of(source)?;
        let program = Program::compile(&source, self.now, None)?;
        program.render(&variables).map(|rendered| rendered.text)
    }

    /// The conversation as a client of the component sends it.
    pub(crate) fn request(&self, source: &str, conversation: &str) -> Request {
        let mut variables = self.conversations[conversation].as_object().unwrap().clone();
        let messages = variables.remove("messages").unwrap();
        let tools = variables.remove("tools").unwrap();
        let generate = variables.remove("add_generation_prompt").unwrap();
        Request {
            template: Template {
                source: source.to_owned(),
                bos_token: Some(self.bos.clone()),
                eos_token: Some(self.eos.clone()),
            },
            messages: all(&messages, message),
            tools: all(&tools, |tool| Tool {
                name: text(&tool["function"]["name"]).unwrap(),
                description: text(&tool["function"]["description"]),
                parameters: Some(tool["function"]["parameters"].to_string()),
            }),
            add_generation_prompt: generate.as_bool().unwrap(),
            extra: (!variables.is_empty()).then(|| Value::Object(variables).to_string()),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn all<T>(value: &Value, make: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().map(|items| items.iter().map(make).collect()).unwrap_or_default()
}

fn message(message: &Value) -> Message {
    let content = match message.get("content") {
        Some(Value::String(text)) => Content::Text(text.clone()),
        Some(Value::Array(parts)) => Content::Parts(parts.iter().map(|part| text(&part["text"]).unwrap()).collect()),
        _ => Content::None,
    };
    Message {
        role: text(&message["role"]).unwrap(),
        content,
        reasoning: text(&message["reasoning_content"]),
        name: text(&message["name"]),
        tool_calls: all(&message["tool_calls"], |call| ToolCall {
            id: text(&call["id"]).unwrap(),
            name: text(&call["function"]["name"]).unwrap(),
            arguments: match &call["function"]["arguments"] {
                Value::String(text) => text.clone(),
                object => object.to_string(),
            },
        }),
        tool_call_id: text(&message["tool_call_id"]),
    }
}

/// Names and sources of the templates in a folder.
pub(crate) fn templates(inside: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder().join(inside)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "jinja") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Where what was found begins to differ from what was expected.
pub(crate) fn difference(expected: &Outcome, found: &Result<String, Error>) -> String {
    match (expected, found) {
        (Outcome::Prompt(a) | Outcome::Locked(a), Ok(b)) => {
            let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            let around = |text: &str| {
                let bytes = &text.as_bytes()[same.saturating_sub(40)..text.len().min(same + 60)];
                String::from_utf8_lossy(bytes).into_owned()
            };
            format!("at byte {same}\n  expected {:?}\n  found    {:?}", around(a), around(b))
        }
        (Outcome::Refused(_) | Outcome::Failed(_), Ok(_)) => format!("{expected:?}, and a prompt is found"),
        (Outcome::Prompt(_) | Outcome::Locked(_), Err(error)) => format!("a prompt is expected, found {error:?}"),
        _ => format!("expected {expected:?}, found {found:?}"),
    }
}
