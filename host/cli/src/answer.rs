//! From a request to the component that answers it, and from a component's
//! failure to the answer that its client gets.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use nala_class::Door;
use nala_http::{Asked, Handler, HostError, RequestBody, ResponseBody};
use nala_manifest::StaticResponse;
use nala_manifest::routes::{Route, RouteTable};
use nala_tenant::{Tenant, TenantName};
use nala_wasm::{App, HandleError};

use crate::application::{Binder, Members};
use crate::classes::Classes;
use crate::deploy::Deployments;
use crate::envelope;
use crate::kept::Kept;
use crate::tenancy::{self, Tenancy, USAGE_PATH};

/// What a client is told to wait when nothing is served yet.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A component that answers, for any tenant.
pub(crate) struct Site {
    app: App,
    /// Gives it what each tenant has of its own.
    binder: Option<Binder>,
    /// Its handlers for tenants that have asked already, each with the tenant as it was
    /// declared then.
    of: RwLock<BTreeMap<TenantName, App>>,
}

impl Site {
    /// A component that is granted nothing of which each tenant has its own.
    pub(crate) fn new(app: App) -> Arc<Self> {
        Arc::new(Self { app, binder: None, of: RwLock::default() })
    }

    /// One that may be.
    pub(crate) fn bound(app: App, binder: Binder) -> Arc<Self> {
        Arc::new(Self { app, binder: Some(binder), of: RwLock::default() })
    }

    /// The handler on the account of a tenant.
    pub(crate) fn of(&self, tenant: &Arc<Tenant>) -> App {
        let is_current = |app: &&App| Arc::ptr_eq(app.tenant(), tenant);
        if let Some(app) = self.of.read().unwrap_or_else(PoisonError::into_inner).get(tenant.name()).filter(is_current)
        {
            return app.clone();
        }
        let own = self.binder.as_ref().map(|binder| binder.bind(tenant)).unwrap_or_default();
        let app = self.app.of(Arc::clone(tenant), own);
        self.of.write().unwrap_or_else(PoisonError::into_inner).insert(tenant.name().clone(), app.clone());
        app
    }
}

/// Who answers a path.
#[derive(Clone)]
pub(crate) enum Answering {
    Component(Arc<Site>),
    /// The host, always the same.
    Static(Arc<StaticResponse>),
}

/// Routes with who answers them, in the order of a manifest.
pub(crate) type Routes = Vec<(Route, Answering)>;

/// Who answers which path.
pub(crate) enum Routing {
    /// One handler has them all.
    All(Arc<Site>),
    /// As the manifest says.
    Table {
        routes: RouteTable<Answering>,
        /// The components, held here for each other.
        members: Arc<Members>,
    },
}

impl Routing {
    fn find(&self, path: &str) -> Option<Answering> {
        match self {
            Self::All(site) => Some(Answering::Component(Arc::clone(site))),
            Self::Table { routes, .. } => routes.find(path).map(|(answering, _)| answering.clone()),
        }
    }

    fn members(&self) -> Option<Arc<Members>> {
        match self {
            Self::All(_) => None,
            Self::Table { members, .. } => Some(Arc::clone(members)),
        }
    }
}

fn unchanging(response: &StaticResponse) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::full(response.body.clone()));
    *answer.status_mut() = response.status;
    *answer.headers_mut() = response.headers.clone();
    answer
}

/// What is served, and to whom.
pub(crate) struct Front {
    pub(crate) routing: Routing,
    pub(crate) tenancy: Tenancy,
    /// Who answers for tenants that are not served in this process.
    pub(crate) classes: Classes,
    /// What tenants have deployed, which comes before what is everybody's.
    pub(crate) deployments: Option<Arc<Deployments>>,
}

