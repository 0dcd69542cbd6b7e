//! How many replicas a deployment has.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::Api;
use crate::kind::Kind;
use crate::name;

pub(crate) const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1},
    "namespace": {"type": "string", "description": "NAMESPACE"},
    "replicas": {"type": "integer", "minimum": 0, "description": "How many there are to be"}
  },
  "required": ["name", "replicas"],
  "additionalProperties": false
}"#;

pub(crate) const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "name": {"type": "string"},
    "namespace": {"type": "string"},
    "before": {"type": "integer", "description": "How many there were to be before"},
    "replicas": {"type": "integer", "description": "How many there are to be now"},
    "running": {"type": "integer", "description": "How many pods there were when this was asked"}
  },
  "required": ["name", "namespace", "before", "replicas"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
pub(crate) struct Asked {
    name: String,
    namespace: Option<String>,
    replicas: u32,
}

#[derive(Serialize)]
pub(crate) struct Scaled {
    name: String,
    namespace: String,
    before: u64,
    replicas: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<u64>,
}

pub(crate) fn scale(api: &Api<'_>, asked: Asked) -> Result<Scaled, String> {
    api.settings.replicas(asked.replicas)?;
    let name = name::resource(&asked.name)?;
    let namespace = api.settings.one_namespace(asked.namespace.as_deref())?;
    let path = format!("{}/{name}/scale", Kind::named("deployments")?.path(Some(&namespace)));
    let found = api.get(&path, &[])?;
    // The field is left out where it is 0.
    let before = wanted(&found)?.unwrap_or(0);
    let running = found.pointer("/status/replicas").and_then(Value::as_u64);
    let done = |replicas| Scaled { name: name.to_owned(), namespace: namespace.clone(), before, replicas, running };
    if before == u64::from(asked.replicas) {
        return Ok(done(before));
    }
    let version = found.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let mut patch = json!({"spec": {"replicas": asked.replicas}});
    if let (Some(version), Some(patch)) = (version, patch.as_object_mut()) {
        // What somebody else has changed since is not changed back.
        patch.insert("metadata".to_owned(), json!({"resourceVersion": version}));
    }
    let changed = api.merge(&path, &patch)?;
    Ok(done(wanted(&changed)?.unwrap_or(0)))
}

/// How many replicas an object of the kind `Scale` says there are to be.
fn wanted(scale: &Value) -> Result<Option<u64>, String> {
    match scale.get("spec") {
        Some(spec) if scale.get("kind").and_then(Value::as_str) == Some("Scale") => {
            Ok(spec.get("replicas").and_then(Value::as_u64))
        }
        _ => Err("the API server's answer says nothing of replicas".to_owned()),
    }
}
