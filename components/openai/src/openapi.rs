//! `GET /openapi.json`: the routes of this component for programs, as OpenAPI 3.1.

use nala_sdk::http::Response;

/// The document.
pub const DOCUMENT: &str = include_str!("../openapi.json");

/// Sends it.
pub(crate) fn document() -> Response {
    Response::new(200, "application/json", DOCUMENT)
}
