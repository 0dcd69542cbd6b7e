//! The HTTP client and the package index, from the environment or given.
//!
//! Certificates are the platform's (`SSL_CERT_FILE` and `SSL_CERT_DIR` are
//! honoured), proxies come from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and
//! `NO_PROXY`.

use std::fs;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;

use crate::error::Error;
use crate::pip;

/// How the network is reached.
#[derive(Debug, Clone)]
pub struct Network {
    pub(crate) agent: Agent,
    pub(crate) index: Url,
    pub(crate) patience: Patience,
}

/// How often and how long an unwilling server is tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Tries in a row that bring nothing new before giving up.
    pub(crate) fruitless_tries: u32,
    /// The wait before the second try; it doubles each time.
    pub(crate) first_pause: Duration,
}

/// A connection that is not there after this long is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// A server that sends no response head for this long is given up.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// One response body. A slow download goes on with a new request from where
/// this one ended, so this only has to be long beside a connection's set-up.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);

impl Network {
    /// The network as this user has set it up: the index pip is configured for
    /// (`PIP_INDEX_URL`, pip's configuration files, else pypi.org).
    ///
    /// # Errors
    /// [`Error::BadUrl`] when the configured index is no address.
    pub fn from_environment() -> Result<Self, Error> {
        let (url, place) = pip::index_url(&|name| std::env::var_os(name), &|path| fs::read_to_string(path).ok());
        let index = web_address(&url, &format!("it comes from {place}"))?;
        Ok(Self::new(index))
    }

    /// The network with a package index of the caller's choice.
    ///
    /// # Errors
    /// [`Error::BadUrl`] when `index` is no http or https address.
    pub fn with_index(index: &str) -> Result<Self, Error> {
        Ok(Self::new(web_address(index, "it was given as the index")?))
    }

    fn new(mut index: Url) -> Self {
        // Relative links and the names of packages join on to a folder.
        if !index.path().ends_with('/') {
            index.set_path(&format!("{}/", index.path()));
        }
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .timeout_recv_body(Some(BODY_TIMEOUT))
            .user_agent(concat!("nala-host/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
            .build()
            .into();
        Self { agent, index, patience: Patience { fruitless_tries: 4, first_pause: Duration::from_millis(500) } }
    }
}

/// Reads an address that may be fetched.
pub(crate) fn web_address(text: &str, origin: &str) -> Result<Url, Error> {
    let bad = |reason: String| Error::BadUrl { url: text.to_owned(), reason: format!("{reason} ({origin})") };
    let url = Url::parse(text).map_err(|error| bad(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(bad(format!("`{other}` is not supported, use https"))),
    }
}

/// The address as it may be shown: without user name and password.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for addresses that cannot carry credentials.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown_and_odd_schemes_refused() {
        let url = web_address("https://user:secret@h.example/simple", "test").unwrap();
        assert_eq!(shown(&url), "https://h.example/simple");
        let error = web_address("file:///etc", "it comes from X").unwrap_err();
        assert!(error.to_string().contains("it comes from X"), "{error}");
        assert!(Network::with_index("nonsense").is_err());
    }

    #[test]
    fn the_index_is_a_folder() {
        let network = Network::with_index("http://h.example/simple").unwrap();
        assert_eq!(network.index.as_str(), "http://h.example/simple/");
    }
}
