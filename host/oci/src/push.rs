//! Storing a component.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use crate::artifact::{Artifact, MANIFEST};
use crate::client::Client;
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::Error;
use crate::reference::Reference;

impl Client {
    /// Stores a component under a tag, and returns the digest by which it can be
    /// pinned. The same bytes, annotations and time give the same digest.
    ///
    /// `annotations` are those of the manifest; their names are in
    /// <https://github.com/opencontainers/image-spec/blob/main/annotations.md>.
    ///
    /// # Errors
    /// [`Error`]; the tag stands for what it stood for before, unless the time was
    /// over.
    pub async fn push(
        &self,
        reference: &Reference,
        bytes: Vec<u8>,
        annotations: &BTreeMap<String, String>,
        created: SystemTime,
        credentials: &Credentials,
    ) -> Result<Digest, Error> {
        if reference.digest().is_some() {
            return Err(Error::NoTag(reference.to_string()));
        }
        let Artifact { layer_digest, config, config_digest, manifest } =
            Artifact::of(&bytes, annotations, created, reference)?;
        let client = self.connect(reference)?;
        let auth = credentials.to_auth();
        let reference = Arc::new(reference.clone());
        let to = reference.clone();
        self.run(reference, async move {
            let wrong = |error| Error::from_library(error, &to);
            let image = to.inner();
            client.store_auth_if_needed(image.resolve_registry(), &auth).await;
            client.push_blob(image, bytes, layer_digest.as_str()).await.map_err(wrong)?;
            client.push_blob(image, config, config_digest.as_str()).await.map_err(wrong)?;
            let digest = Digest::of(&manifest);
            // Last, since a registry takes a manifest only after what it names.
            let kind = MANIFEST.parse().map_err(|_| Error::Client("the media type is no header".to_owned()))?;
            client.push_manifest_raw(image, manifest, kind).await.map_err(wrong)?;
            Ok(digest)
        })
        .await
    }
}
