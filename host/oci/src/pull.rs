//! Fetching a component.

use std::sync::Arc;

use futures::TryStreamExt;
use oci_client::errors::DigestError;

use crate::artifact::{self, MANIFEST};
use crate::client::Client;
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::{Error, shown};
use crate::reference::Reference;

/// A component that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The component.
    pub bytes: Vec<u8>,
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
        let client = self.connect(reference)?;
        let auth = credentials.to_auth();
        let reference = Arc::new(reference.clone());
        let of = reference.clone();
        self.run(reference, async move {
            let (manifest, _) = client
                .pull_manifest_raw(of.inner(), &auth, &[MANIFEST])
                .await
                .map_err(|error| Error::from_library(error, &of))?;
            let digest = Digest::of(&manifest);
            if let Some(expected) = of.digest() {
                equal(expected, &digest)?;
            }
            let (component, size) = artifact::layer(&manifest, &of)?;
            if size > max_bytes {
                return Err(Error::TooLarge { reference: of.to_string(), limit: max_bytes });
            }
            let bytes = layer(&client, &of, &component, size).await?;
            artifact::world(&bytes, &of)?;
            Ok(Pulled { bytes, digest, component })
        })
        .await
    }
}

/// Fetches the layer. Only the registry itself is asked for it: a manifest may
/// name other addresses, which would be asked from here.
async fn layer(
    client: &oci_client::Client,
    reference: &Reference,
    digest: &Digest,
    size: u64,
) -> Result<Vec<u8>, Error> {
    let mut stream = client
        .pull_blob_stream(reference.inner(), digest.as_str())
        .await
        .map_err(|error| Error::from_library(error, reference))?
        .stream;
    // Not made as large as the manifest says before that much has come.
    let mut bytes = Vec::new();
    while let Some(part) = stream.try_next().await.map_err(|error| broken(&error, reference))? {
        let total = u64::try_from(bytes.len().saturating_add(part.len())).unwrap_or(u64::MAX);
        if total > size {
            let why = format!("more than the {size} bytes that its manifest says");
            return Err(Error::Registry { registry: reference.registry().to_owned(), why });
        }
        bytes.extend_from_slice(&part);
    }
    equal(digest, &Digest::of(&bytes))?;
    Ok(bytes)
}

fn equal(expected: &Digest, actual: &Digest) -> Result<(), Error> {
    if expected == actual {
        return Ok(());
    }
    Err(Error::DigestMismatch { expected: expected.to_string(), actual: actual.to_string() })
}

/// Reads what ended the stream early.
fn broken(error: &std::io::Error, reference: &Reference) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<DigestError>()) {
        Some(DigestError::VerificationError { expected, actual }) => {
            Error::DigestMismatch { expected: expected.clone(), actual: actual.clone() }
        }
        _ => Error::Registry {
            registry: reference.registry().to_owned(),
            why: format!("it ended before the component did: {}", shown(&error.to_string())),
        },
    }
}
