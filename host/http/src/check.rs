//! What is refused before a handler sees it: requests that are malformed, too
//! large, or ask the server for what it does not do.

use http::header::{CONTENT_LENGTH, EXPECT, HOST, HeaderValue, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, StatusCode, Version};

use crate::config::HttpConfig;
use crate::error::HostError;

/// Checks the head of a request. One of an old client that names no host is
/// given `local`, the listener's address.
pub(crate) fn check<B>(request: &mut Request<B>, config: &HttpConfig, local: &HeaderValue) -> Result<(), HostError> {
    if request.method() == Method::CONNECT {
        return Err(HostError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "This server is not a proxy: CONNECT is not supported.",
        ));
    }
    check_size(request.headers(), config.max_header_bytes)?;
    check_host(request, local)?;
    check_framing(request.headers())?;
    check_length(request.headers(), config.max_body_bytes)
}

fn check_size(headers: &HeaderMap, most: usize) -> Result<(), HostError> {
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size <= most {
        return Ok(());
    }
    Err(HostError::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "headers_too_large",
        format!("The request's headers take {size} bytes; the limit is {most} bytes."),
    )
    .closing())
}

/// One host, named once (RFC 9112, section 3.2).
fn check_host<B>(request: &mut Request<B>, local: &HeaderValue) -> Result<(), HostError> {
    let bad = |text: &str| Err(HostError::new(StatusCode::BAD_REQUEST, "bad_host", text).closing());
    let mut hosts = request.headers().get_all(HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let named = first.is_some() || request.uri().authority().is_some();
    if second.is_some() || (!named && request.version() == Version::HTTP_11) {
        return bad("The request must carry exactly one Host header.");
    }
    if first.is_some_and(|host| !names_a_host(host)) {
        return bad("The Host header must be a host name or an IP address in ASCII, perhaps with a port, for example \
                    example.org:8080; write other names in Punycode (xn--…).");
    }
    if !named {
        request.headers_mut().insert(HOST, local.clone());
    }
    Ok(())
}

/// `host[:port]`, and nothing that a handler's URI could not be made of.
fn names_a_host(host: &HeaderValue) -> bool {
    let Ok(text) = host.to_str() else { return false };
    let Ok(authority) = text.parse::<Authority>() else { return false };
    // A port that is none is kept as it is by the parser.
    let port_is_fine = match authority.as_str().strip_prefix(authority.host()) {
        Some("" | ":") => true,
        Some(_) => authority.port().is_some(),
        None => false,
    };
    !authority.host().is_empty() && port_is_fine
}

/// The body comes as it is or in chunks; what else could be done to it on its
/// way is not undone here.
fn check_framing(headers: &HeaderMap) -> Result<(), HostError> {
    for value in headers.get_all(TRANSFER_ENCODING) {
        let codings = value.as_bytes().split(|byte| *byte == b',');
        if let Some(other) = codings.map(<[u8]>::trim_ascii).find(|coding| !coding.eq_ignore_ascii_case(b"chunked")) {
            let other = String::from_utf8_lossy(other);
            return Err(HostError::new(
                StatusCode::NOT_IMPLEMENTED,
                "unsupported_transfer_encoding",
                format!("Transfer-Encoding {other:?} is not supported; send the body as it is, or chunked."),
            )
            .closing());
        }
    }
    for value in headers.get_all(EXPECT) {
        if !value.as_bytes().eq_ignore_ascii_case(b"100-continue") {
            let value = String::from_utf8_lossy(value.as_bytes());
            return Err(HostError::new(
                StatusCode::EXPECTATION_FAILED,
                "unsupported_expectation",
                format!("Expect: {value:?} is not supported; leave it out, or send 100-continue."),
            )
            .closing());
        }
    }
    Ok(())
}

fn check_length(headers: &HeaderMap, most: u64) -> Result<(), HostError> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match declared.filter(|length| *length > most) {
        None => Ok(()),
        Some(length) => Err(HostError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("The request body has {length} bytes; the limit is {most} bytes."),
        )
        .closing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_in_ascii() {
        for good in ["x", "example.org", "example.org:8080", "127.0.0.1:1", "[::1]", "[::1]:3000", "a_b", "x:"] {
            assert!(names_a_host(&HeaderValue::from_static(good)), "{good}");
        }
        for bad in ["", " ", "a b", "a/b", "user@host", "x:99999", "x:y", ":80", "http://x", "a\tb"] {
            assert!(!names_a_host(&HeaderValue::from_static(bad)), "{bad}");
        }
        for bad in [&b"\xff"[..], "ä.de".as_bytes()] {
            assert!(!names_a_host(&HeaderValue::from_bytes(bad).unwrap()), "{bad:?}");
        }
    }
}
