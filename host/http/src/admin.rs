//! The operator's listener: probes and metrics, apart from the tenants' one.

use std::sync::{Arc, PoisonError, RwLock};

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::body::{RequestBody, ResponseBody};
use crate::error::HostError;
use crate::handler::Handler;
use crate::lifecycle::{Phase, Readiness};
use crate::service::phase_response;

/// The format of `/metrics` (OpenMetrics 1.0, section "Overall structure").
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers `/livez`, `/readyz` and `/metrics`. Serve it on a [`crate::Server`]
/// of its own, ended after the main one, and give that server the same
/// readiness, which its health endpoint tells.
#[derive(Clone, Debug)]
pub struct AdminHandler {
    registry: Arc<RwLock<Registry>>,
    readiness: Readiness,
}

impl AdminHandler {
    /// A handler that prints `registry` and tells `readiness`. More may be
    /// registered while it serves, for models that are loaded later.
    pub fn new(registry: Arc<RwLock<Registry>>, readiness: Readiness) -> Self {
        Self { registry, readiness }
    }

    /// The metrics as text, in the format of `/metrics`.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn exposition(&self) -> Result<String, HostError> {
        let mut out = String::new();
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        text::encode(&mut out, &registry).map_err(|error| {
            HostError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "metrics_failed",
                format!("The metrics could not be written: {error}."),
            )
        })?;
        Ok(out)
    }

    /// Where the process is in its life.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.readiness.get()
    }

    /// An answer to `/metrics`.
    #[must_use]
    pub fn answer(exposition: String) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::full(exposition));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
        response
    }
}

impl Handler for AdminHandler {
    async fn handle(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, HostError> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Err(HostError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "The admin endpoints answer GET and HEAD.",
            ));
        }
        match request.uri().path() {
            // Alive means able to answer at all.
            "/livez" => Ok(phase_response(Phase::Ready)),
            "/readyz" => Ok(phase_response(self.readiness.get())),
            "/metrics" => self.exposition().map(Self::answer),
            _ => Err(HostError::new(
                StatusCode::NOT_FOUND,
                "not_found",
                "The admin listener has /livez, /readyz and /metrics.",
            )),
        }
    }
}
