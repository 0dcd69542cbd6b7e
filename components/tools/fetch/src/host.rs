//! HTTP by the host, as `wasi:http` 0.2 has it.

use std::time::{Duration, Instant};

use nala_sdk::wasi::clocks::monotonic_clock::subscribe_duration;
use nala_sdk::wasi::http::outgoing_handler::handle;
use nala_sdk::wasi::http::types::{ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse};
use nala_sdk::wasi::http::types::{OutgoingRequest, RequestOptions, Scheme};
use nala_sdk::wasi::io::poll::poll;
use nala_sdk::wasi::io::streams::{InputStream, StreamError};
use url::{Position, Url};

use crate::web::{Fault, Reply, Web};

const CONNECT: Duration = Duration::from_secs(10);
const FIRST_BYTE: Duration = Duration::from_secs(30);
const BETWEEN_BYTES: Duration = Duration::from_secs(15);

/// How long a body may take in all: a server can send a byte just before each of the
/// others ends.
const BODY: Duration = Duration::from_secs(60);

const PART: u64 = 64 << 10;

const HEADERS: [(&str, &[u8]); 3] = [
    ("accept", b"text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, image/*;q=0.7, */*;q=0.5"),
    ("accept-encoding", b"identity"),
    ("user-agent", concat!("nala-tool-fetch/", env!("CARGO_PKG_VERSION")).as_bytes()),
];

/// What the host lets this component reach.
pub(crate) struct Wasi;

impl Web for Wasi {
    fn get(&self, url: &Url) -> Result<Reply, Fault> {
        let response = begin(url).and_then(|future| wait(&future)).map_err(fault)?;
        let status = response.status();
        let headers = response.headers().entries();
        let headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let body = Body::new(response).ok_or_else(|| failed("the host gives no body"))?;
        Ok(Reply { status, headers, body: Box::new(body) })
    }

    fn report(&self, done: usize, total: Option<u64>) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 bytes are read")]
        nala_sdk::tools::report(done as f64, total.map(|total| total as f64), Some("reading"));
    }
}

fn begin(url: &Url) -> Result<FutureIncomingResponse, ErrorCode> {
    let invalid = |()| ErrorCode::HttpRequestUriInvalid;
    let headers = Fields::new();
    for (name, value) in HEADERS {
        headers.append(name, value).map_err(|error| ErrorCode::InternalError(Some(error.to_string())))?;
    }
    let request = OutgoingRequest::new(headers);
    let scheme = if url.scheme() == "https" { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).map_err(invalid)?;
    request.set_authority(Some(&url[Position::BeforeHost..Position::AfterPort])).map_err(invalid)?;
    request.set_path_with_query(Some(&url[Position::BeforePath..Position::AfterQuery])).map_err(invalid)?;
    let options = RequestOptions::new();
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).ok();
    // A host that does not take them has its own.
    let _ = options.set_connect_timeout(nanoseconds(CONNECT));
    let _ = options.set_first_byte_timeout(nanoseconds(FIRST_BYTE));
    let _ = options.set_between_bytes_timeout(nanoseconds(BETWEEN_BYTES));
    handle(request, Some(options))
}

fn wait(future: &FutureIncomingResponse) -> Result<IncomingResponse, ErrorCode> {
    future.subscribe().block();
    future.get().and_then(Result::ok).unwrap_or(Err(ErrorCode::InternalError(None)))
}

/// A body, whose parts have to go before it.
struct Body {
    stream: Option<InputStream>,
    _body: IncomingBody,
    _response: IncomingResponse,
    begun: Instant,
}

impl Body {
    fn new(response: IncomingResponse) -> Option<Self> {
        let body = response.consume().ok()?;
        Some(Self { stream: Some(body.stream().ok()?), _body: body, _response: response, begun: Instant::now() })
    }
}

impl Iterator for Body {
    type Item = Result<Vec<u8>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let stream = self.stream.as_ref()?;
            let left = BODY.saturating_sub(self.begun.elapsed());
            if left.is_zero() {
                self.stream = None;
                return Some(Err(failed("the server takes too long")));
            }
            {
                let (ready, late) = (stream.subscribe(), subscribe_duration(left.as_nanos() as u64));
                poll(&[&ready, &late]);
            }
            match stream.read(PART) {
                Ok(part) if part.is_empty() => {}
                Ok(part) => return Some(Ok(part)),
                Err(StreamError::Closed) => {
                    self.stream = None;
                    return None;
                }
                Err(StreamError::LastOperationFailed(error)) => {
                    let why = error.to_debug_string();
                    drop(error);
                    self.stream = None;
                    return Some(Err(Fault::Failed(format!("the server broke off ({why})"))));
                }
            }
        }
    }
}

fn failed(why: &str) -> Fault {
    Fault::Failed(why.to_owned())
}

fn fault(code: ErrorCode) -> Fault {
    let why = match code {
        ErrorCode::HttpRequestDenied => return Fault::HostNotAllowed,
        ErrorCode::DestinationIpProhibited => return Fault::AddressNotAllowed,
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => {
            "no server of this name is found"
        }
        ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable | ErrorCode::ConnectionRefused => {
            "the server cannot be reached"
        }
        ErrorCode::ConnectionTimeout => "the server cannot be reached in time",
        ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => "the server does not answer in time",
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete => "the server broke off",
        ErrorCode::ConnectionLimitReached => "too many requests are in progress; try again later",
        ErrorCode::TlsCertificateError => "the certificate of the server is not valid",
        ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => "no connection by TLS is possible",
        ErrorCode::LoopDetected => "the application asks itself in a circle",
        code => return Fault::Failed(format!("the host says {code:?}")),
    };
    failed(why)
}
