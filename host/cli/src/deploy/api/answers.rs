//! What the operator's API answers.

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use nala_deploy::{Error, History, Listed, Version};
use nala_http::{HostError, ResponseBody};
use serde_json::{Value, json as object};

/// A JSON document.
pub(super) fn json(status: StatusCode, document: &Value) -> Result<Response<ResponseBody>, HostError> {
    let mut response = Response::new(ResponseBody::full(document.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

pub(super) fn listed(all: &[Listed]) -> Value {
    let one = |app: &Listed| {
        let kept: Vec<u64> = app.kept.iter().map(|version| version.get()).collect();
        object!({ "name": app.app.as_str(), "current": app.current.get(), "kept": kept })
    };
    object!({ "apps": all.iter().map(one).collect::<Vec<_>>() })
}

pub(super) fn inspected(version: &Version) -> Value {
    let components = version.components.iter().map(|(id, component)| {
        let facts = &component.facts;
        (id.clone(), object!({ "digest": component.digest.to_string(), "bytes": component.bytes, "facts": facts }))
    });
    object!({
        "version": version.number.get(),
        "components": components.collect::<serde_json::Map<_, _>>(),
        "spin_toml": version.spin_toml,
        "note": version.note,
        "by": version.by,
        "created": version.created_unix_s,
    })
}

pub(super) fn history(history: &History) -> Value {
    let versions: Vec<Value> = history.versions.iter().map(inspected).collect();
    object!({ "current": history.current.get(), "versions": versions })
}

/// Why it was not done.
pub(super) fn problem(error: Error) -> HostError {
    let (status, code) = match &error {
        Error::NoSuchApplication { .. } => (StatusCode::NOT_FOUND, "unknown_application"),
        Error::NoSuchVersion { .. } => (StatusCode::NOT_FOUND, "unknown_version"),
        Error::NoSuchComponent { .. } | Error::NoSuchBlob(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unknown_component"),
        Error::Manifest(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_manifest"),
        Error::ComponentTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "component_too_large"),
        Error::TooManyComponents { .. } => (StatusCode::INSUFFICIENT_STORAGE, "components"),
        Error::TooManyBytes { .. } => (StatusCode::INSUFFICIENT_STORAGE, "component_bytes"),
        Error::TooManyApplications { .. } => (StatusCode::INSUFFICIENT_STORAGE, "applications"),
        _ => {
            tracing::error!(%error, "what is deployed cannot be kept");
            (StatusCode::INTERNAL_SERVER_ERROR, "state_failed")
        }
    };
    HostError::new(status, code, format!("{error}."))
}
