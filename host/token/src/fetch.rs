//! Gets the keys of an issuer.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use nala_egress::{Egress, EgressError, Timeouts};
use serde::Deserialize;
use url::Url;

use crate::issuer::{Issuer, Keys};
use crate::keys::{self, SigningKey};

/// How long an answer may take, from the beginning to the end.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long one may be, in bytes.
const LONGEST: usize = 1 << 20;

/// Why the keys of an issuer are not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// It is not asked, or gave no answer.
    #[error("{url} cannot be asked: {source}")]
    Egress {
        /// Who was asked.
        url: String,
        /// Why not.
        source: EgressError,
    },
    /// It gave another answer than what was asked for.
    #[error("{url} {why}")]
    Answer {
        /// Who was asked.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// Nowhere is said where the keys are.
    #[error("{issuer} says nowhere where its keys are ({why}); name their address as `keys`")]
    NotFound {
        /// The issuer.
        issuer: String,
        /// What the last answer was.
        why: String,
    },
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// Reads the keys.
pub(crate) async fn keys(issuer: &Issuer, egress: Option<&Egress>) -> Result<Vec<SigningKey>, FetchError> {
    match (&issuer.keys, egress) {
        (Keys::File(path), _) => {
            let wrong = |why: String| FetchError::File { path: path.clone(), why };
            let text = tokio::fs::read(path).await.map_err(|error| wrong(error.to_string()))?;
            keys::read(&text).map_err(wrong)
        }
        (Keys::At(url), Some(egress)) => at(url, egress).await,
        (Keys::Discovered, Some(egress)) => at(&discovered(issuer, egress).await?, egress).await,
        (_, None) => {
            Err(FetchError::Answer { url: issuer.issuer.clone(), why: "cannot be asked from this process".to_owned() })
        }
    }
}

async fn at(url: &Url, egress: &Egress) -> Result<Vec<SigningKey>, FetchError> {
    let body = get(url.as_str(), egress).await?;
    keys::read(&body).map_err(|why| FetchError::Answer { url: url.to_string(), why: format!("has no keys: {why}") })
}

/// Where an issuer's metadata says that its keys are.
async fn discovered(issuer: &Issuer, egress: &Egress) -> Result<Url, FetchError> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: Url,
    }
    let mut last = "it is no address".to_owned();
    for place in places(&issuer.issuer) {
        let body = match get(&place, egress).await {
            Ok(body) => body,
            Err(error) => {
                last = error.to_string();
                continue;
            }
        };
        match serde_json::from_slice::<Metadata>(&body) {
            // Another issuer's metadata would have its keys count for this one (RFC 8414,
            // section 3.3).
            Ok(metadata) if metadata.issuer == issuer.issuer => return Ok(metadata.jwks_uri),
            Ok(metadata) => last = format!("{place} is of {}", metadata.issuer),
            Err(error) => last = format!("{place} is no metadata: {error}"),
        }
    }
    Err(FetchError::NotFound { issuer: issuer.issuer.clone(), why: last })
}

/// Where metadata may be (RFC 8414, sections 3 and 5).
fn places(issuer: &str) -> Vec<String> {
    let Ok(url) = Url::parse(issuer) else { return Vec::new() };
    let (origin, path) = (url.origin().ascii_serialization(), url.path().trim_end_matches('/'));
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    places.dedup();
    places
}

async fn get(url: &str, egress: &Egress) -> Result<Bytes, FetchError> {
    let wrong = |why: String| FetchError::Answer { url: url.to_owned(), why };
    let request = Request::get(url).header(ACCEPT, "application/json").body(Full::new(Bytes::new()));
    let request = request.map_err(|error| wrong(error.to_string()))?;
    let whole = async {
        let response = egress.send(request, Timeouts::UNSET).await;
        let response = response.map_err(|source| FetchError::Egress { url: url.to_owned(), source })?;
        if response.status() != StatusCode::OK {
            return Err(wrong(format!("answered with {}", response.status())));
        }
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        Ok(body.map_err(|error| wrong(format!("has no answer that can be read: {error}")))?.to_bytes())
    };
    tokio::time::timeout(PATIENCE, whole).await.map_err(|_| wrong(format!("gave no answer in {PATIENCE:?}")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_it_may_be() {
        assert_eq!(
            places("https://a.example"),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places("https://a.example:8/realms/x/"),
            [
                "https://a.example:8/.well-known/oauth-authorization-server/realms/x",
                "https://a.example:8/realms/x/.well-known/openid-configuration",
                "https://a.example:8/.well-known/openid-configuration/realms/x",
            ]
        );
    }
}
