//! Requests to others.

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{ErrorCode, Fields, FutureIncomingResponse, IncomingResponse, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

fn begin(url: &str, headers: Fields) -> Result<FutureIncomingResponse, ErrorCode> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let request = OutgoingRequest::new(headers);
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).unwrap();
    request.set_authority(Some(authority)).unwrap();
    request.set_path_with_query(Some(path)).unwrap();
    handle(request, None)
}

fn wait(future: &FutureIncomingResponse) -> Result<IncomingResponse, ErrorCode> {
    future.subscribe().block();
    future.get().unwrap().unwrap()
}

fn body(response: &IncomingResponse) -> String {
    let body = response.consume().unwrap();
    let stream = body.stream().unwrap();
    let mut all = Vec::new();
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(part) => all.extend_from_slice(&part),
            Err(StreamError::Closed) => break,
            Err(error) => return format!("{} then {error:?}", String::from_utf8_lossy(&all)),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Gets a URL.
pub(crate) fn fetch(url: &str) -> String {
    match begin(url, Fields::new()).and_then(|future| wait(&future)) {
        Ok(response) => format!("{} {}", response.status(), body(&response)),
        Err(error) => format!("{error:?}"),
    }
}

/// Gets a URL with a credential that is made up, and tells all that comes of it: the
/// request's own headers as they are afterwards, and the whole response.
pub(crate) fn seen(url: &str) -> String {
    let headers = Fields::new();
    headers.append("authorization", b"Bearer made-up").unwrap();
    let kept = headers.clone();
    match begin(url, headers).and_then(|future| wait(&future)) {
        Ok(response) => {
            let told = response.headers().entries().into_iter();
            let told: Vec<_> = told.map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect();
            format!("{} {:?} {told:?} {}", response.status(), kept.get("authorization"), body(&response))
        }
        Err(error) => format!("{error:?}"),
    }
}

/// Sets a header that is the host's.
pub(crate) fn with_header(url: &str) -> String {
    let headers = Fields::new();
    headers.append("x-nala-tenant", b"somebody").unwrap();
    match begin(url, headers).and_then(|future| wait(&future)) {
        Ok(response) => format!("{} {}", response.status(), body(&response)),
        Err(error) => format!("{error:?}"),
    }
}

/// `N&URL`: begins so many requests, reads none of the bodies, and begins one more
/// once they are dropped.
pub(crate) fn fetch_many(query: &str) -> String {
    let (n, url) = query.split_once('&').unwrap();
    let begun: Vec<_> = (0..n.parse().unwrap()).map(|_| begin(url, Fields::new())).collect();
    let ended: Vec<_> = begun.iter().map(|future| future.as_ref().map_err(Clone::clone).and_then(wait)).collect();
    let good = ended.iter().filter(|result| result.is_ok()).count();
    let refused = ended.iter().find_map(|result| result.as_ref().err().map(|error| format!("{error:?}")));
    drop((ended, begun));
    format!("{good} good, {refused:?}, then {}", fetch(url))
}
