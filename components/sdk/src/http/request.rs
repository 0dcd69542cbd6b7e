//! What the client asks.

use std::borrow::Cow;
use std::fmt;

use wasip2::http::types::{ErrorCode, IncomingBody, IncomingRequest, Method as WasiMethod, http_error_code};
use wasip2::io::streams::StreamError;

use crate::Error;

/// How much of a body [`Request::text`] and [`Request::bytes`] read before they
/// refuse it: 10 MiB, the host's own default.
pub const MAX_BODY: u64 = 10 * 1024 * 1024;

/// How much is asked of the host at once.
const READ: u64 = 64 * 1024;

/// The method of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `OPTIONS`
    Options,
    /// `PATCH`
    Patch,
    /// Any other.
    Other(String),
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Patch => "PATCH",
            Self::Other(name) => name,
        })
    }
}

impl From<WasiMethod> for Method {
    fn from(method: WasiMethod) -> Self {
        match method {
            WasiMethod::Get => Self::Get,
            WasiMethod::Head => Self::Head,
            WasiMethod::Post => Self::Post,
            WasiMethod::Put => Self::Put,
            WasiMethod::Delete => Self::Delete,
            WasiMethod::Options => Self::Options,
            WasiMethod::Patch => Self::Patch,
            WasiMethod::Connect => Self::Other("CONNECT".to_owned()),
            WasiMethod::Trace => Self::Other("TRACE".to_owned()),
            WasiMethod::Other(name) => Self::Other(name),
        }
    }
}

/// A request. Its body is read when asked for.
#[derive(Debug)]
pub struct Request {
    method: Method,
    path: String,
    query: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Bytes(Vec<u8>),
    Incoming(IncomingRequest),
}

impl Request {
    /// A request made by hand, for tests: `uri` is a path and perhaps a query.
    ///
    /// ```
    /// use nala_sdk::http::{Method, Request};
    /// let request = Request::new(Method::Get, "/ask?q=how+are+you%3F");
    /// assert_eq!(request.path(), "/ask");
    /// assert_eq!(request.query("q").as_deref(), Some("how are you?"));
    /// ```
    #[must_use]
    pub fn new(method: Method, uri: &str) -> Self {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Vec::new(),
            body: Body::Bytes(Vec::new()),
        }
    }

    /// The same with a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The same with a body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Bytes(body.into());
        self
    }

    pub(super) fn incoming(request: IncomingRequest) -> Self {
        let uri = request.path_with_query().unwrap_or_else(|| "/".to_owned());
        let mut this = Self::new(request.method().into(), &uri);
        this.headers = request.headers().entries();
        // HTTP/2 has no such header, and whoever reads it need not know.
        if let Some(authority) = request.authority()
            && this.header("host").is_none()
        {
            this.headers.push(("host".to_owned(), authority.into_bytes()));
        }
        this.body = Body::Incoming(request);
        this
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// All headers, in the order in which they came. The case of the names is as sent.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// The path, as sent (percent-encoded), without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The first value of a query parameter, decoded.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<String> {
        self.query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key) == name).then(|| decode(value).into_owned())
        })
    }

    /// The first value of a header, if it is text. The case of the name does not
    /// matter.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// Reads the body, up to [`MAX_BODY`].
    ///
    /// # Errors
    /// [`Error::BodyTooLarge`], or [`Error::Body`] when it breaks off.
    pub fn bytes(self) -> Result<Vec<u8>, Error> {
        self.bytes_up_to(MAX_BODY)
    }

    /// Reads the body, up to [`MAX_BODY`], as UTF-8.
    ///
    /// # Errors
    /// As [`Request::bytes`]; [`Error::BodyNotText`] for other bytes.
    pub fn text(self) -> Result<String, Error> {
        String::from_utf8(self.bytes()?).map_err(|error| Error::BodyNotText { at: error.utf8_error().valid_up_to() })
    }

    /// Reads the body, up to `limit` bytes.
    ///
    /// # Errors
    /// As [`Request::bytes`].
    pub fn bytes_up_to(self, limit: u64) -> Result<Vec<u8>, Error> {
        let declared = self.header("content-length").and_then(|length| length.parse::<u64>().ok());
        if declared.is_some_and(|length| length > limit) {
            return Err(Error::BodyTooLarge { limit });
        }
        match self.body {
            Body::Bytes(bytes) if bytes.len() as u64 > limit => Err(Error::BodyTooLarge { limit }),
            Body::Bytes(bytes) => Ok(bytes),
            Body::Incoming(request) => {
                let body = request.consume().map_err(|()| Error::Body("it was read before".to_owned()))?;
                read(&body, limit)
            }
        }
    }
}

fn read(body: &IncomingBody, limit: u64) -> Result<Vec<u8>, Error> {
    let stream = body.stream().map_err(|()| Error::Body("its stream was taken before".to_owned()))?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(READ) {
            Ok(part) if bytes.len() as u64 + part.len() as u64 > limit => {
                return Err(Error::BodyTooLarge { limit });
            }
            Ok(part) => bytes.extend_from_slice(&part),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(match http_error_code(&error) {
                    Some(ErrorCode::HttpRequestBodySize(max)) => Error::BodyTooLarge { limit: max.unwrap_or(limit) },
                    _ => Error::Body(error.to_debug_string()),
                });
            }
        }
    }
}

/// Undoes percent-encoding, as in a segment of a path. What is not a valid escape
/// stays as it is, and bytes that are not UTF-8 become U+FFFD.
///
/// ```
/// assert_eq!(nala_sdk::http::percent_decode("a%2Fb+c"), "a/b+c");
/// ```
#[must_use]
pub fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match (byte, tail) {
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(byte),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Undoes `application/x-www-form-urlencoded`, where a plus is a blank.
fn decode(text: &str) -> Cow<'_, str> {
    match text.contains('+') {
        true => Cow::Owned(percent_decode(&text.replace('+', " ")).into_owned()),
        false => percent_decode(text),
    }
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let request = Request::new(Method::Get, "/a?x=1&na%6De=a+b%20c%C3%A9%zz%4&empty");
        assert_eq!(request.query("name").as_deref(), Some("a b cé%zz%4"));
        assert_eq!(request.query("empty").as_deref(), Some(""));
        assert_eq!(request.query("none"), None);
    }

    #[test]
    fn a_large_body_is_refused_by_its_length_and_by_its_size() {
        let declared = Request::new(Method::Post, "/").with_header("Content-Length", "11");
        assert_eq!(declared.bytes_up_to(10), Err(Error::BodyTooLarge { limit: 10 }));
        let long = Request::new(Method::Post, "/").with_body([0; 11]);
        assert_eq!(long.bytes_up_to(10), Err(Error::BodyTooLarge { limit: 10 }));
        let fitting = Request::new(Method::Post, "/").with_body([0; 10]);
        assert_eq!(fitting.bytes_up_to(10).map(|body| body.len()), Ok(10));
    }

    #[test]
    fn bytes_that_are_not_text_are_named() {
        let request = Request::new(Method::Post, "/").with_body(b"ab\xff".to_vec());
        assert_eq!(request.text(), Err(Error::BodyNotText { at: 2 }));
    }
}
