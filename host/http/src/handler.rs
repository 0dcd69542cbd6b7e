//! The seam between the server and whoever answers requests.

use std::sync::Arc;

use http::header::ORIGIN;
use http::{Request, Response, Uri};

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

    /// How an error of the host is said to whoever asked, also one that came up before
    /// [`Handler::handle`]: in OpenAI's envelope, unless an implementation knows better.
    fn present(&self, _asked: &Asked, error: HostError) -> Response<ResponseBody> {
        error.into_response()
    }
}

/// What is known of a request whatever becomes of it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Where it was sent.
    pub uri: Uri,
    /// Whether a page of a browser sent it, which is shown the answer only if that says
    /// so (Fetch standard, "HTTP CORS protocol").
    pub by_page: bool,
}

impl Asked {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        Self { uri: request.uri().clone(), by_page: request.headers().contains_key(ORIGIN) }
    }
}

impl<H: Handler> Handler for Arc<H> {
    fn handle(
        &self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, HostError>> + Send {
        H::handle(self, request)
    }

    fn present(&self, asked: &Asked, error: HostError) -> Response<ResponseBody> {
        H::present(self, asked, error)
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
