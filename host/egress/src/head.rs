//! What heads of requests and responses may say.

use http::header::{self, Entry, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::Body;

use crate::config::Sizes;
use crate::error::{Denial, EgressError};
use crate::target::{Route, Target};

/// Headers that a guest may not set, since they say how a message is framed or
/// what becomes of the connection (RFC 9110, 7.6.1), or speak to a proxy.
/// `Host` may be set only to what the URL says, `TE` only to `trailers`, and
/// `Content-Length` only once, to the length that the body has. Names that
/// begin with `nala-` or `x-nala-` are the host's own.
pub const FORBIDDEN: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("http2-settings"),
];

const OWN_PREFIXES: [&str; 2] = ["nala-", "x-nala-"];

/// The URL of a request in the forms that the versions of HTTP want it in, made
/// from what was judged.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// Path and query, for HTTP/1.1.
    pub(crate) path: Uri,
    /// The whole of it, for HTTP/2.
    pub(crate) whole: Uri,
    /// The `Host` header of HTTP/1.1.
    pub(crate) host: HeaderValue,
}

impl Address {
    fn of(uri: &Uri, target: &Target) -> Result<Self, EgressError> {
        let invalid = |error: &dyn std::fmt::Display| EgressError::UriInvalid(error.to_string());
        let path = match uri.path_and_query() {
            Some(path) if !path.as_str().is_empty() => path.clone(),
            _ => PathAndQuery::from_static("/"),
        };
        let authority = target.authority();
        let host = HeaderValue::from_str(&authority).map_err(|error| invalid(&error))?;
        let authority: Authority = authority.parse().map_err(|error| invalid(&error))?;
        let whole = Uri::builder().scheme(target.scheme.as_str()).authority(authority).path_and_query(path.clone());
        Ok(Self { path: Uri::from(path), whole: whole.build().map_err(|error| invalid(&error))?, host })
    }
}

/// Whether the host may add a header of this name to a request: not if it says how
/// the message is framed, where it goes, or what the host itself reads.
pub(crate) fn can_be_added(name: &HeaderName) -> bool {
    let is_framing = [header::HOST, header::CONTENT_LENGTH, header::TE, header::TRAILER].contains(name);
    !is_framing && check_name(name).is_ok()
}

/// What a request's head says about what follows.
pub(crate) struct Checked {
    pub(crate) address: Address,
    /// The `Content-Length`, if there was one. It is taken out: what the body
    /// turns out to be is what is sent.
    pub(crate) length: Option<u64>,
}

/// Checks the head of a guest's request, and takes out what the host sets.
pub(crate) fn check<B: Body>(request: &mut Request<B>, target: &Target, sizes: &Sizes) -> Result<Checked, EgressError> {
    let uri = request.uri();
    let url_bytes = target.authority().len() + uri.path_and_query().map_or(0, |path| path.as_str().len());
    if url_bytes > sizes.url {
        return Err(EgressError::UriTooLong { len: url_bytes, max: sizes.url });
    }
    if request.method() == Method::CONNECT {
        return Err(EgressError::MethodInvalid(request.method().to_string()));
    }
    let address = Address::of(uri, target)?;
    check_host(request.headers(), target)?;
    check_fields(request.headers())?;
    let te = request.headers().get_all(header::TE);
    if te.iter().any(|value| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"trailers")) {
        return Err(denied(header::TE, "only \"trailers\" can be asked for"));
    }
    let len = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if len > sizes.request_headers {
        return Err(EgressError::RequestHeaderSize { len, max: sizes.request_headers });
    }
    let length = content_length(request.headers())?;
    if let (Some(said), Some(has)) = (length, request.body().size_hint().exact())
        && said != has
    {
        return Err(EgressError::RequestBodySize { said: Some(said) });
    }
    request.headers_mut().remove(header::HOST);
    request.headers_mut().remove(header::CONTENT_LENGTH);
    Ok(Checked { address, length })
}

fn denied(name: HeaderName, why: &'static str) -> EgressError {
    EgressError::Denied(Denial::Header { name, why })
}

/// Names that neither headers nor trailers of a guest may have.
pub(crate) fn check_fields(fields: &HeaderMap) -> Result<(), EgressError> {
    fields.keys().try_for_each(check_name)
}

fn check_name(name: &HeaderName) -> Result<(), EgressError> {
    if FORBIDDEN.contains(name) {
        return Err(denied(name.clone(), "it is about the connection, which is the host's"));
    }
    if OWN_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix)) {
        return Err(denied(name.clone(), "names that begin like this are the host's"));
    }
    Ok(())
}

/// The fields that decide how a message is framed or routed, which must not
/// come behind it (RFC 9110, 6.5.1).
///
/// `guarded` is the header that the host has set in the head.
pub(crate) fn check_trailers(fields: &HeaderMap, guarded: Option<&HeaderName>) -> Result<(), EgressError> {
    check_fields(fields)?;
    if let Some(name) = guarded.filter(|name| fields.contains_key(*name)) {
        return Err(denied(name.clone(), "the host has set it for this server"));
    }
    for name in [header::HOST, header::CONTENT_LENGTH, header::TE, header::TRAILER] {
        if fields.contains_key(&name) {
            return Err(denied(name, "it cannot be a trailer"));
        }
    }
    Ok(())
}

/// `Host` may be there, once, and only as what the URL says.
fn check_host(headers: &HeaderMap, target: &Target) -> Result<(), EgressError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let Some(host) = hosts.next() else { return Ok(()) };
    let other = || denied(header::HOST, "it must be the host of the URL");
    if hosts.next().is_some() {
        return Err(denied(header::HOST, "there is more than one"));
    }
    // Read as the URL was, so that spellings of the same host are the same.
    let authority = Authority::try_from(host.as_bytes()).map_err(|_| other())?;
    let uri = Uri::builder().scheme(target.scheme.as_str()).authority(authority).path_and_query("/").build();
    match Route::of(&uri.map_err(|_| other())?) {
        Ok(Route::Outside(said)) if said == *target => Ok(()),
        _ => Err(other()),
    }
}

fn content_length(headers: &HeaderMap) -> Result<Option<u64>, EgressError> {
    let mut values = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let digits = value.to_str().ok().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    match (number, values.next()) {
        (Some(number), None) => Ok(Some(number)),
        _ => Err(EgressError::RequestBodySize { said: None }),
    }
}

/// Checks the head of a response, and takes out what was about the connection.
pub(crate) fn clean<B>(response: &mut Response<B>) -> Result<(), EgressError> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(EgressError::UpgradeFailed);
    }
    for coding in response.headers().get_all(header::TRANSFER_ENCODING) {
        if !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(EgressError::TransferCoding(String::from_utf8_lossy(coding.as_bytes()).into_owned()));
        }
    }
    let headers = response.headers_mut();
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        // What the guest needs to read the body is not the connection's.
        if name != header::CONTENT_LENGTH && name != header::CONTENT_TYPE {
            remove(headers, name);
        }
    }
    clean_fields(headers);
    Ok(())
}

/// Takes out what is about the connection.
pub(crate) fn clean_fields(headers: &mut HeaderMap) {
    for name in FORBIDDEN {
        remove(headers, name);
    }
}

fn remove(headers: &mut HeaderMap, name: HeaderName) {
    if let Entry::Occupied(entry) = headers.entry(name) {
        entry.remove_entry_mult();
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
