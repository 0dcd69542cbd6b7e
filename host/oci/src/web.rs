//! Requests whose answers are bounded, and that go nowhere else than they may.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response};
use rustls::crypto::CryptoProvider;
use url::{Host, Url};

use crate::error::Error;

/// How long a connection, and a silence within one, may take.
const SILENCE: Duration = Duration::from_secs(30);
/// How often one answer may lead to another address.
const REDIRECTS: usize = 5;

/// Whom a client asks.
#[derive(Debug, Clone, Default)]
pub enum Reach {
    /// Whomever this machine reaches, through the proxies of its environment.
    #[default]
    Anybody,
    /// Those on a list only, for whoever asks for others. No proxy is used.
    Listed(Listed),
}

/// Registries that may be asked, wherever they are.
///
/// A registry sends on to others, for tokens and for what it keeps elsewhere. These are
/// asked over TLS, and at public addresses only.
#[derive(Clone)]
pub struct Listed {
    /// Host, and port where it is another than that of the scheme.
    registries: BTreeSet<String>,
    is_public: fn(IpAddr) -> bool,
}

impl Listed {
    /// The list of `registries`, each a host with a port if it has one of its own.
    /// `is_public` says which addresses everybody on the internet could reach.
    #[must_use]
    pub fn new<'r>(registries: impl IntoIterator<Item = &'r str>, is_public: fn(IpAddr) -> bool) -> Self {
        let usual = |text: &str| {
            let url = Url::parse(&format!("https://{text}/")).ok();
            url.map_or_else(|| text.to_owned(), |url| authority(&url))
        };
        Self { registries: registries.into_iter().map(usual).collect(), is_public }
    }

    /// Whether a registry, as a reference names it, is on the list.
    #[must_use]
    pub fn has(&self, registry: &str) -> bool {
        Url::parse(&format!("https://{registry}/")).is_ok_and(|url| self.registries.contains(&authority(&url)))
    }

    fn names_host(&self, host: &str) -> bool {
        self.registries.iter().any(|registry| registry_host(registry) == host)
    }

    fn admit(&self, url: &Url) -> Result<(), Refusal> {
        if self.registries.contains(&authority(url)) {
            return Ok(());
        }
        match url.host() {
            // Its addresses are not judged, so it is asked at the port that is listed.
            Some(Host::Domain(host)) if self.names_host(host) => Err(Refusal::Port(authority(url))),
            Some(Host::Ipv4(address)) if !(self.is_public)(address.into()) => Err(Refusal::Private(authority(url))),
            Some(Host::Ipv6(address)) if !(self.is_public)(address.into()) => Err(Refusal::Private(authority(url))),
            _ if url.scheme() != "https" => Err(Refusal::PlainText(authority(url))),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listed").field(&self.registries).finish()
    }
}

/// Why an address is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it leads to {0} in plain text")]
    PlainText(String),
    #[error("it leads to {0} by `{1}`")]
    Scheme(String, String),
    #[error("it leads to {0}, which is no public address and not on the list of registries")]
    Private(String),
    #[error("it leads to {0}, and that registry is listed with another port")]
    Port(String),
    #[error("it leads on more than {REDIRECTS} times")]
    TooOften,
}

/// Host, and port where it is another than that of the scheme.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(443) | None => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
    }
}

fn registry_host(registry: &str) -> &str {
    match registry.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => registry,
    }
}

/// Whether an address is one of this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(host)) => host == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether `url` may be asked because `first` was: what begins over TLS stays there, and
/// plain text goes to where it was asked for.
fn follows(first: &Url, url: &Url) -> Result<(), Refusal> {
    let same = first.scheme() == "http" && authority(first) == authority(url);
    let both_here = first.scheme() == "http" && is_loopback(first) && is_loopback(url);
    match url.scheme() {
        "https" => Ok(()),
        "http" if same || both_here => Ok(()),
        "http" => Err(Refusal::PlainText(authority(url))),
        other => Err(Refusal::Scheme(authority(url), other.to_owned())),
    }
}

/// The client of HTTP, and what it may ask.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    http: reqwest::Client,
    reach: Arc<Reach>,
}

impl Web {
    /// Certificates to trust are read now.
    pub(crate) fn new(reach: Reach, limit: Duration) -> Result<Self, Error> {
        if CryptoProvider::get_default().is_none() {
            // Another thread may have been faster, which is as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let reach = Arc::new(reach);
        let judge = Arc::clone(&reach);
        let redirects = Policy::custom(move |attempt| {
            let admitted = match attempt.previous() {
                previous if previous.len() > REDIRECTS => Err(Refusal::TooOften),
                [first, ..] => admit(&judge, first, attempt.url()),
                [] => Ok(()),
            };
            match admitted {
                Ok(()) => attempt.follow(),
                Err(refusal) => attempt.error(refusal),
            }
        });
        let mut builder = reqwest::Client::builder()
            .connect_timeout(SILENCE.min(limit))
            .read_timeout(SILENCE.min(limit))
            .user_agent(concat!("nala/", env!("CARGO_PKG_VERSION")))
            .referer(false)
            .redirect(redirects);
        if let Reach::Listed(listed) = &*reach {
            // A proxy would choose the addresses.
            builder = builder.no_proxy().dns_resolver(Judged(listed.clone()));
        }
        let http = builder.build().map_err(|error| Error::Client(error.to_string()))?;
        Ok(Self { http, reach })
    }

    /// Whether `url` may be asked on the way that began at `first`.
    pub(crate) fn admit(&self, first: &Url, url: &Url) -> Result<(), Refusal> {
        admit(&self.reach, first, url)
    }

    pub(crate) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url)
    }
}

