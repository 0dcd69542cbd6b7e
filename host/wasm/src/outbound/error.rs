//! What a guest is told of a request that failed.

use nala_egress::EgressError;
use wasmtime_wasi_http::Error;

/// The error code of wasi:http, for both of its versions.
pub(super) fn wire(error: EgressError) -> Error {
    let size = |bytes: usize| Some(u32::try_from(bytes).unwrap_or(u32::MAX));
    match error {
        EgressError::Denied(_) => Error::HttpRequestDenied,
        EgressError::Credential { .. } => Error::ConfigurationError,
        EgressError::DnsTimeout { .. } => Error::DnsTimeout,
        EgressError::DnsError { why, .. } => Error::DnsError { rcode: Some(why), info_code: None },
        EgressError::AddressProhibited { .. } => Error::DestinationIpProhibited,
        EgressError::Unroutable { .. } => Error::DestinationIpUnroutable,
        EgressError::ConnectionRefused { .. } => Error::ConnectionRefused,
        EgressError::ConnectionTerminated(_) => Error::ConnectionTerminated,
        EgressError::ConnectionTimeout => Error::ConnectionTimeout,
        EgressError::ConnectionReadTimeout => Error::ConnectionReadTimeout,
        EgressError::ConnectionWriteTimeout => Error::ConnectionWriteTimeout,
        EgressError::ConnectionLimitReached => Error::ConnectionLimitReached,
        EgressError::TlsProtocol(_) => Error::TlsProtocolError,
        EgressError::TlsCertificate(_) => Error::TlsCertificateError,
        EgressError::TlsAlert { id, message } => {
            Error::TlsAlertReceived { alert_id: Some(id), alert_message: Some(message) }
        }
        EgressError::MethodInvalid(_) => Error::HttpRequestMethodInvalid,
        EgressError::UriInvalid(_) => Error::HttpRequestUriInvalid,
        EgressError::UriTooLong { .. } => Error::HttpRequestUriTooLong,
        EgressError::RequestHeaderSize { len, .. } => Error::HttpRequestHeaderSectionSize(size(len)),
        EgressError::RequestBodySize { said } => Error::HttpRequestBodySize(said),
        EgressError::ResponseIncomplete(_) => Error::HttpResponseIncomplete,
        EgressError::ResponseHeaderSize { .. } => Error::HttpResponseHeaderSectionSize(None),
        EgressError::ResponseTimeout => Error::HttpResponseTimeout,
        EgressError::UpgradeFailed => Error::HttpUpgradeFailed,
        EgressError::Protocol(_) => Error::HttpProtocolError,
        other => Error::InternalError(Some(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_the_code_that_it_stands_for() {
        let refused = EgressError::ConnectionRefused { target: "http://a".to_owned() };
        for (error, code) in [
            (EgressError::ConnectionTimeout, "ConnectionTimeout"),
            (EgressError::ConnectionLimitReached, "ConnectionLimitReached"),
            (refused, "ConnectionRefused"),
            (EgressError::RequestBodySize { said: Some(7) }, "HttpRequestBodySize(Some(7))"),
            (EgressError::TlsCertificate("expired".to_owned()), "TlsCertificateError"),
            (EgressError::RequestBody("gone".to_owned()), "InternalError"),
        ] {
            assert!(format!("{:?}", wire(error)).starts_with(code), "{code}");
        }
    }
}
