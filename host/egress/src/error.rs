//! How a request can fail.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use http::HeaderName;

use crate::credential::CredentialError;
use crate::range::Special;

/// How a request can fail: one variant for each `error-code` of wasi:http 0.3
/// (`wasi:http/types`) that can occur, whose name [`EgressError::code`] gives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// `HTTP-request-denied`: the component may not make this request.
    #[error("{0}")]
    Denied(#[from] Denial),
    /// `configuration-error`: what the operator has added to requests for this
    /// origin cannot be had now. The value is not in here.
    #[error("the credential for {target} cannot be used: {why}")]
    Credential {
        /// The origin.
        target: String,
        /// What is wrong with it.
        #[source]
        why: CredentialError,
    },
    /// `DNS-timeout`: the connect timeout ended before the name was resolved.
    #[error("the name {host:?} was not resolved in time")]
    DnsTimeout {
        /// The name.
        host: String,
    },
    /// `DNS-error`: the name has no address.
    #[error("the name {host:?} cannot be resolved: {why}")]
    DnsError {
        /// The name.
        host: String,
        /// What the resolver says.
        why: String,
    },
    /// `destination-IP-prohibited`: none of the name's addresses may be
    /// connected to. One of them is told.
    #[error("{target} is at {address}, which may not be reached: {why}")]
    AddressProhibited {
        /// The origin.
        target: String,
        /// An address of it.
        address: IpAddr,
        /// Why not.
        why: Prohibited,
    },
    /// `destination-IP-unroutable`: there is no way to any of the addresses.
    #[error("there is no route to {target}")]
    Unroutable {
        /// The origin.
        target: String,
    },
    /// `connection-refused`: nobody listens there.
    #[error("{target} refused the connection")]
    ConnectionRefused {
        /// The origin.
        target: String,
    },
    /// `connection-terminated`: it broke before the response began.
    #[error("the connection broke: {0}")]
    ConnectionTerminated(String),
    /// `connection-timeout`: TCP, TLS and their like took longer than the
    /// connect timeout.
    #[error("the connection was not there in time")]
    ConnectionTimeout,
    /// `connection-read-timeout`: the head of the response, or the next part of
    /// its body, took longer than its timeout.
    #[error("the server sent nothing in time")]
    ConnectionReadTimeout,
    /// `connection-write-timeout`: the request was not sent before the exchange
    /// had to end.
    #[error("the request was not sent in time")]
    ConnectionWriteTimeout,
    /// `connection-limit-reached`: no place became free within the connect
    /// timeout.
    #[error("there are as many connections as there may be")]
    ConnectionLimitReached,
    /// `TLS-protocol-error`.
    #[error("TLS failed: {0}")]
    TlsProtocol(String),
    /// `TLS-certificate-error`: the server is not who it should be.
    #[error("the server's certificate is not good: {0}")]
    TlsCertificate(String),
    /// `TLS-alert-received`: the server ended TLS and said why.
    #[error("the server ended TLS with alert {id}: {message}")]
    TlsAlert {
        /// The alert's number (RFC 8446, section 6).
        id: u8,
        /// Its name.
        message: String,
    },
    /// `HTTP-request-method-invalid`: `CONNECT` would make a tunnel, past every
    /// rule about requests.
    #[error("the method {0:?} is not served")]
    MethodInvalid(String),
    /// `HTTP-request-URI-invalid`.
    #[error("the URL cannot be used: {0}")]
    UriInvalid(String),
    /// `HTTP-request-URI-too-long`.
    #[error("the URL has {len} bytes, more than {max}")]
    UriTooLong {
        /// What it has.
        len: usize,
        /// What it may have.
        max: usize,
    },
    /// `HTTP-request-header-section-size`.
    #[error("the request's headers have {len} bytes, more than {max}")]
    RequestHeaderSize {
        /// What they have.
        len: usize,
        /// What they may have.
        max: usize,
    },
    /// `HTTP-request-body-size`: the body is not as long as `Content-Length`
    /// says.
    #[error("the request's body is not as long as its Content-Length, {said:?}")]
    RequestBodySize {
        /// What was said, if it was one number.
        said: Option<u64>,
    },
    /// `HTTP-response-incomplete`: the connection ended within the response.
    #[error("the response is not complete: {0}")]
    ResponseIncomplete(String),
    /// `HTTP-response-header-section-size`.
    #[error("the response's headers are longer than {max} bytes, or too many")]
    ResponseHeaderSize {
        /// What they may have, in bytes.
        max: usize,
    },
    /// `HTTP-response-transfer-coding`: the body is coded in a way that was not
    /// asked for.
    #[error("the response has the transfer coding {0:?}; only chunked is served")]
    TransferCoding(String),
    /// `HTTP-response-timeout`: the whole exchange took longer than it may.
    #[error("the exchange did not end in time")]
    ResponseTimeout,
    /// `HTTP-upgrade-failed`: the server wants to speak another protocol.
    #[error("the server switches to another protocol, which was not asked for")]
    UpgradeFailed,
    /// `HTTP-protocol-error`: what the server sends is not HTTP.
    #[error("the server does not keep to HTTP: {0}")]
    Protocol(String),
    /// `internal-error`: reading the request's body from the guest failed.
    #[error("the request's body ended with an error: {0}")]
    RequestBody(String),
}

