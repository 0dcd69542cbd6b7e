//! Fetching a component by its address.

use reqwest::header::ACCEPT_ENCODING;
use reqwest::{Method, StatusCode};
use url::Url;

use crate::client::{Client, Progress};
use crate::digest::Digest;
use crate::error::{self, Error};
use crate::pull::{equal, stream};
use crate::web::{authority, is_loopback};

/// Bytes of a small document.
const LONGEST_DOCUMENT: usize = 64 * 1024;

impl Client {
    /// Fetches what has `digest`, of at most `max_bytes`: over TLS, or in plain text from
    /// this machine.
    ///
    /// # Errors
    /// [`Error`]; what was read is thrown away then.
    pub async fn download(
        &self,
        url: &Url,
        digest: &Digest,
        max_bytes: u64,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<u8>, Error> {
        let (host, shown) = (authority(url), shown(url));
        self.run(&host, async {
            let response = self.get(url, &host).await?;
            if response.status() != StatusCode::OK {
                return Err(Error::Status { url: shown.clone(), status: response.status().as_u16() });
            }
            let longer = || Error::TooLarge { reference: shown.clone(), limit: max_bytes };
            if response.content_length().is_some_and(|length| length > max_bytes) {
                return Err(longer());
            }
            let cut = |cause: &reqwest::Error| Error::Registry {
                registry: host.clone(),
                why: format!("it ended before the file did: {}", error::cause(cause)),
            };
            let (bytes, found) = stream(response, max_bytes, longer, cut, progress).await?;
            equal(digest, &found)?;
            Ok(bytes)
        })
        .await
    }

    /// Fetches a small document that may be missing, which is none.
    ///
    /// # Errors
    /// [`Error`]; the host cannot be reached, or says something longer than 64 KiB.
    pub async fn document(&self, url: &Url) -> Result<Option<Vec<u8>>, Error> {
        let host = authority(url);
        self.run(&host, async {
            let response = self.get(url, &host).await?;
            if response.status() != StatusCode::OK {
                return Ok(None);
            }
            match crate::web::whole(response, LONGEST_DOCUMENT).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(crate::web::Broken::TooLong) => {
                    let why = format!("more than {LONGEST_DOCUMENT} bytes at {}", shown(url));
                    Err(Error::Registry { registry: host.clone(), why })
                }
                Err(crate::web::Broken::Cut(error)) => Err(Error::of_host(&error, &host)),
            }
        })
        .await
    }

    async fn get(&self, url: &Url, host: &str) -> Result<reqwest::Response, Error> {
        let is_private = url.scheme() == "https" || url.scheme() == "http" && is_loopback(url);
        if !is_private {
            return Err(Error::PlainText(shown(url)));
        }
        self.web
            .admit(url, url)
            .map_err(|refusal| Error::Misled { registry: host.to_owned(), why: refusal.to_string() })?;
        // The bytes themselves are wanted, not a packed form of them.
        let request = self.web.request(Method::GET, url.clone()).header(ACCEPT_ENCODING, "identity");
        request.send().await.map_err(|error| Error::of_host(&error, host))
    }
}

/// An address as it may be shown: without a user's name and password.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for addresses that cannot have them.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.into()
}
