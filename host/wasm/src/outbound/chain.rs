//! Requests from one component of an application to another.
//!
//! How deep such requests lie in each other, and who serves the client that they are
//! made for, is kept in the host: it is noted at the request of an instance, goes on
//! with each request that the instance makes, and can be neither read nor set by a guest
//! or a client.

use std::pin::Pin;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use thiserror::Error;
use tokio::runtime::Handle;
use wasmtime_wasi_http::{Error as WireError, RequestOptions, WasiBody};

use crate::body::ResponseBody;
use crate::error::HandleError;
use crate::outbound::GuestBody;

/// How many requests may lie in each other, each made while the one before is
/// answered. Each holds an instance.
const MAX_DEPTH: u32 = 8;

/// Beginnings of names of headers that are the host's own, as in `nala_egress`.
const OWN_PREFIXES: [&str; 2] = ["nala-", "x-nala-"];

/// Who is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callee {
    /// A component, whether its routes are private or not
    /// (`http://NAME.spin.internal`).
    Component(Arc<str>),
    /// Whichever component answers the path for a client (`http://self.alt`).
    Application,
}

/// What a call comes to.
pub type Chained = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, ChainError>> + Send>>;

/// The components of an application, for each other. Which may call which is
/// decided before.
pub trait Chain: Send + Sync + 'static {
    /// Hands a request to [`crate::App::handle`] of the component, as it is: what
    /// the host has noted is in its extensions. Dropping the future, or the
    /// response's body, ends the call.
    fn call(&self, callee: Callee, request: Request<GuestBody>) -> Chained;
}

/// Why a call got no response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChainError {
    /// There is nobody of this name, or at this path.
    #[error("the application has no such component")]
    NotFound,
    /// The component gave none.
    #[error(transparent)]
    Handle(#[from] HandleError),
}

/// Where a request comes from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// How deep it lies in others: not at all, if it is a client's.
    depth: u32,
    /// The threads that serve the client. A request of a guest begins where the guest
    /// is, and that may be a thread of guests.
    pub(crate) here: Handle,
}

impl Origin {
    /// That of a client's request, which these threads serve.
    pub(crate) fn client(here: Handle) -> Self {
        Self { depth: 0, here }
    }

    /// That of what is asked of others while this one is answered. None: it lies too deep.
    pub(crate) fn deeper(&self) -> Option<Self> {
        (self.depth < MAX_DEPTH).then(|| Self { depth: self.depth + 1, here: self.here.clone() })
    }

    /// That of a request, as the host noted it. Where it did not, a client's that the
    /// calling thread serves.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let noted = request.extensions().get().cloned();
        noted.unwrap_or_else(|| Self::client(Handle::current()))
    }
}

/// Calls a component. `origin` is that of the request that the caller answers;
/// one that answers none, because it is still being made, calls nobody: its end
/// would be nobody's, and one that calls itself would never get to a request.
pub(super) async fn call(
    chain: Option<Arc<dyn Chain>>,
    callee: Callee,
    mut request: Request<WasiBody>,
    origin: Option<Origin>,
    options: RequestOptions,
) -> Result<Response<WasiBody>, WireError> {
    let chain = chain.ok_or(WireError::DestinationNotFound)?;
    let origin = origin.ok_or(WireError::HttpRequestDenied)?.deeper().ok_or(WireError::LoopDetected)?;
    let own = |name: &http::HeaderName| OWN_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix));
    if request.headers().keys().any(own) {
        return Err(WireError::HttpRequestDenied);
    }
    request.extensions_mut().clear();
    request.extensions_mut().insert(origin);
    let answer = chain.call(callee, request);
    let answer = match options.first_byte_timeout {
        Some(time) => tokio::time::timeout(time, answer).await.map_err(|_| WireError::ConnectionReadTimeout)?,
        None => answer.await,
    };
    let incomplete = |_| WireError::HttpResponseIncomplete;
    answer.map(|response| response.map(|body| body.map_err(incomplete).boxed_unsync())).map_err(wire)
}

fn wire(error: ChainError) -> WireError {
    match error {
        ChainError::NotFound => WireError::DestinationNotFound,
        ChainError::Handle(HandleError::AtCapacity) => WireError::DestinationUnavailable,
        ChainError::Handle(HandleError::WallLimit) => WireError::HttpResponseTimeout,
        ChainError::Handle(error) => WireError::InternalError(Some(error.to_string())),
    }
}
