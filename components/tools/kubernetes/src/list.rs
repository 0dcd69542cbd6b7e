//! Lists, as the server makes tables of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::Api;
use crate::kind::{Kind, Scope};
use crate::trouble::short;

/// How many are told at once, if nothing else is asked for.
const USUAL: u32 = 100;

/// The most that can be asked for at once.
const MOST: u32 = 500;

/// The longest cell in characters. Messages of events are long.
const CELL: usize = 300;

pub(crate) const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "kind": {"type": "string", "minLength": 1, "description": "KIND"},
    "namespace": {"type": "string", "description": "NAMESPACE, or at all to look at all"},
    "label_selector": {"type": "string", "description": "Such as app=web,tier!=cache"},
    "field_selector": {"type": "string", "description": "Such as status.phase!=Running"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 500, "description": "How many at most; 100 if it is left out"},
    "continue": {"type": "string", "description": "What an answer has as continue, for what comes behind it"}
  },
  "required": ["kind"],
  "additionalProperties": false
}"#;

pub(crate) const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "kind": {"type": "string"},
    "namespace": {"type": "string", "description": "Left out where it is all of them, or none"},
    "columns": {"type": "array", "items": {"type": "string"}},
    "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    "continue": {"type": "string", "description": "To ask for what comes next; there is nothing if it is left out"},
    "remaining": {"type": "integer", "description": "How many come next, as far as the server knows"}
  },
  "required": ["kind", "columns", "rows"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
pub(crate) struct Asked {
    kind: String,
    namespace: Option<String>,
    label_selector: Option<String>,
    field_selector: Option<String>,
    limit: Option<u32>,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Listed {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
}

pub(crate) fn list(api: &Api<'_>, asked: Asked) -> Result<Listed, String> {
    let kind = Kind::named(&asked.kind)?;
    let namespace = match kind.scope {
        Scope::Namespaced => {
            let namespace = api.settings.namespace(asked.namespace.as_deref())?;
            // Without one, the same request is for all that are in none.
            if namespace.is_none() && kind.may_be_of_cluster() {
                let name_one = |why| format!("name a namespace, since they may be in none: {why}");
                api.settings.cluster(&kind.plural).map_err(name_one)?;
            }
            namespace
        }
        Scope::Cluster => {
            api.settings.cluster(&kind.plural)?;
            None
        }
    };
    let limit = asked.limit.unwrap_or(USUAL).clamp(1, MOST);
    // What a table is made of is not told: of secrets it would be all of them.
    let mut query = vec![("limit", limit.to_string()), ("includeObject", "Metadata".to_owned())];
    for (name, value) in
        [("labelSelector", asked.label_selector), ("fieldSelector", asked.field_selector), ("continue", asked.next)]
    {
        query.extend(value.filter(|value| !value.trim().is_empty()).map(|value| (name, value)));
    }
    let answer = api.table(&kind.path(namespace.as_deref()), &query)?;
    let is_across = kind.scope == Scope::Namespaced && namespace.is_none();
    let (columns, rows) = match answer.get("kind").and_then(Value::as_str) {
        Some("Table") => table(&answer, is_across),
        _ => names(&answer, is_across),
    };
    let meta = answer.get("metadata");
    let next = meta.and_then(|meta| meta.get("continue")).and_then(Value::as_str).filter(|next| !next.is_empty());
    Ok(Listed {
        kind: kind.plural,
        namespace,
        columns,
        rows,
        next: next.map(str::to_owned),
        remaining: meta.and_then(|meta| meta.get("remainingItemCount")).and_then(Value::as_u64),
    })
}

/// Columns and rows of a table, without those columns that are for wide screens.
fn table(answer: &Value, is_across: bool) -> (Vec<String>, Vec<Vec<String>>) {
    let array = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let definitions = array(answer.get("columnDefinitions"));
    let is_usual = |column: &Value| column.get("priority").and_then(Value::as_i64).unwrap_or(0) == 0;
    let shown: Vec<bool> = definitions.iter().map(is_usual).collect();
    let name = |column: &Value| column.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let columns = definitions.iter().filter(|column| is_usual(column)).map(name);
    let rows = array(answer.get("rows"));
    let row = |row: &Value| {
        let place = is_across.then(|| meta(row.get("object"), "namespace"));
        let cells = array(row.get("cells"));
        let cells = cells.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(value, _)| cell(value));
        place.into_iter().chain(cells).collect()
    };
    let first = is_across.then(|| "Namespace".to_owned());
    (first.into_iter().chain(columns).collect(), rows.iter().map(row).collect())
}

/// Names and beginnings, of a server that makes no tables.
fn names(answer: &Value, is_across: bool) -> (Vec<String>, Vec<Vec<String>>) {
    let keys: &[(&str, &str)] = match is_across {
        true => &[("Namespace", "namespace"), ("Name", "name"), ("Created", "creationTimestamp")],
        false => &[("Name", "name"), ("Created", "creationTimestamp")],
    };
    let items = answer.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let row = |item: &Value| keys.iter().map(|(_, key)| meta(Some(item), key)).collect();
    (keys.iter().map(|(name, _)| (*name).to_owned()).collect(), items.iter().map(row).collect())
}

/// A text of an object's metadata.
fn meta(object: Option<&Value>, key: &str) -> String {
    let value = object.and_then(|object| object.get("metadata")).and_then(|meta| meta.get(key));
    value.map(cell).unwrap_or_default()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => short(text, CELL),
        other => short(&other.to_string(), CELL),
    }
}
