//! `static_response`: what the host answers without a component.

use std::fmt;

use http::header::{CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::reader::Node;

/// `static_response = { status_code = 302, headers = { location = "/" }, body = "…" }`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StaticResponse {
    /// A final status: from 200 on.
    pub status: StatusCode,
    /// None of them says how the message is transferred: that is the server's.
    pub headers: HeaderMap,
    /// Empty where the status allows no body.
    pub body: String,
}

/// Says that this is no component: its status.
impl fmt::Display for StaticResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "static response {}", self.status.as_u16())
    }
}

/// Headers that are between the server and whoever is at the connection's other
/// end: RFC 9110, 7.6.1, and RFC 9112, 6.
const OF_THE_CONNECTION: &[HeaderName] = &[CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Reads a `static_response`.
pub(crate) fn read(node: Node<'_>) -> Option<StaticResponse> {
    let table = node.table("`static_response`")?;
    let status_node = table.get("status_code");
    let status = status_node.map_or(Some(StatusCode::OK), status);
    let headers = table.get("headers").map_or(Some(HeaderMap::new()), headers);
    let body_node = table.get("body");
    let body = body_node.map_or(Some(""), Node::text);
    table.close();
    let (status, headers, body) = (status?, headers?, body?.to_owned());
    // RFC 9110, 15.3.5, 15.3.6 and 15.4.5.
    let bodyless = matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED);
    if let (true, false, Some(node)) = (bodyless, body.is_empty(), body_node) {
        return node.fail(format!("a response with status {} has no body", status.as_u16()), "remove `body`");
    }
    Some(StaticResponse { status, headers, body })
}

fn status(node: Node<'_>) -> Option<StatusCode> {
    let number = node.integer()?;
    let final_one = u16::try_from(number).ok().filter(|number| (200..=599).contains(number));
    final_one.and_then(|number| StatusCode::from_u16(number).ok()).or_else(|| {
        node.fail(format!("{number} is no status of a response"), "write one from 200 to 599, such as 200, 302 or 404")
    })
}

fn headers(node: Node<'_>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, node) in node.table("`headers`")?.entries() {
        let text = name.text();
        let Ok(header) = HeaderName::from_bytes(text.as_bytes()) else {
            return name.fail(format!("`{text}` cannot be the name of a header"), "write it as in \"content-type\"");
        };
        if OF_THE_CONNECTION.contains(&header) || header == "keep-alive" || header == "proxy-connection" {
            return name.fail(format!("the header `{header}` is the server's to set"), "remove it");
        }
        let Ok(value) = HeaderValue::from_str(node.text()?) else {
            return node.fail(format!("the value of the header `{header}` is no header's"), "write it in one line");
        };
        if headers.insert(&header, value).is_some() {
            return name.fail(format!("the header `{header}` is there twice"), "remove one");
        }
    }
    Some(headers)
}
