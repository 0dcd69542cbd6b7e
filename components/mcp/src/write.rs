//! What tools, resources and prompts are in the protocol's JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nala_sdk::library::{Asset, Completion, Filled, Message, Parameter, Pattern, Prompt, Role};
use nala_sdk::tools::{Abilities, Answer, Body, Content, Contents, Entry, Inquiry, Link, Progress, Severity, Tool};
use serde_json::{Map, Value, json};

/// Adds a text that need not be there.
fn set(object: &mut Value, key: &str, text: Option<&str>) {
    if let (Value::Object(object), Some(text)) = (object, text) {
        object.insert(key.to_owned(), text.into());
    }
}

/// JSON that a component gave as text. The host has read it before.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

pub(crate) fn tool(tool: &Tool) -> Value {
    let Tool { name, title, description, input_schema, output_schema, annotations } = tool;
    let mut all = json!({ "name": name, "description": description, "inputSchema": parsed(input_schema) });
    set(&mut all, "title", title.as_deref());
    let hints = [
        ("readOnlyHint", annotations.read_only),
        ("destructiveHint", annotations.destructive),
        ("idempotentHint", annotations.idempotent),
        ("openWorldHint", annotations.open_world),
    ];
    let hints: Map<String, Value> =
        hints.into_iter().filter_map(|(key, hint)| Some((key.to_owned(), hint?.into()))).collect();
    if let Value::Object(all) = &mut all {
        if let Some(schema) = output_schema {
            all.insert("outputSchema".to_owned(), parsed(schema));
        }
        if !hints.is_empty() {
            all.insert("annotations".to_owned(), hints.into());
        }
    }
    all
}

pub(crate) fn asset(asset: &Asset) -> Value {
    let Asset { uri, name, title, description, mime_type } = asset;
    let mut all = json!({ "uri": uri, "name": name });
    set(&mut all, "title", title.as_deref());
    set(&mut all, "description", description.as_deref());
    set(&mut all, "mimeType", mime_type.as_deref());
    all
}

pub(crate) fn pattern(pattern: &Pattern) -> Value {
    let Pattern { uri_template, name, title, description, mime_type } = pattern;
    let mut all = json!({ "uriTemplate": uri_template, "name": name });
    set(&mut all, "title", title.as_deref());
    set(&mut all, "description", description.as_deref());
    set(&mut all, "mimeType", mime_type.as_deref());
    all
}

pub(crate) fn prompt(prompt: &Prompt) -> Value {
    let Prompt { name, title, description, parameters } = prompt;
    let parameter = |Parameter { name, description, required }: &Parameter| {
        let mut all = json!({ "name": name, "required": required });
        set(&mut all, "description", description.as_deref());
        all
    };
    let mut all = json!({ "name": name });
    set(&mut all, "title", title.as_deref());
    set(&mut all, "description", description.as_deref());
    if let (Value::Object(all), false) = (&mut all, parameters.is_empty()) {
        all.insert("arguments".to_owned(), parameters.iter().map(parameter).collect());
    }
    all
}

/// The result of `tools/call`.
pub(crate) fn answer(answer: &Answer) -> Value {
    let parts: Vec<Value> = answer.content.iter().map(content).collect();
    let mut all = json!({ "content": parts });
    if let Value::Object(all) = &mut all {
        if let Some(structured) = &answer.structured {
            all.insert("structuredContent".to_owned(), parsed(structured));
        }
        if answer.is_error {
            all.insert("isError".to_owned(), true.into());
        }
    }
    all
}

/// The result of `resources/read`.
pub(crate) fn read(all: &[Contents]) -> Value {
    json!({ "contents": all.iter().map(contents).collect::<Vec<_>>() })
}

/// The result of `prompts/get`.
pub(crate) fn filled(filled: &Filled) -> Value {
    let message = |Message { role, content: said }: &Message| {
        let role = match role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({ "role": role, "content": content(said) })
    };
    let mut all = json!({ "messages": filled.messages.iter().map(message).collect::<Vec<_>>() });
    set(&mut all, "description", filled.description.as_deref());
    all
}

/// The result of `completion/complete`.
pub(crate) fn completion(Completion { values, total, has_more }: &Completion) -> Value {
    let mut all = json!({ "values": values, "hasMore": has_more });
    if let (Value::Object(all), Some(total)) = (&mut all, total) {
        all.insert("total".to_owned(), (*total).into());
    }
    json!({ "completion": all })
}

