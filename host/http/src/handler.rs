//! The seam between the server and whoever answers requests.

use std::sync::Arc;

use http::{Request, Response};

use crate::body::{RequestBody, ResponseBody};
use crate::error::HostError;

/// Answers requests.
///
/// The future is dropped when the client goes away or the request's body
/// breaks a limit; the returned body is dropped when the client goes away while
/// it streams. Both must release what they hold when dropped.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. An `Err` becomes a response in the host's error
    /// envelope.
    fn handle(
        &self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, HostError>> + Send;
}

impl<H: Handler> Handler for Arc<H> {
    fn handle(
        &self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, HostError>> + Send {
        H::handle(self, request)
    }
}

/// A handler made of a function.
pub fn handler_fn<F, R>(function: F) -> impl Handler
where
    F: Fn(Request<RequestBody>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response<ResponseBody>, HostError>> + Send + 'static,
{
    FnHandler(function)
}

struct FnHandler<F>(F);

impl<F, R> Handler for FnHandler<F>
where
    F: Fn(Request<RequestBody>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response<ResponseBody>, HostError>> + Send + 'static,
{
    fn handle(
        &self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, HostError>> + Send {
        (self.0)(request)
    }
}
