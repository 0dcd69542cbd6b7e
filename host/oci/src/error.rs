//! What can go wrong between here and a registry.

use std::time::Duration;

use oci_client::errors::{DigestError, OciDistributionError, OciErrorCode};

use crate::reference::Reference;

/// Characters of a registry's own words that are shown.
const SHOWN: usize = 500;

/// Why a component was not pulled or pushed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registry wants to know who asks, or does not let them (401, 403).
    #[error(
        "{registry} refuses access to {reference}: check the name, and log in by `docker login {registry}` or by the \
         variables NALA_REGISTRY, NALA_REGISTRY_USER and NALA_REGISTRY_PASSWORD"
    )]
    Unauthorized {
        /// Host and port.
        registry: String,
        /// What was asked for.
        reference: String,
    },
    /// There are credentials that cannot be used.
    #[error("the credentials for {registry} cannot be used: {why}")]
    Credentials {
        /// Host and port.
        registry: String,
        /// What to do.
        why: String,
    },
    /// The registry does not have it (404).
    #[error("{0} is not there: check the repository and the tag; some registries say so of what is private, too")]
    NotFound(String),
    /// It is something else than a component.
    #[error(
        "{reference} is no component: its {part} is `{found}`, and `{wanted}` is wanted; push it by nala-host or by \
         `wkg oci push`"
    )]
    WrongMediaType {
        /// What was asked for.
        reference: String,
        /// Which part of it.
        part: &'static str,
        /// What it is.
        found: String,
        /// What it has to be.
        wanted: &'static str,
    },
    /// The bytes are no component.
    #[error("{reference} holds no WebAssembly component: {why}; build one for wasm32-wasip2")]
    NoComponent {
        /// What was asked for, or is pushed.
        reference: String,
        /// What is wrong with the bytes.
        why: String,
    },
    /// What came is not what was pinned.
    #[error(
        "the registry sent {actual} for {expected}: somebody changed it on the way or in the registry; do not use it"
    )]
    DigestMismatch {
        /// The digest that was asked for.
        expected: String,
        /// The digest of what came.
        actual: String,
    },
    /// The component is larger than it may be.
    #[error("{reference} has more than {limit} bytes, which is the limit: make it smaller, or raise the limit")]
    TooLarge {
        /// What was asked for.
        reference: String,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The host's name is unknown.
    #[error("there is no host {0}: check its name and the network")]
    NoSuchHost(String),
    /// No connection.
    #[error(
        "{registry} cannot be reached: {why}; check the address and the network, and ask for plain HTTP if the \
         registry has no TLS"
    )]
    Unreachable {
        /// Host and port.
        registry: String,
        /// What the system says.
        why: String,
    },
    /// It took too long.
    #[error("{registry} did not answer in {limit:?}: try again, or raise the limit")]
    TimedOut {
        /// Host and port.
        registry: String,
        /// The time that all of it may take.
        limit: Duration,
    },
    /// A component is pushed to a tag, since its digest is not for choosing.
    #[error("{0} cannot be pushed to: name a tag and no digest")]
    NoTag(String),
    /// The registry answered in a way that is none of these.
    #[error("{registry} answers: {why}")]
    Registry {
        /// Host and port.
        registry: String,
        /// Its words.
        why: String,
    },
    /// The client could not be made, or failed.
    #[error("the client of registries failed: {0}")]
    Client(String),
}

impl Error {
    /// Reads what the library says about a request for `reference`.
    pub(crate) fn from_library(error: OciDistributionError, reference: &Reference) -> Self {
        let registry = || reference.registry().to_owned();
        let unauthorized = || Self::Unauthorized { registry: registry(), reference: reference.to_string() };
        let missing = || Self::NotFound(reference.to_string());
        match error {
            OciDistributionError::UnauthorizedError { .. } | OciDistributionError::AuthenticationFailure(_) => {
                unauthorized()
            }
            OciDistributionError::ServerError { code: 401 | 403, .. } => unauthorized(),
            OciDistributionError::ServerError { code: 404, .. } => missing(),
            OciDistributionError::RegistryError { envelope, .. } => {
                let code = envelope.errors.first().map(|error| &error.code);
                match code {
                    Some(OciErrorCode::Unauthorized | OciErrorCode::Denied) => unauthorized(),
                    Some(
                        OciErrorCode::ManifestUnknown
                        | OciErrorCode::NameUnknown
                        | OciErrorCode::NotFound
                        | OciErrorCode::BlobUnknown,
                    ) => missing(),
                    _ => Self::Registry { registry: registry(), why: shown(&envelope.to_string()) },
                }
            }
            OciDistributionError::DigestError(DigestError::VerificationError { expected, actual }) => {
                Self::DigestMismatch { expected, actual }
            }
            OciDistributionError::RequestError(error) => {
                Self::from_request(&chain(&error), error.is_connect(), reference)
            }
            other => Self::Registry { registry: registry(), why: shown(&other.to_string()) },
        }
    }

    fn from_request(why: &[String], connecting: bool, reference: &Reference) -> Self {
        let registry = reference.registry().to_owned();
        // The type behind this is private; its words are those of hyper-util.
        if why.iter().any(|why| why.contains("dns error")) {
            return Self::NoSuchHost(reference.host().to_owned());
        }
        let why = shown(why.last().map_or("", String::as_str));
        if connecting { Self::Unreachable { registry, why } } else { Self::Registry { registry, why } }
    }
}

/// An error and its causes, the last of which says most.
fn chain(error: &dyn std::error::Error) -> Vec<String> {
    let mut all = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        all.push(cause.to_string());
        next = cause.source();
    }
    all
}

/// A registry's words, which may be many or of any characters.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect()
}
