//! Everything that can go wrong in a handler, and the answer it makes.

use crate::http::{IntoResponse, Response};
use crate::{chat, llm};

/// Why a handler failed. As a response (see
/// [`IntoResponse`]) it has the fitting status and
/// its text as the body.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call of [`llm`] failed.
    #[error("{}", llm::explain(.0))]
    Llm(llm::Error),
    /// The conversation could not be rendered.
    #[error("{}", chat::explain(.0))]
    Chat(chat::Error),
    /// The request's body is larger than the handler or the host allows.
    #[error("the request body is larger than {limit} bytes; send a smaller one")]
    BodyTooLarge {
        /// The most bytes that are read.
        limit: u64,
    },
    /// The request's body is not UTF-8.
    #[error("the request body is not UTF-8 text (first bad byte at offset {at})")]
    BodyNotText {
        /// Offset of the first byte that is not.
        at: usize,
    },
    /// The request's body broke off.
    #[error("the request body could not be read: {0}")]
    Body(String),
    /// The client hung up, so nobody reads the answer: stop working on it.
    #[error("the client closed the connection")]
    Gone,
    /// The handler's own refusal: a status and a text for the client.
    #[error("{1}")]
    Status(u16, String),
}

impl Error {
    /// The HTTP status that fits.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Llm(error) => match error {
                llm::Error::InvalidArgument(_) | llm::Error::ContextFull(_) | llm::Error::Constraint(_) => 400,
                llm::Error::Denied(_) => 403,
                llm::Error::NotFound(_) => 404,
                llm::Error::Quota(_) | llm::Error::Busy => 429,
                llm::Error::Unsupported(_) => 501,
                llm::Error::Cancelled | llm::Error::Evicted => 503,
                llm::Error::Deadline => 504,
                llm::Error::Backend(_) => 500,
            },
            Self::Chat(error) => match error {
                chat::Error::Refused(_) | chat::Error::Invalid(_) => 400,
                chat::Error::Template(_) | chat::Error::Failed(_) => 500,
            },
            Self::BodyTooLarge { .. } => 413,
            Self::BodyNotText { .. } | Self::Body(_) => 400,
            Self::Gone => 499,
            Self::Status(status, _) => *status,
        }
    }
}

impl From<llm::Error> for Error {
    fn from(error: llm::Error) -> Self {
        Self::Llm(error)
    }
}

impl From<chat::Error> for Error {
    fn from(error: chat::Error) -> Self {
        Self::Chat(error)
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let response = Response::text(self.status(), format!("{self}\n"));
        match self.status() {
            429 | 503 => response.with_header("retry-after", "1"),
            _ => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_itself_in_the_answer() {
        let response = Error::BodyTooLarge { limit: 10 }.into_response();
        assert_eq!(response.status(), 413);
        let body = response.into_bytes().unwrap();
        assert!(String::from_utf8(body).unwrap().contains("10 bytes"));
    }

    #[test]
    fn busy_says_when_to_come_back() {
        let response = Error::from(llm::Error::Busy).into_response();
        assert_eq!((response.status(), response.header("Retry-After")), (429, Some("1")));
    }
}