fn admit(reach: &Reach, first: &Url, url: &Url) -> Result<(), Refusal> {
    follows(first, url)?;
    match reach {
        Reach::Anybody => Ok(()),
        Reach::Listed(listed) => listed.admit(url),
    }
}

/// Finds the addresses of names, those of listed registries as they are, and of others the
/// public ones. What is found is what is connected to.
struct Judged(Listed);

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let listed = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_ascii_lowercase();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let is_trusted = listed.names_host(&host);
            let kept: Vec<_> = found.filter(|found| is_trusted || (listed.is_public)(found.ip())).collect();
            if kept.is_empty() {
                return Err(Refusal::Private(host).into());
            }
            let addresses: Addrs = Box::new(kept.into_iter());
            Ok(addresses)
        })
    }
}

/// Why a body was not read to its end.
pub(crate) enum Broken {
    /// It is longer than it may be.
    TooLong,
    /// The connection failed.
    Cut(reqwest::Error),
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn whole(mut response: Response, limit: usize) -> Result<Vec<u8>, Broken> {
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.map_err(Broken::Cut)? {
        if bytes.len().saturating_add(part.len()) > limit {
            return Err(Broken::TooLong);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn what_begins_over_tls_stays_there_and_plain_text_stays_where_it_was_asked_for() {
        for (first, next, follows_on) in [
            ("https://a.example/x", "https://b.example/y", true),
            ("https://a.example/x", "http://a.example/x", false),
            ("https://a.example/x", "http://127.0.0.1/x", false),
            ("http://127.0.0.1:5000/x", "http://127.0.0.1:5000/y", true),
            ("http://127.0.0.1:5000/x", "http://localhost:5001/y", true),
            ("http://127.0.0.1:5000/x", "http://a.example/y", false),
            ("http://127.0.0.1:5000/x", "https://a.example/y", true),
            ("http://a.example/x", "http://a.example/y", true),
            ("http://a.example/x", "http://a.example:81/y", false),
            ("http://a.example/x", "http://127.0.0.1/y", false),
            ("http://a.example/x", "file:///etc/passwd", false),
            ("https://a.example/x", "ftp://a.example/x", false),
        ] {
            assert_eq!(follows(&url(first), &url(next)).is_ok(), follows_on, "{first} to {next}");
        }
    }

    #[test]
    fn beside_the_list_only_public_addresses_are_asked_over_tls() {
        let is_public = |address: IpAddr| address == IpAddr::from([8, 8, 8, 8]);
        let listed = Listed::new(["Registry.example", "10.0.0.5:5000", "127.0.0.1:5000", "r.example:443"], is_public);
        for (registry, has) in [
            ("registry.example", true),
            ("registry.example:443", true),
            ("r.example", true),
            ("registry.example:5000", false),
            ("10.0.0.5:5000", true),
            ("10.0.0.5", false),
            ("evil.registry.example", false),
        ] {
            assert_eq!(listed.has(registry), has, "{registry}");
        }
        for (text, admitted) in [
            ("https://registry.example/v2/", true),
            ("http://127.0.0.1:5000/v2/", true),
            ("http://10.0.0.5:5000/v2/", true),
            ("https://storage.example/x", true),
            ("https://8.8.8.8/x", true),
            ("http://storage.example/x", false),
            ("http://8.8.8.8/x", false),
            ("https://10.0.0.5:22/x", false),
            ("https://169.254.169.254/latest", false),
            ("https://[::1]/x", false),
            // Its addresses are not judged, so another port is refused here.
            ("https://registry.example:22/x", false),
        ] {
            assert_eq!(listed.admit(&url(text)).is_ok(), admitted, "{text}");
        }
    }

    #[tokio::test]
    async fn names_of_this_machine_are_found_for_what_is_listed_only() {
        let names = |listed: &[&str]| Judged(Listed::new(listed.iter().copied(), |address| !address.is_loopback()));
        let name = || "LOCALHOST".parse::<Name>().unwrap();
        assert!(names(&["localhost:5000"]).resolve(name()).await.is_ok_and(|mut found| found.next().is_some()));
        let error = names(&["registry.example"]).resolve(name()).await.err().unwrap();
        assert_eq!(error.downcast_ref(), Some(&Refusal::Private("localhost".to_owned())));
    }
}
