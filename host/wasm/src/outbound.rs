//! Requests of a guest to others: to servers outside, by the component's
//! allow-list, and to other components of the application, without a connection.
//!
//! WASI 0.2 and 0.3 both come here. Without a grant every request is denied.

mod chain;
mod error;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use nala_egress::{Egress, Route, Timeouts};
use nala_tenant::{Counter, Meter, Stock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

pub(crate) use chain::Origin;
pub use chain::{Callee, Chain, ChainError, Chained};

use crate::account::{Account, Holding};
use crate::body::counted;
use crate::limits::Limits;

/// The way out for a component.
#[derive(Clone)]
pub struct Outbound {
    /// The way to servers, with the list of those that it may reach. The list
    /// also says which components it may call.
    pub egress: Egress,
    /// The components that it may call. None: there are no others.
    pub chain: Option<Arc<dyn Chain>>,
}

impl std::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbound").field("egress", &self.egress).finish_non_exhaustive()
    }
}

/// The body of a request that a guest makes.
pub type GuestBody = WasiBody;

type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sent = Result<(Response<WasiBody>, Io), Error>;

/// Sends what a guest sends.
pub(crate) struct Sender {
    app: Arc<str>,
    outbound: Option<Outbound>,
    /// Requests that may still be begun.
    room: Arc<Semaphore>,
    /// Where the request comes from that this is sent for, if there is one.
    origin: Option<Origin>,
    account: Arc<Account>,
}

impl Sender {
    pub(crate) fn new(
        app: Arc<str>,
        outbound: Option<Outbound>,
        limits: &Limits,
        origin: Option<Origin>,
        account: Arc<Account>,
    ) -> Self {
        let room = Arc::new(Semaphore::new(limits.outbound_connections as usize));
        Self { app, outbound, room, origin, account }
    }

    fn denied(&self, request: &Request<WasiBody>) -> Error {
        let host = request.uri().host().unwrap_or_default();
        tracing::info!(
            target: "nala::outbound",
            app = &*self.app,
            host,
            "outgoing request denied: this component is granted no host; add it to `allowed_outbound_hosts`"
        );
        Error::HttpRequestDenied
    }
}

impl WasiHttpHooks for Sender {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Io,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let Some(Outbound { egress, chain }) = self.outbound.clone() else {
            let denied = self.denied(&request);
            return Box::new(async { Err(denied) });
        };
        // Kept until the response has been read, or nobody wants it any more.
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            return Box::new(async { Err(Error::ConnectionLimitReached) });
        };
        let Ok(held) = self.account.hold(Stock::OutboundConnections, 1) else {
            return Box::new(async { Err(Error::ConnectionLimitReached) });
        };
        let meter = Arc::clone(&self.account.meter);
        let sent = Arc::clone(&meter);
        let request = request.map(|body| counted(body, sent, Counter::OutboundBytes).boxed_unsync());
        let origin = self.origin.clone();
        let options = options.unwrap_or_default();
        Box::new(async move {
            let response = match egress.route(request.uri()).map_err(error::wire)? {
                Route::Outside(_) => {
                    let response = egress.send(request, timeouts(options)).await.map_err(error::wire)?;
                    response.map(|body| body.map_err(error::wire).boxed_unsync())
                }
                Route::Component(name) => chain::call(chain, Callee::Component(name), request, origin, options).await?,
                Route::Application => chain::call(chain, Callee::Application, request, origin, options).await?,
            };
            let response = response.map(|inner| Placed { inner, meter, _place: place, _held: held }.boxed_unsync());
            // Connections run by themselves, and end with the body.
            let io: Io = Box::new(async { Ok(()) });
            Ok((response, io))
        })
    }
}

/// What the guest asks for; the operator's are the most.
fn timeouts(options: RequestOptions) -> Timeouts {
    let unset = Timeouts::UNSET;
    Timeouts {
        connect: options.connect_timeout.unwrap_or(unset.connect),
        first_byte: options.first_byte_timeout.unwrap_or(unset.first_byte),
        between_bytes: options.between_bytes_timeout.unwrap_or(unset.between_bytes),
    }
}

/// A response's body that has a place among the requests in progress.
struct Placed {
    inner: WasiBody,
    meter: Arc<Meter>,
    _place: OwnedSemaphorePermit,
    _held: Holding,
}

impl Body for Placed {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.meter.add(Counter::OutboundBytes, frame.data_ref().map_or(0, Bytes::len) as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
