//! Components that are named instead of sent: pulled out of registries that the operator
//! lists.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::StatusCode;
use nala_http::HostError;
use nala_oci::{Client, Credentials, Error, Listed, Reach, Reference, Transport};
use nala_wasm::MAX_COMPONENT_BYTES;
use serde::Deserialize;
use tokio::sync::Semaphore;

/// Components that are pulled at a time; each is in memory as a whole.
const AT_A_TIME: usize = 4;
/// How long one may take, and how long others wait for their turn.
const LIMIT: Duration = Duration::from_secs(120);
/// After how long somebody who found no turn may come back.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What begins a reference; it may be left out.
const SCHEME: &str = "oci://";

/// The registries that the operator lists, and what is shown to each.
///
/// All of it is read when the host starts, since later it may read neither credentials nor
/// certificates.
pub(crate) struct Registries {
    client: Client,
    listed: Listed,
    credentials: BTreeMap<String, Credentials>,
    turns: Arc<Semaphore>,
}

impl Registries {
    /// None, where none is listed.
    ///
    /// # Errors
    /// A name is none, or there are credentials for it that cannot be used.
    pub(crate) fn open(names: &[String]) -> anyhow::Result<Option<Self>> {
        if names.is_empty() {
            return Ok(None);
        }
        let mut credentials = BTreeMap::new();
        for name in names {
            // Credentials are a registry's, whatever is asked of it.
            let any = Reference::parse(&format!("{SCHEME}{name}/any"));
            let own = any.map_err(anyhow::Error::new).and_then(|any| Ok(Credentials::of_this_process(&any)?));
            let own = own.with_context(|| format!("`registries` under [admin] names {name}"))?;
            credentials.insert(name.clone(), own);
        }
        let is_public = |address| nala_egress::special(address).is_none();
        let listed = Listed::new(names.iter().map(String::as_str), is_public);
        let client = Client::new(Transport::Automatic, LIMIT, Reach::Listed(listed.clone()))?;
        Ok(Some(Self { client, listed, credentials, turns: Arc::new(Semaphore::new(AT_A_TIME)) }))
    }

    /// Fetches a component of at most `most` bytes.
    async fn pull(&self, reference: Reference, most: u64) -> Result<Bytes, HostError> {
        let registry = reference.registry();
        if !self.listed.has(registry) {
            return Err(not_listed(registry));
        }
        let credentials = self.credentials.get(registry).cloned().unwrap_or(Credentials::Anonymous);
        let turn = tokio::time::timeout(LIMIT, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            let text = "Other components are being pulled; try again shortly.";
            return Err(HostError::new(StatusCode::TOO_MANY_REQUESTS, "busy", text).retry_after(RETRY_AFTER));
        };
        let (client, most) = (self.client.clone(), most.min(MAX_COMPONENT_BYTES));
        let runtime = tokio::runtime::Handle::current();
        // What comes is hashed and read through, which would keep others from a worker.
        let work = tokio::task::spawn_blocking(move || {
            let pulled = runtime.block_on(client.pull(&reference, most, &credentials));
            drop(turn);
            pulled
        });
        match work.await {
            Ok(pulled) => pulled.map(|pulled| pulled.bytes.into()).map_err(|error| refused(&error)),
            Err(_ended) => {
                let text = "The work ended unexpectedly.";
                Err(HostError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", text))
            }
        }
    }
}

/// A component that is named instead of sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    oci: String,
}

/// Fetches what a body names, of at most `most` bytes.
///
/// # Errors
/// It names nothing that may be had, or it cannot be had.
pub(super) async fn named(registries: Option<&Registries>, body: &[u8], most: u64) -> Result<Bytes, HostError> {
    let reference = reference(body)?;
    match registries {
        Some(registries) => registries.pull(reference, most).await,
        None => Err(not_listed(reference.registry())),
    }
}

/// Reads what a body names.
fn reference(body: &[u8]) -> Result<Reference, HostError> {
    let wrong = |code: &'static str, text: String| HostError::new(StatusCode::BAD_REQUEST, code, text);
    let shape = r#"{"oci": "REGISTRY/REPOSITORY@sha256:…"}"#;
    let Named { oci } = serde_json::from_slice(body).map_err(|error| {
        wrong("invalid_request", format!("The body names no component: {error}; it looks like {shape}."))
    })?;
    let text = if oci.starts_with(SCHEME) { oci } else { format!("{SCHEME}{oci}") };
    let reference = Reference::parse(&text).map_err(|error| wrong("invalid_request", format!("The body: {error}.")))?;
    if reference.digest().is_none() {
        let text = format!(
            "{reference} may be another component tomorrow, since a tag can be moved: name its digest, as `nala-host \
             pull {reference}` prints it."
        );
        return Err(wrong("not_pinned", text));
    }
    Ok(reference)
}

fn not_listed(registry: &str) -> HostError {
    let text = format!(
        "Nothing is pulled from {registry}: add it to `registries` under [admin] in the host's nala.toml, and start the \
         host again."
    );
    HostError::new(StatusCode::FORBIDDEN, "registry_not_listed", text)
}

/// Why a component was not pulled.
fn refused(error: &Error) -> HostError {
    let (status, code) = match error {
        Error::NotFound(_) => (StatusCode::UNPROCESSABLE_ENTITY, "not_in_registry"),
        Error::WrongMediaType { .. } | Error::NoComponent { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "no_component"),
        Error::DigestMismatch { .. } => (StatusCode::BAD_GATEWAY, "digest_mismatch"),
        Error::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "component_too_large"),
        Error::TimedOut { .. } => (StatusCode::GATEWAY_TIMEOUT, "registry_timeout"),
        Error::Unauthorized { .. } => (StatusCode::BAD_GATEWAY, "registry_refused"),
        _ => (StatusCode::BAD_GATEWAY, "registry_failed"),
    };
    HostError::new(status, code, format!("{error}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(body: &str) -> (u16, String) {
        let error = reference(body.as_bytes()).unwrap_err();
        (error.status().as_u16(), error.code().to_owned())
    }

    #[test]
    fn only_what_is_pinned_is_named() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for good in [format!("r.example/shop@{digest}"), format!("oci://r.example/shop:1@{digest}")] {
            let body = serde_json::json!({ "oci": good }).to_string();
            assert_eq!(reference(body.as_bytes()).unwrap().registry(), "r.example");
        }
        assert_eq!(code(r#"{"oci":"r.example/shop:1"}"#), (400, "not_pinned".to_owned()));
        for wrong in ["", "[]", r#"{"oci":"shop"}"#, r#"{"oci":"r.example/shop@sha256:1"}"#, r#"{"oci":"x","y":1}"#] {
            assert_eq!(code(wrong), (400, "invalid_request".to_owned()), "{wrong}");
        }
    }

    #[tokio::test]
    async fn where_nothing_is_listed_nothing_is_pulled() {
        assert!(Registries::open(&[]).unwrap().is_none());
        let body = format!(r#"{{"oci":"127.0.0.1:1/shop@sha256:{}"}}"#, "0".repeat(64));
        let registries = Registries::open(&["r.example".to_owned()]).unwrap();
        for registries in [None, registries.as_ref()] {
            let error = named(registries, body.as_bytes(), 1).await.unwrap_err();
            assert_eq!((error.status().as_u16(), error.code()), (403, "registry_not_listed"));
        }
    }
}
