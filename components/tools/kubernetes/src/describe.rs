//! One resource with its events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::Api;
use crate::kind::{Kind, Scope};
use crate::name;
use crate::secret;
use crate::trouble::short;

/// The longest object that is told, in bytes of JSON.
const LONGEST: usize = 64 << 10;

/// The longest texts in it, in characters, where longer ones would be too much.
const TEXTS: [usize; 3] = [4096, 512, 128];

/// How many events are asked for, and how many of these are told.
const EVENTS_READ: usize = 200;
const EVENTS: usize = 20;

pub(crate) const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "kind": {"type": "string", "minLength": 1, "description": "KIND"},
    "name": {"type": "string", "minLength": 1},
    "namespace": {"type": "string", "description": "NAMESPACE"}
  },
  "required": ["kind", "name"],
  "additionalProperties": false
}"#;

pub(crate) const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "object": {"type": "object", "description": "As the API has it, without what tools keep in it"},
    "left_out": {"type": "array", "items": {"type": "string"}, "description": "Parts of a very long object"},
    "events": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "last": {"type": "string", "description": "When it happened last"},
          "type": {"type": "string"},
          "reason": {"type": "string"},
          "message": {"type": "string"},
          "count": {"type": "integer"}
        },
        "required": ["type", "reason", "message"],
        "additionalProperties": false
      },
      "description": "The latest ones, the last one first"
    },
    "note": {"type": "string", "description": "Why there are no events"}
  },
  "required": ["object", "events"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
pub(crate) struct Asked {
    kind: String,
    name: String,
    namespace: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Described {
    object: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    events: Vec<Event>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Event {
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    r#type: String,
    reason: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

pub(crate) fn describe(api: &Api<'_>, asked: Asked) -> Result<Described, String> {
    let kind = Kind::named(&asked.kind)?;
    let name = name::resource(&asked.name)?;
    let namespace = match kind.scope {
        Scope::Namespaced => Some(api.settings.one_namespace(asked.namespace.as_deref())?),
        Scope::Cluster => {
            api.settings.cluster(&kind.plural)?;
            None
        }
    };
    let object = api.get(&format!("{}/{name}", kind.path(namespace.as_deref())), &[])?;
    let (events, note) = match events(api, &object, name, namespace.as_deref()) {
        Ok(events) => (events, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let object = if kind.is_secret() { secret::secret(&object) } else { secret::shown(object) };
    let (object, left_out) = fitting(object);
    Ok(Described { object, left_out, events, note })
}

/// What has happened to an object lately.
fn events(api: &Api<'_>, object: &Value, name: &str, namespace: Option<&str>) -> Result<Vec<Event>, String> {
    // Of what is in no namespace, events can be in any.
    if namespace.is_none() && api.settings.namespace(None)?.is_some() {
        return Err("events of what is in no namespace are looked for where all namespaces are granted".to_owned());
    }
    let mut selector = format!("involvedObject.name={name}");
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        selector.push_str(&format!(",involvedObject.kind={kind}"));
    }
    let path = Kind::named("events")?.path(namespace);
    let answer = api.get(&path, &[("fieldSelector", selector), ("limit", EVENTS_READ.to_string())])?;
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let event = |item: &Value| Event {
        last: text(item, "lastTimestamp").or_else(|| text(item, "eventTime")),
        r#type: text(item, "type").unwrap_or_default(),
        reason: text(item, "reason").unwrap_or_default(),
        message: short(&text(item, "message").unwrap_or_default(), 500),
        count: item.get("count").and_then(Value::as_u64),
    };
    let items = answer.get("items").and_then(Value::as_array);
    let mut events: Vec<Event> = items.into_iter().flatten().map(event).collect();
    // Times are of one form (RFC 3339, in UTC), so that their texts have their order.
    events.sort_by(|one, other| other.last.cmp(&one.last));
    events.truncate(EVENTS);
    Ok(events)
}

/// An object that is not too long to be told, and what it is without.
fn fitting(whole: Value) -> (Value, Vec<String>) {
    let (mut object, mut left_out) = (whole.clone(), Vec::new());
    for most in TEXTS {
        if length(&object) <= LONGEST {
            break;
        }
        object.clone_from(&whole);
        cut(&mut object, most);
    }
    while length(&object) > LONGEST {
        let Some(parts) = object.as_object_mut() else { break };
        let Some(longest) = parts.iter().max_by_key(|(_, part)| length(part)).map(|(key, _)| key.clone()) else {
            break;
        };
        parts.shift_remove(&longest);
        left_out.push(longest);
    }
    (object, left_out)
}

fn length(value: &Value) -> usize {
    value.to_string().len()
}

/// Cuts long texts in a value.
fn cut(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.chars().nth(most).is_some() => {
            let start: String = text.chars().take(most).collect();
            *text = format!("{start}… ({} bytes in all)", text.len());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut(item, most)),
        Value::Object(parts) => parts.values_mut().for_each(|part| cut(part, most)),
        _ => {}
    }
}