fn content(content: &Content) -> Value {
    let media = |kind: &str, data: &[u8], mime_type: &str| json!({ "type": kind, "data": STANDARD.encode(data), "mimeType": mime_type });
    match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image(one) => media("image", &one.data, &one.mime_type),
        Content::Audio(one) => media("audio", &one.data, &one.mime_type),
        Content::Resource(one) => json!({ "type": "resource", "resource": contents(one) }),
        Content::Link(Link { uri, name, description, mime_type }) => {
            let mut all = json!({ "type": "resource_link", "uri": uri, "name": name });
            set(&mut all, "description", description.as_deref());
            set(&mut all, "mimeType", mime_type.as_deref());
            all
        }
    }
}

fn contents(Contents { uri, mime_type, body }: &Contents) -> Value {
    let mut all = match body {
        Body::Text(text) => json!({ "uri": uri, "text": text }),
        Body::Bytes(bytes) => json!({ "uri": uri, "blob": STANDARD.encode(bytes) }),
    };
    set(&mut all, "mimeType", mime_type.as_deref());
    all
}

/// The parameters of `notifications/progress`.
pub(crate) fn progress(progress: &Progress, token: &Value) -> Value {
    let Progress { done, total, message } = progress;
    let mut all = json!({ "progressToken": token, "progress": number(*done) });
    set(&mut all, "message", message.as_deref());
    if let (Value::Object(all), Some(total)) = (&mut all, total) {
        all.insert("total".to_owned(), number(*total));
    }
    all
}

/// A number as people write it. What is no number is none for JSON either.
fn number(value: f64) -> Value {
    let is_whole = value.fract() == 0.0 && value.abs() < 1e15;
    if is_whole { json!(value as i64) } else { json!(if value.is_finite() { value } else { 0.0 }) }
}

/// The parameters of `notifications/message`.
pub(crate) fn entry(Entry { severity, logger, data }: &Entry) -> Value {
    let mut all = json!({ "level": level(*severity), "data": parsed(data) });
    set(&mut all, "logger", logger.as_deref());
    all
}

/// The levels, from what matters least.
const LEVELS: [(Severity, &str); 8] = [
    (Severity::Debug, "debug"),
    (Severity::Info, "info"),
    (Severity::Notice, "notice"),
    (Severity::Warning, "warning"),
    (Severity::Error, "error"),
    (Severity::Critical, "critical"),
    (Severity::Alert, "alert"),
    (Severity::Emergency, "emergency"),
];

fn level(severity: Severity) -> &'static str {
    LEVELS.iter().find(|(known, _)| *known == severity).map_or("info", |(_, name)| name)
}

/// How much a level matters. None: there is no such level.
pub(crate) fn weight(level: &str) -> Option<usize> {
    LEVELS.iter().position(|(_, name)| *name == level)
}

/// The same of a line.
pub(crate) fn weight_of(entry: &Entry) -> usize {
    LEVELS.iter().position(|(known, _)| *known == entry.severity).unwrap_or(0)
}

/// The method by which somebody is asked.
pub(crate) fn method(kind: Inquiry) -> &'static str {
    match kind {
        Inquiry::Elicitation => "elicitation/create",
        Inquiry::Sampling => "sampling/createMessage",
        Inquiry::Roots => "roots/list",
    }
}

/// What a client says that it can be asked.
pub(crate) fn abilities(capabilities: &Value) -> Abilities {
    let mut all = Abilities::empty();
    if let Some(elicitation) = capabilities.get("elicitation").and_then(Value::as_object) {
        let has_url = elicitation.contains_key("url");
        // Before there were pages, there were forms only, and nothing to be said of them.
        if elicitation.contains_key("form") || !has_url {
            all |= Abilities::ELICIT_FORM;
        }
        if has_url {
            all |= Abilities::ELICIT_URL;
        }
    }
    if capabilities.get("sampling").is_some_and(Value::is_object) {
        all |= Abilities::SAMPLE;
    }
    if capabilities.get("roots").is_some_and(Value::is_object) {
        all |= Abilities::ROOTS;
    }
    all
}

/// The capabilities that a client would have to have for these.
pub(crate) fn capabilities(abilities: Abilities) -> Value {
    let mut all = Map::new();
    let mut elicitation = Map::new();
    for (ability, mode) in [(Abilities::ELICIT_FORM, "form"), (Abilities::ELICIT_URL, "url")] {
        if abilities.contains(ability) {
            elicitation.insert(mode.to_owned(), json!({}));
        }
    }
    if !elicitation.is_empty() {
        all.insert("elicitation".to_owned(), elicitation.into());
    }
    for (ability, name) in [(Abilities::SAMPLE, "sampling"), (Abilities::ROOTS, "roots")] {
        if abilities.contains(ability) {
            all.insert(name.to_owned(), json!({}));
        }
    }
    all.into()
}
