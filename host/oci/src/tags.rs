//! Which tags a repository has.

use reqwest::header::LINK;
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;

use crate::client::Client;
use crate::credentials::Credentials;
use crate::error::Error;
use crate::reference::Reference;
use crate::session::{Action, Session};

/// Bytes of a page of tags.
const LONGEST_PAGE: usize = 1024 * 1024;
/// Pages that are read.
const PAGES: usize = 20;

#[derive(Deserialize)]
struct Page {
    /// Some registries write null for none.
    tags: Option<Vec<String>>,
}

impl Client {
    /// The tags of the repository of a reference.
    ///
    /// Source: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#listing-tags>.
    ///
    /// # Errors
    /// [`Error`]; also where there are more than a repository of components has.
    pub async fn tags(&self, reference: &Reference, credentials: &Credentials) -> Result<Vec<String>, Error> {
        self.run(reference.registry(), async {
            let mut session = Session::new(self, reference, credentials, Action::Pull)?;
            let (mut tags, mut next) = (Vec::new(), Some(session.url("tags/list?n=1000")?));
            for _ in 0..PAGES {
                let Some(url) = next else { return Ok(tags) };
                let response = session.send(Method::GET, &url, |request| request).await?;
                if response.status() != StatusCode::OK {
                    return Err(session.refusal(response).await);
                }
                let following = following(&response);
                let page = session.whole(response, LONGEST_PAGE, "a page of tags").await?;
                let page: Page = serde_json::from_slice(&page)
                    .map_err(|error| session.wrong(format!("no list of tags: {error}")))?;
                tags.extend(page.tags.unwrap_or_default());
                next = following.map(|address| session.named(&address)).transpose()?;
            }
            Err(session.wrong(format!("more than {PAGES} pages of tags")))
        })
        .await
    }
}

/// Where the next page is: `</v2/…>; rel="next"` (RFC 8288).
fn following(response: &Response) -> Option<String> {
    let link = response.headers().get(LINK)?.to_str().ok()?;
    let (address, rest) = link.strip_prefix('<')?.split_once('>')?;
    rest.contains("next").then(|| address.to_owned())
}
