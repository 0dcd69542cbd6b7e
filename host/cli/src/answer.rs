//! From a request to the component that answers it, and from a component's
//! failure to the answer that its client gets.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use nala_http::{Handler, HostError, RequestBody, ResponseBody};
use nala_manifest::routes::RouteTable;
use nala_wasm::{App, HandleError};

/// What a client is told to wait when every instance is busy, or when nothing is
/// served yet.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Which component answers which path.
pub(crate) enum Routing {
    /// One handler has them all.
    All(App),
    /// As the manifest says.
    Table(RouteTable<App>),
}

impl Routing {
    fn find<'a>(&'a self, path: &'a str) -> Option<&'a App> {
        match self {
            Self::All(app) => Some(app),
            Self::Table(table) => table.find(path).map(|(app, _)| app),
        }
    }
}

impl Handler for Routing {
    async fn handle(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, HostError> {
        let Some(app) = self.find(request.uri().path()).cloned() else {
            return Err(HostError::new(StatusCode::NOT_FOUND, "not_found", "Nothing is served under this path."));
        };
        match app.handle(request).await {
            Ok(response) => Ok(response.map(ResponseBody::new)),
            Err(error) => Err(answer(&error)),
        }
    }
}

/// Answers 503 until there is something to route to: while a model is loaded,
/// clients and probes are told so instead of waiting without a word.
#[derive(Clone, Default)]
pub(crate) struct Late(Arc<OnceLock<Routing>>);

impl Late {
    /// From here on requests are routed. Only the first call counts.
    pub(crate) fn open(&self, routing: Routing) {
        let _second = self.0.set(routing);
    }
}

impl Handler for Late {
    async fn handle(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, HostError> {
        match self.0.get() {
            Some(routing) => routing.handle(request).await,
            None => Err(HostError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "starting",
                "The server is starting: its model is still being loaded. Try again shortly.",
            )
            .retry_after(RETRY_AFTER)),
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
        HandleError::AtCapacity => {
            return HostError::new(StatusCode::TOO_MANY_REQUESTS, "at_capacity", error.message())
                .retry_after(RETRY_AFTER);
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "handler_failed"),
    };
    HostError::new(status, code, error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            let answer = answer(&error);
            assert_eq!((answer.status().as_u16(), answer.code()), (status, code));
            assert_eq!(answer.into_response().headers().contains_key("retry-after"), status == 429);
        }
    }
}
