//! What the client gets.

use std::fmt;

use super::body::{BodyWriter, Sse};
use crate::Error;

/// A response: a status, headers and a body, which may be written piece by piece
/// once the head is out.
pub struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Bytes(Vec<u8>),
    Stream(Box<Streamer>),
}

/// What writes a streaming body.
type Streamer = dyn FnOnce(&mut BodyWriter) -> Result<(), Error>;

impl Response {
    /// A response with a whole body.
    #[must_use]
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: Body::Bytes(body.into()),
        }
    }

    /// A response without a body, and so without a content type.
    ///
    /// ```
    /// let response = nala_sdk::http::Response::empty(204);
    /// assert_eq!((response.status(), response.header("content-type")), (204, None));
    /// ```
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Bytes(Vec::new()) }
    }

    /// Plain text.
    ///
    /// ```
    /// let response = nala_sdk::http::Response::text(404, "no such page");
    /// assert_eq!(response.status(), 404);
    /// ```
    #[must_use]
    pub fn text(status: u16, text: impl Into<String>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", text.into())
    }

    /// A 200 whose body is written piece by piece by `write`, each piece reaching
    /// the client at once. A failure of `write` breaks the body off, visibly for
    /// the client.
    #[must_use]
    pub fn stream(content_type: &str, write: impl FnOnce(&mut BodyWriter) -> Result<(), Error> + 'static) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: Body::Stream(Box::new(write)),
        }
    }

    /// A 200 whose body is a stream of server-sent events that `write` formats itself;
    /// else as [`Response::stream`].
    #[must_use]
    pub fn events(write: impl FnOnce(&mut BodyWriter) -> Result<(), Error> + 'static) -> Self {
        Self::stream("text/event-stream", write).with_header("cache-control", "no-cache")
    }

    /// A 200 whose body is a stream of server-sent events.
    ///
    /// ```
    /// use nala_sdk::http::Response;
    /// let response = Response::sse(|events| {
    ///     events.data("one")?;
    ///     events.data("two\nlines")
    /// });
    /// assert_eq!(response.into_bytes()?, b"data: one\n\ndata: two\ndata: lines\n\n");
    /// # Ok::<(), nala_sdk::Error>(())
    /// ```
    #[must_use]
    pub fn sse(write: impl FnOnce(&mut Sse<'_>) -> Result<(), Error> + 'static) -> Self {
        Self::events(|out| write(&mut Sse::new(out)))
    }

    /// The same with another status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first value of a header. The case of the name does not matter.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The whole body, a streaming one written to its end; for tests.
    ///
    /// # Errors
    /// What the writer of a streaming body fails with.
    pub fn into_bytes(self) -> Result<Vec<u8>, Error> {
        match self.body {
            Body::Bytes(bytes) => Ok(bytes),
            Body::Stream(write) => BodyWriter::collect(write),
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body: &dyn fmt::Debug = match &self.body {
            Body::Bytes(bytes) => &bytes.len(),
            Body::Stream(_) => &"stream",
        };
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("body", body)
            .finish()
    }
}

/// What a handler may return.
pub trait IntoResponse {
    /// Makes the response.
    fn into_response(self) -> Response;
}

impl IntoResponse for Response {
    fn into_response(self) -> Response {
        self
    }
}

impl<T: IntoResponse, E: IntoResponse> IntoResponse for Result<T, E> {
    fn into_response(self) -> Response {
        match self {
            Ok(response) => response.into_response(),
            Err(error) => error.into_response(),
        }
    }
}
