//! Why a server gives no answer.

use std::time::Duration;

use nala_egress::{Denial, EgressError};
use rmcp::model::ErrorData;
use rmcp::service::{ClientInitializeError, ServiceError};
use thiserror::Error;

/// Why a server gives no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is no way to it, or nobody there who speaks the protocol.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It wants to know who asks.
    #[error("it demands authorization{}", for_scope(.scope))]
    Unauthorized {
        /// What is to be asked for, if it says that.
        scope: Option<String>,
        /// The field by which it says how (`WWW-Authenticate`).
        challenge: Option<String>,
    },
    /// It took too long.
    #[error("it gave no answer within {0:?}")]
    Late(Duration),
    /// It refuses the request.
    #[error("{} ({})", .0.message, .0.code.0)]
    Refused(ErrorData),
    /// It has as many calls going on as are allowed.
    #[error("{0}")]
    Busy(String),
    /// What it says is not what the protocol has.
    #[error("it answers what is none of the protocol's: {0}")]
    Wrong(String),
    /// It asks what whoever calls cannot be asked, or has no reply to.
    #[error("it asks back, and there is no reply: {0}")]
    Unanswered(String),
}

fn for_scope(scope: &Option<String>) -> String {
    scope.as_ref().map(|scope| format!(" for {scope}")).unwrap_or_default()
}

impl ServerError {
    /// Of a connection that could not be made.
    pub(crate) fn of_start(error: &ClientInitializeError) -> Self {
        let challenge = error.auth_challenge().map(str::to_owned);
        if challenge.is_some() || error.is_authorization_required() {
            return Self::Unauthorized { scope: challenge.as_deref().and_then(wanted), challenge };
        }
        match error {
            ClientInitializeError::JsonRpcError(error) => Self::Refused(error.clone()),
            ClientInitializeError::NoCompatibleProtocolVersion { .. }
            | ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ConflictInitResponseId(..)
            | ClientInitializeError::UncorrelatedErrorResponse { .. } => Self::Wrong(error.to_string()),
            other => Self::Unreachable(deepest(other)),
        }
    }

    /// Of a request that came to nothing.
    pub(crate) fn of_request(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Refused(error),
            ServiceError::Timeout { timeout } => Self::Late(timeout),
            ServiceError::UnexpectedResponse => Self::Wrong("a result of another request".to_owned()),
            other => match challenge(&other) {
                Some(challenge) => Self::Unauthorized { scope: wanted(&challenge), challenge: Some(challenge) },
                None if needs_login(&other) => Self::Unauthorized { scope: None, challenge: None },
                None => Self::Unreachable(deepest(&other)),
            },
        }
    }

    /// Whether the connection is of no use any more.
    pub(crate) fn ends_connection(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Wrong(_))
    }
}

/// The field of a 401 or 403 that an error comes from.
fn challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};

    causes(error).find_map(|cause| {
        let of_401 = cause.downcast_ref::<AuthRequiredError>().map(|error| &error.www_authenticate_header);
        let of_403 = || cause.downcast_ref::<InsufficientScopeError>().map(|error| &error.www_authenticate_header);
        of_401.or_else(of_403).cloned()
    })
}

fn needs_login(error: &(dyn std::error::Error + 'static)) -> bool {
    use rmcp::transport::auth::AuthError;

    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref(),
            Some(AuthError::AuthorizationRequired | AuthError::TokenExpired | AuthError::TokenRefreshRejected(_))
        )
    })
}

/// `scope` of a challenge (RFC 6750, section 3).
pub(crate) fn wanted(challenge: &str) -> Option<String> {
    let rest = challenge.split_once("scope=")?.1;
    let text = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split([',', ' ']).next(),
    };
    text.filter(|text| !text.is_empty()).map(|text| text.chars().filter(|sign| !sign.is_control()).take(200).collect())
}

/// Where a request was to go that is not allowed, if that is what an error comes from.
pub(crate) fn denied(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    match causes(error).find_map(|cause| cause.downcast_ref::<EgressError>()) {
        Some(EgressError::Denied(Denial::Host { origin })) => Some(origin.clone()),
        _ => None,
    }
}

/// What an error says, with the cause that says most about it.
pub(crate) fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    // What egress says names the fix.
    if let Some(egress) = causes(error).find_map(|cause| cause.downcast_ref::<EgressError>()) {
        return egress.to_string();
    }
    error.to_string()
}

fn causes<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    let inner = |error: &'e (dyn std::error::Error + 'static)| {
        // This one does not tell its cause as one.
        match error.downcast_ref::<ServiceError>() {
            Some(ServiceError::TransportSend(send)) => {
                Some(send.error.as_ref() as &'e (dyn std::error::Error + 'static))
            }
            _ => error.source(),
        }
    };
    std::iter::successors(Some(error), move |error| inner(*error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_of_a_challenge_is_told() {
        for (challenge, expected) in [
            ("Bearer error=\"insufficient_scope\", scope=\"read write\"", Some("read write")),
            ("Bearer scope=read, realm=x", Some("read")),
            ("Bearer scope=\"\"", None),
            ("Bearer", None),
        ] {
            assert_eq!(wanted(challenge).as_deref(), expected, "{challenge}");
        }
    }
}
