//! HTTP by the host, as `wasi:http` 0.2 has it. The host adds the credential, so nothing
//! here knows it.

use std::time::{Duration, Instant};

use nala_sdk::wasi::clocks::monotonic_clock::subscribe_duration;
use nala_sdk::wasi::http::outgoing_handler::handle;
use nala_sdk::wasi::http::types::{ErrorCode, Fields, IncomingResponse, Method};
use nala_sdk::wasi::http::types::{OutgoingBody, OutgoingRequest, RequestOptions, Scheme};
use nala_sdk::wasi::io::poll::poll;
use nala_sdk::wasi::io::streams::StreamError;
use url::{Position, Url};

use crate::api::{Doing, Reply, Request, Server};
use crate::trouble::Fault;

const CONNECT: Duration = Duration::from_secs(10);
const FIRST_BYTE: Duration = Duration::from_secs(30);
const BETWEEN_BYTES: Duration = Duration::from_secs(15);

/// How long a body may take in all.
const BODY: Duration = Duration::from_secs(60);

/// How much of a body is read.
const MOST: usize = 4 << 20;

const PART: u64 = 64 << 10;

/// How much may be written at once to a stream that can be waited for.
const WRITTEN: usize = 4096;

const AGENT: &[u8] = concat!("nala-tool-kubernetes/", env!("CARGO_PKG_VERSION")).as_bytes();

/// What the host lets this component reach.
pub(crate) struct Wasi;

impl Server for Wasi {
    fn send(&self, request: &Request) -> Result<Reply, Fault> {
        let response = exchange(request).map_err(fault)?;
        let status = response.status();
        let (body, is_cut) = read(&response)?;
        Ok(Reply { status, body, is_cut })
    }
}

/// Sends a request, and waits for the head of the response.
fn exchange(request: &Request) -> Result<IncomingResponse, ErrorCode> {
    let body = match &request.doing {
        Doing::Get => None,
        Doing::Merge(patch) => Some(patch),
    };
    let headers = Fields::new();
    let append = |name: &str, value: &[u8]| {
        headers.append(name, value).map_err(|error| ErrorCode::InternalError(Some(error.to_string())))
    };
    append("accept", request.accept.as_bytes())?;
    append("accept-encoding", b"identity")?;
    append("user-agent", AGENT)?;
    if let Some(patch) = body {
        append("content-type", b"application/merge-patch+json")?;
        append("content-length", patch.len().to_string().as_bytes())?;
    }
    let outgoing = addressed(OutgoingRequest::new(headers), &request.url)?;
    let invalid = |()| ErrorCode::InternalError(None);
    let sink = match body {
        None => None,
        Some(patch) => {
            outgoing.set_method(&Method::Patch).map_err(invalid)?;
            Some((outgoing.body().map_err(invalid)?, patch))
        }
    };
    let future = handle(outgoing, Some(options()))?;
    if let Some((sink, patch)) = sink {
        write(sink, patch)?;
    }
    future.subscribe().block();
    future.get().and_then(Result::ok).unwrap_or(Err(ErrorCode::InternalError(None)))
}

fn addressed(request: OutgoingRequest, url: &Url) -> Result<OutgoingRequest, ErrorCode> {
    let invalid = |()| ErrorCode::HttpRequestUriInvalid;
    let scheme = if url.scheme() == "https" { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).map_err(invalid)?;
    request.set_authority(Some(&url[Position::BeforeHost..Position::AfterPort])).map_err(invalid)?;
    request.set_path_with_query(Some(&url[Position::BeforePath..Position::AfterQuery])).map_err(invalid)?;
    Ok(request)
}

fn options() -> RequestOptions {
    let options = RequestOptions::new();
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).ok();
    // A host that does not take them has its own.
    let _ = options.set_connect_timeout(nanoseconds(CONNECT));
    let _ = options.set_first_byte_timeout(nanoseconds(FIRST_BYTE));
    let _ = options.set_between_bytes_timeout(nanoseconds(BETWEEN_BYTES));
    options
}

/// Writes a body to its end. A server that does not want it says so in its response.
fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), ErrorCode> {
    {
        let stream = body.write().map_err(|()| ErrorCode::InternalError(None))?;
        for part in bytes.chunks(WRITTEN) {
            if stream.blocking_write_and_flush(part).is_err() {
                return Ok(());
            }
        }
    }
    OutgoingBody::finish(body, None)
}

/// As much of a body as is read, and whether there is more.
fn read(response: &IncomingResponse) -> Result<(Vec<u8>, bool), Fault> {
    let none = |()| failed("the host gives no body");
    let body = response.consume().map_err(none)?;
    let stream = body.stream().map_err(none)?;
    let begun = Instant::now();
    let mut bytes = Vec::new();
    loop {
        let left = BODY.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(failed("it takes too long"));
        }
        {
            let (ready, late) = (stream.subscribe(), subscribe_duration(left.as_nanos() as u64));
            poll(&[&ready, &late]);
        }
        match stream.read(PART) {
            Ok(part) => bytes.extend_from_slice(&part),
            Err(StreamError::Closed) => return Ok((bytes, false)),
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(Fault::Failed(format!("it broke off ({})", error.to_debug_string())));
            }
        }
        if bytes.len() > MOST {
            bytes.truncate(MOST);
            return Ok((bytes, true));
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
        ErrorCode::ConfigurationError => return Fault::CredentialUnusable,
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => {
            "no server of this name is found"
        }
        ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable | ErrorCode::ConnectionRefused => {
            "it cannot be reached"
        }
        ErrorCode::ConnectionTimeout => "it cannot be reached in time",
        ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => "it does not answer in time",
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete => "it broke off",
        ErrorCode::ConnectionLimitReached => "too many requests are in progress; try again later",
        ErrorCode::TlsCertificateError => {
            "its certificate is by nobody who is trusted; `ca_file` of its credential in nala.toml names who is"
        }
        ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => "no connection by TLS is possible",
        code => return Fault::Failed(format!("the host says {code:?}")),
    };
    failed(why)
}