/// Why a component may not make a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denial {
    /// No entry of the list names the origin.
    #[error("{origin} is not allowed: add \"{origin}\" to allowed_outbound_hosts of the component")]
    Host {
        /// Scheme, host, and port where it is not the scheme's own.
        origin: String,
    },
    /// No entry of the list names the other component.
    #[error(
        "the component {name:?} may not be called: add \"http://{name}.spin.internal\" to allowed_outbound_hosts of \
         the component"
    )]
    Component {
        /// Its name.
        name: String,
    },
    /// No entry of the list names the application itself.
    #[error("the application may not be called: add \"http://self\" to allowed_outbound_hosts of the component")]
    Application,
    /// It goes to the application or a component of it, which is not outside.
    #[error("a request within the application has no connection")]
    NotOutside,
    /// A header that the host sets, or that the guest has no say in.
    #[error("the header {name} may not be set: {why}")]
    Header {
        /// The header.
        name: HeaderName,
        /// The rule.
        why: &'static str,
    },
}

/// Why an address may not be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Prohibited {
    /// It is not of the public internet, and not granted as an address.
    #[error("it is a {0} address")]
    Special(Special),
    /// The operator refuses it for all.
    #[error("the operator refuses it")]
    ByOperator,
}

impl EgressError {
    /// The name of the `error-code` of wasi:http, as its WIT has it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "HTTP-request-denied",
            Self::Credential { .. } => "configuration-error",
            Self::DnsTimeout { .. } => "DNS-timeout",
            Self::DnsError { .. } => "DNS-error",
            Self::AddressProhibited { .. } => "destination-IP-prohibited",
            Self::Unroutable { .. } => "destination-IP-unroutable",
            Self::ConnectionRefused { .. } => "connection-refused",
            Self::ConnectionTerminated(_) => "connection-terminated",
            Self::ConnectionTimeout => "connection-timeout",
            Self::ConnectionReadTimeout => "connection-read-timeout",
            Self::ConnectionWriteTimeout => "connection-write-timeout",
            Self::ConnectionLimitReached => "connection-limit-reached",
            Self::TlsProtocol(_) => "TLS-protocol-error",
            Self::TlsCertificate(_) => "TLS-certificate-error",
            Self::TlsAlert { .. } => "TLS-alert-received",
            Self::MethodInvalid(_) => "HTTP-request-method-invalid",
            Self::UriInvalid(_) => "HTTP-request-URI-invalid",
            Self::UriTooLong { .. } => "HTTP-request-URI-too-long",
            Self::RequestHeaderSize { .. } => "HTTP-request-header-section-size",
            Self::RequestBodySize { .. } => "HTTP-request-body-size",
            Self::ResponseIncomplete(_) => "HTTP-response-incomplete",
            Self::ResponseHeaderSize { .. } => "HTTP-response-header-section-size",
            Self::TransferCoding(_) => "HTTP-response-transfer-coding",
            Self::ResponseTimeout => "HTTP-response-timeout",
            Self::UpgradeFailed => "HTTP-upgrade-failed",
            Self::Protocol(_) => "HTTP-protocol-error",
            Self::RequestBody(_) => "internal-error",
        }
    }

    /// What hyper says about an exchange. `head` is how many bytes a response's
    /// headers may have.
    pub(crate) fn of_hyper(error: &hyper::Error, head: usize) -> Self {
        // Our own errors of the request's body come back as a cause.
        if let Some(own) = cause::<Self>(error) {
            return own.clone();
        }
        let message = spelled(error);
        let io = cause::<io::Error>(error);
        if error.is_parse_too_large() {
            Self::ResponseHeaderSize { max: head }
        } else if error.is_incomplete_message() || io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof) {
            Self::ResponseIncomplete(message)
        } else if io.is_some() || error.is_canceled() || error.is_closed() {
            Self::ConnectionTerminated(message)
        } else {
            Self::Protocol(message)
        }
    }

    /// What rustls says about a handshake.
    pub(crate) fn of_tls(error: &io::Error) -> Self {
        let message = error.to_string();
        let rustls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match rustls {
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
                Self::TlsCertificate(message)
            }
            Some(rustls::Error::AlertReceived(alert)) => {
                Self::TlsAlert { id: u8::from(*alert), message: format!("{alert:?}") }
            }
            Some(_) => Self::TlsProtocol(message),
            None => Self::ConnectionTerminated(message),
        }
    }
}

/// The first error of a type in the chain of causes.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// An error with its causes.
fn spelled(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
