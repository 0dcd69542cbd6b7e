//! Small things that the front asks a class's process for itself.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use tokio::time::timeout;

use crate::forward::NoAnswer;
use crate::process::{Door, Process};

/// How long an answer may take: metrics are scraped every few seconds.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it may be, in bytes.
const MOST: usize = 32 << 20;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its status.
    pub status: StatusCode,
    /// Its body.
    pub text: String,
}

/// There is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The process is not there, or ended before it answered.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// It did not answer in time.
    #[error("the process did not answer within {} s", PATIENCE.as_secs())]
    Late,
    /// Its answer is too long, broke off, or is no text.
    #[error("the process's answer is of no use: {0}")]
    Unusable(String),
}

impl Process {
    /// Asks for `path` at the operator's door.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub async fn fetch(&self, path: &'static str) -> Result<Fetched, FetchError> {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = http::Uri::from_static(path);
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        let whole = async {
            let (head, body) = self.forward(Door::Operator, request).await?.into_parts();
            let unusable = |error: &dyn std::fmt::Display| FetchError::Unusable(error.to_string());
            let body = Limited::new(body, MOST).collect().await.map_err(|error| unusable(&error))?;
            let text = String::from_utf8(body.to_bytes().into()).map_err(|error| unusable(&error))?;
            Ok(Fetched { status: head.status, text })
        };
        timeout(PATIENCE, whole).await.unwrap_or(Err(FetchError::Late))
    }
}
