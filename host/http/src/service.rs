//! What happens to one request before and after its handler.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use http::header::{CONTENT_TYPE, EXPECT, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use tracing::{Instrument, Level};

use crate::activity::Activity;
use crate::body::{BodyLimits, Fault, Linger, RequestBody, ResponseBody};
use crate::check;
use crate::config::HttpConfig;
use crate::error::HostError;
use crate::handler::{Asked, Handler};
use crate::lifecycle::{Phase, Readiness};
use crate::metrics::HttpMetrics;
use crate::observe::Record;
use crate::request_id::{self, RequestId};
use crate::stall::WatchedBody;

/// Where every listener says whether it serves: 200 when ready, 503 while
/// starting or draining.
pub const HEALTH_PATH: &str = "/.well-known/nala/health";

/// What all connections of a listener share.
#[derive(Debug)]
pub(crate) struct Shared<H> {
    pub(crate) handler: H,
    pub(crate) config: HttpConfig,
    pub(crate) metrics: HttpMetrics,
    pub(crate) readiness: Readiness,
    /// At which level requests are logged; probes are always at debug.
    pub(crate) log: Level,
    /// The listener's own address, for requests that name no host.
    pub(crate) local: HeaderValue,
}

impl<H: Handler> Shared<H> {
    /// Answers one request; never fails, so that an error stays with its
    /// request.
    pub(crate) async fn answer(
        self: Arc<Self>,
        activity: Activity,
        mut request: Request<Incoming>,
    ) -> Result<Response<WatchedBody>, Infallible> {
        let id = RequestId::of(request.headers());
        let level = if request.uri().path() == HEALTH_PATH { Level::DEBUG } else { self.log };
        // The path alone: a query may carry what does not belong in a log.
        let span = tracing::info_span!(
            "request",
            id = id.as_str(),
            method = %request.method(),
            path = request.uri().path(),
        );
        let record =
            Record::new(self.metrics.clone(), span.clone(), level, request.method().clone(), activity.request());
        request.headers_mut().insert(request_id::HEADER, id.header());
        request.extensions_mut().insert(id.clone());

        let asked = Asked::of(&request);
        let result = self.respond(request).instrument(span).await;
        let mut response = result.unwrap_or_else(|error| self.handler.present(&asked, error));
        response.headers_mut().insert(request_id::HEADER, id.header());
        Ok(record.follow(response).map(WatchedBody::new))
    }

    async fn respond(&self, mut request: Request<Incoming>) -> Result<Response<ResponseBody>, HostError> {
        let linger = linger(&request);
        let limits = BodyLimits {
            bytes: self.config.max_body_bytes,
            silence: self.config.body_timeout,
            rate: self.config.body_rate,
            linger,
        };
        let fault = Arc::new(Fault::default());
        let checked = check::check(&mut request, &self.config, &self.local);
        let mut request =
            request.map(|body| RequestBody::new(body, limits, fault.clone(), self.metrics.request_bytes.clone()));
        checked?;
        if request.uri().path() == HEALTH_PATH {
            return health(request.method(), self.readiness.get());
        }
        // Between the client and this server only.
        request.headers_mut().remove(EXPECT);
        self.call(request, &fault).await
    }

    /// Runs the handler against panics and against failures of the body.
    async fn call(&self, request: Request<RequestBody>, fault: &Fault) -> Result<Response<ResponseBody>, HostError> {
        let handled = AssertUnwindSafe(async { self.handler.handle(request).await }).catch_unwind();
        let handled = tokio::select! {
            biased;
            error = fault.wait() => return Err(error.to_host_error()),
            handled = handled => handled,
        };
        // The body may have failed in the very step that made the answer.
        if let Some(error) = fault.get() {
            return Err(error.to_host_error());
        }
        let answer = handled.unwrap_or_else(|_| {
            self.metrics.panics.inc();
            tracing::error!("a handler panicked");
            Err(HostError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal_error",
                "The server failed on this request; its log says more.",
            ))
        });
        answer.and_then(last_word)
    }
}

/// A handler's answer ends its request. An interim one (RFC 9110, section 15.2) would have
/// the client take what comes next on the connection for something else: behind a 101 a
/// proxy lets all bytes through, those of other clients' requests too.
fn last_word(response: Response<ResponseBody>) -> Result<Response<ResponseBody>, HostError> {
    if !response.status().is_informational() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    Err(HostError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "interim_status",
        format!("The handler answered with the status {status}, which is no answer; it must be 200 or more."),
    ))
}

fn linger(request: &Request<Incoming>) -> Linger {
    let waits = request.headers().contains_key(EXPECT);
    if waits || request.version() >= Version::HTTP_2 { Linger::Leave } else { Linger::Read }
}

fn health(method: &Method, phase: Phase) -> Result<Response<ResponseBody>, HostError> {
    if method != Method::GET && method != Method::HEAD {
        return Err(HostError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "The health endpoint answers GET and HEAD.",
        ));
    }
    Ok(phase_response(phase))
}

/// 200 or 503 with the phase as JSON.
pub(crate) fn phase_response(phase: Phase) -> Response<ResponseBody> {
    let body = format!("{{\"status\":\"{}\"}}\n", phase.as_str());
    let mut response = Response::new(ResponseBody::full(body));
    if phase != Phase::Ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
