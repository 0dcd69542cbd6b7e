//! Storing a component.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;
use futures::stream;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Body, Method, StatusCode};
use tokio::sync::watch;

use crate::artifact::{Artifact, MANIFEST};
use crate::client::{Client, Progress};
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::Error;
use crate::reference::Reference;
use crate::session::{Action, Session};

/// Bytes that are handed on at a time.
const PART: usize = 64 * 1024;

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
        self.push_showing(reference, bytes, annotations, created, credentials, &mut |_, _| {}).await
    }

    /// The same, with somebody who hears how far it is.
    ///
    /// # Errors
    /// Those of [`Client::push`].
    pub async fn push_showing(
        &self,
        reference: &Reference,
        bytes: Vec<u8>,
        annotations: &BTreeMap<String, String>,
        created: SystemTime,
        credentials: &Credentials,
        progress: &mut Progress<'_>,
    ) -> Result<Digest, Error> {
        let Some(tag) = reference.tag().filter(|_| reference.digest().is_none()) else {
            return Err(Error::NoTag(reference.to_string()));
        };
        let Artifact { layer_digest, config, config_digest, manifest } =
            Artifact::of(&bytes, annotations, created, reference)?;
        self.run(reference.registry(), async {
            let mut session = Session::new(self, reference, credentials, Action::Push)?;
            // First, since what has no body tells at less cost who may not.
            blob(&mut session, config.into(), &config_digest, &mut |_, _| {}).await?;
            blob(&mut session, bytes.into(), &layer_digest, progress).await?;
            // Last, since a registry takes a manifest only after what it names.
            let (url, digest, manifest) =
                (session.url(&format!("manifests/{tag}"))?, Digest::of(&manifest), Bytes::from(manifest));
            let response = session
                .send(Method::PUT, &url, |request| request.header(CONTENT_TYPE, MANIFEST).body(manifest.clone()))
                .await?;
            match response.status() {
                StatusCode::CREATED => Ok(digest),
                _ => Err(session.refusal(response).await),
            }
        })
        .await
    }
}

/// Stores a blob that is not there yet, in one request.
///
/// Source: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#post-then-put>.
async fn blob(
    session: &mut Session<'_>,
    bytes: Bytes,
    digest: &Digest,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let url = session.url(&format!("blobs/{digest}"))?;
    if session.send(Method::HEAD, &url, |request| request).await?.status() == StatusCode::OK {
        return Ok(());
    }
    let url = session.url("blobs/uploads/")?;
    let begun = session.send(Method::POST, &url, |request| request.header(CONTENT_LENGTH, 0)).await?;
    if begun.status() != StatusCode::ACCEPTED {
        return Err(session.refusal(begun).await);
    }
    let location = begun.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| session.wrong("it does not say where to upload to".to_owned()))?;
    let mut url = session.named(location)?;
    url.query_pairs_mut().append_pair("digest", digest.as_str());

    let total = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let (tell, mut told) = watch::channel(0);
    let response = {
        let sending = session.send(Method::PUT, &url, |request| {
            request
                .header(CONTENT_TYPE, "application/octet-stream")
                .header(CONTENT_LENGTH, total)
                .body(parts(bytes.clone(), tell.clone()))
        });
        tokio::pin!(sending);
        loop {
            tokio::select! {
                response = &mut sending => break response?,
                Ok(()) = told.changed() => progress(*told.borrow_and_update(), Some(total)),
            }
        }
    };
    match response.status() {
        StatusCode::CREATED => Ok(()),
        _ => Err(session.refusal(response).await),
    }
}

/// A body that tells how much of it is taken.
fn parts(mut rest: Bytes, tell: watch::Sender<u64>) -> Body {
    let mut taken = 0;
    Body::wrap_stream(stream::iter(std::iter::from_fn(move || {
        let part = rest.split_to(rest.len().min(PART));
        taken += u64::try_from(part.len()).unwrap_or(u64::MAX);
        let _nobody_listens = tell.send(taken);
        (!part.is_empty()).then_some(Ok::<_, std::convert::Infallible>(part))
    })))
}
