//! Errors that the host itself answers with, and errors of binding a listener.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use crate::body::ResponseBody;

/// An answer made by the host in place of a handler's, in OpenAI's error
/// envelope so that its clients show the message.
///
/// The envelope is `{"error": {"message", "type", "code", "param": null}}`
/// (OpenAI API reference, "Error codes"). `type` follows from the status:
/// `rate_limit_error` for 429, else `invalid_request_error` below 500 and
/// `server_error` from there on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    status: StatusCode,
    code: Cow<'static, str>,
    message: String,
    retry_after: Option<Duration>,
    close: bool,
}

impl HostError {
    /// An error with an HTTP status, a code that programs can match on
    /// (`snake_case`), and a message for people.
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), retry_after: None, close: false }
    }

    /// Adds `Retry-After`, rounded up to whole seconds.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Adds `Connection: close`: the rest of the connection is of no use.
    #[must_use]
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The code that programs match on.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The envelope as JSON text.
    pub fn to_json(&self) -> String {
        let kind = match self.status {
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        serde_json::json!({
            "error": {
                "message": self.message,
                "type": kind,
                "code": self.code,
                "param": null,
            }
        })
        .to_string()
    }

    /// The whole response.
    pub fn into_response(self) -> Response<ResponseBody> {
        let json = self.to_json();
        self.into_response_with(json)
    }

    /// The whole response, with another envelope: `json` as its body.
    pub fn into_response_with(self, json: String) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::full(json));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// A listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process listens there.
    #[error(
        "cannot listen on {addr}: the port is already in use; stop the process that holds it \
         or choose another port with --listen"
    )]
    InUse {
        /// The address asked for.
        addr: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The process may not open this port.
    #[error(
        "cannot listen on {addr}: permission denied; ports below 1024 need a privilege \
         (CAP_NET_BIND_SERVICE), choose a higher port with --listen"
    )]
    Permission {
        /// The address asked for.
        addr: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The address does not belong to this machine.
    #[error(
        "cannot listen on {addr}: this machine has no such address; use 127.0.0.1 for this \
         machine only or 0.0.0.0 for every interface"
    )]
    NoSuchAddress {
        /// The address asked for.
        addr: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// Anything else the operating system said.
    #[error("cannot listen on {addr}")]
    Other {
        /// The address asked for.
        addr: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
}

impl BindError {
    pub(crate) fn new(addr: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { addr, source },
            io::ErrorKind::PermissionDenied => Self::Permission { addr, source },
            io::ErrorKind::AddrNotAvailable => Self::NoSuchAddress { addr, source },
            _ => Self::Other { addr, source },
        }
    }
}
