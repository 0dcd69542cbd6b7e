//! Outgoing HTTP: denied, since nothing grants it yet.

use http::Request;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// Refuses every outgoing request.
#[derive(Debug)]
pub(crate) struct DenyOutbound;

type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sent = Box<dyn Future<Output = Result<(http::Response<WasiBody>, Io), Error>> + Send>;

impl WasiHttpHooks for DenyOutbound {
    fn send_request(&mut self, request: Request<WasiBody>, _options: Option<RequestOptions>, _io: Io) -> Sent {
        let host = request.uri().host().unwrap_or_default();
        tracing::info!(target: "nala::outbound", host, "outgoing request denied: this component is granted no host");
        Box::new(async { Err(Error::HttpRequestDenied) })
    }
}
