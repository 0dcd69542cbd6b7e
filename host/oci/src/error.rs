//! What can go wrong between here and a registry.

use std::time::Duration;

use crate::reference::Reference;
use crate::web::Refusal;

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
    #[error("{actual} came for {expected}: somebody changed it on the way or where it is kept; do not use it")]
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
    /// A file is not where it should be.
    #[error("{url} answers {status}: check the address")]
    Status {
        /// What was asked for.
        url: String,
        /// The status of the answer.
        status: u16,
    },
    /// A file would be fetched in plain text from another machine.
    #[error("{0} would be fetched in plain text: write https, or http for this machine only")]
    PlainText(String),
    /// An answer leads where nothing is asked.
    #[error("{registry} is not followed: {why}")]
    Misled {
        /// Host and port.
        registry: String,
        /// Where it leads.
        why: String,
    },
    /// The host's name is unknown.
    #[error("there is no host {0}: check its name and the network")]
    NoSuchHost(String),
    /// No connection.
    #[error(
        "{registry} cannot be reached: {why}; check the address and the network, and ask for plain HTTP (--plain-http) \
         if the registry has no TLS"
    )]
    Unreachable {
        /// Host and port.
        registry: String,
        /// What the system says.
        why: String,
    },
    /// It took too long.
    #[error("{registry} was not done in {limit:?}: try again, when it or the network is faster")]
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
    /// Reads why a request for `reference` failed.
    pub(crate) fn from_request(error: &reqwest::Error, reference: &Reference) -> Self {
        Self::of_host(error, reference.registry())
    }

    /// Reads why a request to a host, with its port, failed.
    pub(crate) fn of_host(error: &reqwest::Error, host: &str) -> Self {
        let registry = host.to_owned();
        let causes =
            || std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source());
        if let Some(refusal) = causes().find_map(|cause| cause.downcast_ref::<Refusal>()) {
            return Self::Misled { registry, why: refusal.to_string() };
        }
        // The type behind this is private; its words are those of hyper-util.
        if causes().any(|cause| cause.to_string().contains("dns error")) {
            // It may be that of another host, to which this one leads.
            let asked = error.url().and_then(|url| url.host_str()).unwrap_or(host);
            return Self::NoSuchHost(asked.to_owned());
        }
        let why = cause(error);
        if error.is_connect() { Self::Unreachable { registry, why } } else { Self::Registry { registry, why } }
    }

    pub(crate) fn refused(reference: &Reference, refusal: &Refusal) -> Self {
        Self::Misled { registry: reference.registry().to_owned(), why: refusal.to_string() }
    }
}

/// The last of an error's causes, which says most.
pub(crate) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let last = std::iter::successors(Some(error), |error| error.source()).last();
    shown(&last.map(ToString::to_string).unwrap_or_default())
}

/// A registry's words, which may be many or of any characters.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect()
}
