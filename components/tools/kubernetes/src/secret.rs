//! What of an object is not shown, and what is left of it.

use serde_json::{Map, Value, json};

/// The annotation in which `kubectl apply` keeps a copy of all that was applied, and so of
/// a secret's data.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What is shown of a secret's metadata. Annotations can hold copies of its data.
const METADATA: [&str; 4] = ["name", "namespace", "labels", "creationTimestamp"];

/// An object without what is of no use to a model, and of a secret only what it is and
/// which keys it has.
pub(crate) fn shown(object: Value) -> Value {
    let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret");
    if is_secret { secret(&object) } else { pruned(object) }
}

/// A secret by its keys.
pub(crate) fn secret(object: &Value) -> Value {
    let part = |key: &str| object.get(key).cloned().unwrap_or(Value::Null);
    let keys = |part: &str| object.get(part).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let meta = object.get("metadata").and_then(Value::as_object);
    let meta: Map<String, Value> =
        METADATA.iter().filter_map(|key| Some(((*key).to_owned(), meta?.get(*key)?.clone()))).collect();
    let keys: Vec<&String> = keys("data").chain(keys("stringData")).collect();
    json!({"apiVersion": part("apiVersion"), "kind": "Secret", "type": part("type"), "metadata": meta, "keys": keys})
}

fn pruned(mut object: Value) -> Value {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    meta.remove("managedFields");
    if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(APPLIED);
        if annotations.is_empty() {
            meta.remove("annotations");
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_secret_there_are_its_keys() {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "db", "namespace": "shop", "annotations": {APPLIED: "aHVudGVyMg==", "x": "aHVudGVyMg=="},
                "managedFields": [{"x": "aHVudGVyMg=="}]},
            "data": {"password": "aHVudGVyMg==", "user": "aHVudGVyMg=="}, "stringData": {"more": "aHVudGVyMg=="},
            "extra": "aHVudGVyMg=="
        });
        let shown = shown(object);
        assert!(!shown.to_string().contains("aHVudGVyMg=="), "{shown}");
        assert_eq!(shown["keys"], json!(["password", "user", "more"]));
        assert_eq!((&shown["metadata"]["name"], &shown["type"]), (&json!("db"), &json!("Opaque")));
    }

    #[test]
    fn what_is_of_no_use_is_left_out() {
        let meta = json!({"name": "a", "managedFields": [1], "annotations": {APPLIED: "x"}});
        assert_eq!(shown(json!({"kind": "Pod", "metadata": meta})), json!({"kind": "Pod", "metadata": {"name": "a"}}));
        assert_eq!(shown(json!([])), json!([]));
    }
}
