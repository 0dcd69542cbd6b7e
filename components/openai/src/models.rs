//! `GET /v1/models` and `GET /v1/models/{id}`.

use nala_sdk::http::Response;
use nala_sdk::llm::Model;
use serde_json::{Value, json};

use crate::error::ApiError;

/// The models that this component may open.
pub(crate) fn list() -> Response {
    let models: Vec<Value> = Model::available().iter().map(|name| describe(name)).collect();
    let body = json!({ "object": "list", "data": models });
    Response::new(200, "application/json", body.to_string())
}

/// One of them.
pub(crate) fn one(name: &str) -> Result<Response, ApiError> {
    let available = Model::available();
    if !available.iter().any(|known| known == name) {
        return Err(ApiError::model_not_found(name, &available));
    }
    Ok(Response::new(200, "application/json", describe(name).to_string()))
}

/// What is known of a model without opening it: a listing must not have models
/// loaded.
fn describe(name: &str) -> Value {
    json!({
        "id": name,
        "object": "model",
        // Model files do not say when they were made, and clients want a number.
        "created": 0,
        "owned_by": "nala",
    })
}
