//! Access tokens, joined to who is served: what the operator says of them, and what clients
//! are told.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL,
    CONTENT_TYPE, HeaderValue,
};
use http::{Method, Response, StatusCode};
use nala_egress::{AllowList, Egress, EgressMetrics, Networks, Owner};
use nala_http::{HostError, ResponseBody};
use nala_manifest::operator::{TokenIssuer, TokenKeys, TokenOwner};
use nala_token::{Fault, Issuer, Keys, Refused, Tokens, Whose};
use url::Url;

use crate::application::servers;
use crate::services;

/// Connections to issuers together.
const CONNECTIONS: usize = 16;
/// The code of a token that is not right.
const INVALID: &str = "invalid_token";
/// The code of one that does not allow what was asked for.
const SCOPE: &str = "insufficient_scope";

/// Those that the operator's file declares.
pub(super) fn of(declared: &[TokenIssuer]) -> Tokens {
    let issuer = |one: &TokenIssuer| Issuer {
        issuer: one.issuer.clone(),
        audience: one.audience.clone(),
        keys: match &one.keys {
            TokenKeys::Discovered => Keys::Discovered,
            TokenKeys::At(url) => Keys::At(url.clone()),
            TokenKeys::File(path) => Keys::File(path.clone()),
        },
        whose: match &one.owner {
            TokenOwner::Tenant(name) => Whose::Tenant(name.to_string()),
            TokenOwner::Claim(claim) => Whose::Claim(claim.clone()),
        },
        scopes: one.scopes.clone(),
    };
    Tokens::new(declared.iter().map(issuer).collect())
}

/// Whether somebody elsewhere is asked for keys.
pub(super) fn reach_out(tokens: &Tokens) -> bool {
    tokens.issuers().any(|issuer| issuer.keys.are_elsewhere())
}

/// Begins to fetch the keys of all issuers, which goes on for as long as the host serves.
///
/// # Errors
/// The system has no certificates to trust.
pub(super) fn follow(tokens: &Tokens, networks: &Networks) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let open = || services::gate(networks.clone(), CONNECTIONS, EgressMetrics::default());
    let gate = reach_out(tokens).then(open).transpose()?;
    let way = move |issuer: &Issuer| -> Option<Egress> {
        let allowed = allowed(issuer).ok()?;
        Some(gate.as_ref()?.egress(Owner::new("", "tokens"), allowed))
    };
    Ok(tokio::spawn(tokens.clone().follow(way)))
}

/// The places that the operator has named, and anywhere that an issuer says its keys are.
fn allowed(issuer: &Issuer) -> anyhow::Result<AllowList> {
    let mut hosts = vec!["https://*".to_owned()];
    let named = match &issuer.keys {
        Keys::Discovered => Url::parse(&issuer.issuer).ok(),
        Keys::At(url) => Some(url.clone()),
        Keys::File(_) => None,
    };
    hosts.extend(named.as_ref().map(servers::origin));
    Ok(AllowList::parse(&hosts)?)
}

/// The tenant whose a key is that was sent, if it is a token; None for a key of our own.
///
/// # Errors
/// It is a token, and nobody's.
pub(super) fn owner(tokens: &Tokens, key: &str) -> Result<Option<String>, HostError> {
    if tokens.is_empty() || key.bytes().filter(|byte| *byte == b'.').count() != 2 {
        return Ok(None);
    }
    tokens.owner(key).map(Some).map_err(|refused| {
        let (status, code) = match &refused {
            Refused::NoKeys => (StatusCode::SERVICE_UNAVAILABLE, "token_keys_missing"),
            Refused::Scope(_) => (StatusCode::FORBIDDEN, SCOPE),
            Refused::NoClaim(_) => (StatusCode::FORBIDDEN, "wrong_tenant"),
            _ => (StatusCode::UNAUTHORIZED, INVALID),
        };
        let error = HostError::new(status, code, super::sentence(&refused.to_string()));
        match refused {
            Refused::NoKeys => error.retry_after(std::time::Duration::from_secs(1)),
            _ => error,
        }
    })
}

/// What a client that was refused is told of how to get in, as the value of a header.
pub(super) fn challenge(tokens: &Tokens, path: &str, error: &HostError) -> Option<HeaderValue> {
    let fault = match (error.code(), error.status()) {
        ("missing_api_key", _) => None,
        (SCOPE, _) => Some(Fault::Scope),
        (_, StatusCode::UNAUTHORIZED) => Some(Fault::Invalid),
        _ => return None,
    };
    HeaderValue::from_str(&tokens.challenge(path, fault)?).ok()
}

/// Answers what is asked about where tokens come from, by anybody: who asks has none yet.
pub(super) fn metadata(tokens: &Tokens, method: &Method, path: &str) -> Option<Response<ResponseBody>> {
    let metadata = tokens.metadata(path)?;
    let (status, body, fields) = match *method {
        Method::GET | Method::HEAD => {
            let fields = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "max-age=300")];
            (StatusCode::OK, ResponseBody::full(metadata.to_string()), fields)
        }
        // A browser asks first if a page sends a header of the protocol's.
        Method::OPTIONS => {
            let fields = [(ACCESS_CONTROL_ALLOW_METHODS, "GET"), (ACCESS_CONTROL_ALLOW_HEADERS, "*")];
            (StatusCode::NO_CONTENT, ResponseBody::empty(), fields)
        }
        _ => {
            let fields = [(ALLOW, "GET, HEAD, OPTIONS"), (CACHE_CONTROL, "no-store")];
            (StatusCode::METHOD_NOT_ALLOWED, ResponseBody::empty(), fields)
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let open = (ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    for (name, value) in fields.into_iter().chain([open]) {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}
