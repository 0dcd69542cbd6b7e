//! Fetching a component.

use reqwest::header::{ACCEPT, ACCEPT_ENCODING};
use reqwest::{Method, Response, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::artifact::{self, MANIFEST};
use crate::client::{Client, Progress};
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::Error;
use crate::reference::Reference;
use crate::session::{Action, Session};

/// Bytes of a manifest that is read: registries have to take 4 MiB.
///
/// Source: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-manifests>.
const LONGEST_MANIFEST: usize = 4 * 1024 * 1024;

/// A component that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The component.
    pub bytes: Vec<u8>,
    /// Its manifest, which has `digest` and names `component`.
    pub manifest: Vec<u8>,
    /// The digest of its manifest: what was pinned, or what the tag stands for.
    /// [`Reference::pinned`] makes a reference of it that stays the same.
    pub digest: Digest,
    /// The digest of the component itself.
    pub component: Digest,
}

impl Client {
    /// Fetches a component of at most `max_bytes`.
    ///
    /// # Errors
    /// [`Error`]; what was read is thrown away then.
    pub async fn pull(
        &self,
        reference: &Reference,
        max_bytes: u64,
        credentials: &Credentials,
    ) -> Result<Pulled, Error> {
        self.pull_showing(reference, max_bytes, credentials, &mut |_, _| {}).await
    }

    /// The same, with somebody who hears how far it is.
    ///
    /// # Errors
    /// Those of [`Client::pull`].
    pub async fn pull_showing(
        &self,
        reference: &Reference,
        max_bytes: u64,
        credentials: &Credentials,
        progress: &mut Progress<'_>,
    ) -> Result<Pulled, Error> {
        self.run(reference.registry(), async {
            let mut session = Session::new(self, reference, credentials, Action::Pull)?;
            let (manifest, digest) = manifest(&mut session, reference).await?;
            let (component, size) = artifact::layer(&manifest, reference)?;
            if size > max_bytes {
                return Err(Error::TooLarge { reference: reference.to_string(), limit: max_bytes });
            }
            let bytes = layer(&mut session, &component, size, progress).await?;
            artifact::world(&bytes, reference)?;
            Ok(Pulled { bytes, manifest, digest, component })
        })
        .await
    }

    /// What a reference stands for now, by its digest.
    ///
    /// # Errors
    /// [`Error`]; it is not there, or no component.
    pub async fn resolve(&self, reference: &Reference, credentials: &Credentials) -> Result<Digest, Error> {
        self.run(reference.registry(), async {
            let mut session = Session::new(self, reference, credentials, Action::Pull)?;
            let (manifest, digest) = manifest(&mut session, reference).await?;
            artifact::layer(&manifest, reference)?;
            Ok(digest)
        })
        .await
    }
}

/// The digest of the component that a manifest names.
///
/// # Errors
/// It is no manifest of a component.
pub fn component_of(manifest: &[u8], reference: &Reference) -> Result<Digest, Error> {
    artifact::layer(manifest, reference).map(|(digest, _)| digest)
}

/// Fetches the manifest, which has the digest that is pinned.
async fn manifest(session: &mut Session<'_>, reference: &Reference) -> Result<(Vec<u8>, Digest), Error> {
    let named = reference.digest().map(Digest::as_str).or_else(|| reference.tag()).unwrap_or_default();
    let url = session.url(&format!("manifests/{named}"))?;
    let response = session.send(Method::GET, &url, |request| request.header(ACCEPT, MANIFEST)).await?;
    if response.status() != StatusCode::OK {
        return Err(session.refusal(response).await);
    }
    let manifest = session.whole(response, LONGEST_MANIFEST, "a manifest").await?;
    let digest = Digest::of(&manifest);
    if let Some(expected) = reference.digest() {
        equal(expected, &digest)?;
    }
    Ok((manifest, digest))
}

/// Fetches the layer. Only the registry itself is asked for it, though it may lead
/// elsewhere: a manifest may name other addresses, which would be asked from here.
async fn layer(
    session: &mut Session<'_>,
    digest: &Digest,
    size: u64,
    progress: &mut Progress<'_>,
) -> Result<Vec<u8>, Error> {
    let url = session.url(&format!("blobs/{digest}"))?;
    // The bytes themselves are wanted, not a packed form of them.
    let response = session.send(Method::GET, &url, |request| request.header(ACCEPT_ENCODING, "identity")).await?;
    if response.status() != StatusCode::OK {
        return Err(session.refusal(response).await);
    }
    let longer = || session.wrong(format!("more than the {size} bytes that its manifest says"));
    let cut = |error: &reqwest::Error| {
        session.wrong(format!("it ended before the component did: {}", crate::error::cause(error)))
    };
    let (bytes, found) = stream(response, size, longer, cut, progress).await?;
    equal(digest, &found)?;
    Ok(bytes)
}

/// Reads a body of at most `limit` bytes, and its digest.
pub(crate) async fn stream(
    mut response: Response,
    limit: u64,
    longer: impl Fn() -> Error,
    cut: impl Fn(&reqwest::Error) -> Error,
    progress: &mut Progress<'_>,
) -> Result<(Vec<u8>, Digest), Error> {
    let total = response.content_length();
    // Not made as large as somebody says before that much has come.
    let (mut bytes, mut hasher) = (Vec::new(), Sha256::new());
    progress(0, total);
    while let Some(part) = response.chunk().await.map_err(|error| cut(&error))? {
        let reached = u64::try_from(bytes.len().saturating_add(part.len())).unwrap_or(u64::MAX);
        if reached > limit {
            return Err(longer());
        }
        hasher.update(&part);
        bytes.extend_from_slice(&part);
        progress(reached, total);
    }
    Ok((bytes, Digest::finish(hasher)))
}

pub(crate) fn equal(expected: &Digest, actual: &Digest) -> Result<(), Error> {
    if expected == actual {
        return Ok(());
    }
    Err(Error::DigestMismatch { expected: expected.to_string(), actual: actual.to_string() })
}