impl Handler for Front {
    async fn handle(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, HostError> {
        let (mut parts, body) = request.into_parts();
        if let Some(metadata) = self.tenancy.metadata(&parts) {
            return Ok(metadata);
        }
        let identified = match self.tenancy.identify(&parts) {
            Ok(identified) => identified,
            // A browser asks before it sends the key (Fetch standard, "CORS-preflight
            // request"), and says nothing about who asks.
            Err(error) if error.status() == StatusCode::UNAUTHORIZED => return preflight(&parts).ok_or(error),
            Err(error) => return Err(error),
        };
        if let Some(class) = identified.class() {
            // As it came, with its key: that process finds out by itself whose it is.
            return self.classes.forward(class, Door::Requests, Request::from_parts(parts, body)).await;
        }
        let asks_for_usage = parts.uri.path() == USAGE_PATH;
        let tenant = identified.enter(&mut parts)?;
        if asks_for_usage {
            return tenancy::answer_usage(&parts.method, &tenant);
        }
        let path = parts.uri.path();
        let own = self.deployments.as_ref().and_then(|own| own.find(tenant.name().as_str(), path));
        let app = match own.or_else(|| self.routing.find(path)) {
            Some(Answering::Component(site)) => site.of(&tenant),
            Some(Answering::Static(response)) => return Ok(unchanging(&response)),
            None => {
                return Err(HostError::new(StatusCode::NOT_FOUND, "not_found", "Nothing is served under this path."));
            }
        };
        match app.handle(Request::from_parts(parts, body)).await {
            // Something else may be served before the body's end, and the component may call
            // others until then.
            Ok(response) => Ok(response.map(|body| ResponseBody::new(Kept::new(body, self.routing.members())))),
            Err(error) => Err(answer(&error)),
        }
    }

    fn present(&self, asked: &Asked, error: HostError) -> Response<ResponseBody> {
        let challenge = self.tenancy.challenge(asked.uri.path(), &error);
        envelope::present(asked, error, challenge)
    }
}

/// Lets a page of any origin send a request with a key, if that is what is asked.
fn preflight(parts: &Parts) -> Option<Response<ResponseBody>> {
    let wanted = parts.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    if parts.method != Method::OPTIONS || !parts.headers.contains_key(ORIGIN) {
        return None;
    }
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, wanted.clone());
    if let Some(wanted) = parts.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    Some(response)
}

/// Answers 503 until there is something to route to: while a model is loaded,
/// clients and probes are told so instead of waiting without a word.
#[derive(Clone, Default)]
pub(crate) struct Late(Arc<RwLock<Option<Arc<Front>>>>);

impl Late {
    /// From here on requests are answered by `front`. Those that are under way are
    /// answered by what they came to.
    pub(crate) fn open(&self, front: Front) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(front));
    }

    fn front(&self) -> Option<Arc<Front>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Handler for Late {
    async fn handle(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, HostError> {
        match self.front() {
            Some(front) => front.handle(request).await,
            None => Err(HostError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "starting",
                "The server is starting: its model is still being loaded. Try again shortly.",
            )
            .retry_after(RETRY_AFTER)),
        }
    }

    fn present(&self, asked: &Asked, error: HostError) -> Response<ResponseBody> {
        match self.front() {
            Some(front) => front.present(asked, error),
            None => envelope::present(asked, error, None),
        }
    }
}

/// The status that an outcome has for the client.
///
/// A handler that fails, or needs more than it is given, is the server's fault:
/// 500. Only time that ran out while waiting is 504, and only want of room,
/// which passes, is 429.
fn answer(error: &HandleError) -> HostError {
    let (status, code) = match error {
        HandleError::Trap { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "guest_trapped"),
        HandleError::CpuLimit => (StatusCode::INTERNAL_SERVER_ERROR, "cpu_limit"),
        HandleError::MemoryLimit => (StatusCode::INTERNAL_SERVER_ERROR, "memory_limit"),
        HandleError::WallLimit => (StatusCode::GATEWAY_TIMEOUT, "wall_limit"),
        HandleError::NoResponse { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "no_response"),
        HandleError::AtCapacity => (StatusCode::TOO_MANY_REQUESTS, "at_capacity"),
        HandleError::Tenant(exceeded) => (StatusCode::TOO_MANY_REQUESTS, exceeded.limit.row().name),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "handler_failed"),
    };
    let answer = HostError::new(status, code, error.message());
    match error.retry_after() {
        Some(after) => answer.retry_after(after),
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_a_minute() -> nala_tenant::Exceeded {
        let retry_after = Some(Duration::from_secs(3));
        nala_tenant::Exceeded { limit: nala_tenant::Rate::Requests.into(), value: 60, retry_after }
    }

    #[test]
    fn each_outcome_has_its_status_and_code() {
        let words = || "unreachable".to_owned();
        for (error, status, code) in [
            (HandleError::Trap { reason: words() }, 500, "guest_trapped"),
            (HandleError::CpuLimit, 500, "cpu_limit"),
            (HandleError::MemoryLimit, 500, "memory_limit"),
            (HandleError::WallLimit, 504, "wall_limit"),
            (HandleError::NoResponse { reason: words() }, 500, "no_response"),
            (HandleError::AtCapacity, 429, "at_capacity"),
            (HandleError::Tenant(of_a_minute()), 429, "requests_per_minute"),
        ] {
            let answer = answer(&error);
            assert_eq!((answer.status().as_u16(), answer.code()), (status, code));
            assert_eq!(answer.into_response().headers().contains_key("retry-after"), status == 429);
        }
    }
}
