//! How registries are reached.

use std::sync::Arc;
use std::time::Duration;

use oci_client::client::{ClientConfig, ClientProtocol};
use rustls::crypto::CryptoProvider;
use tokio::task::JoinSet;

use crate::error::Error;
use crate::reference::Reference;

/// How long a connection, and a silence within one, may take.
const SILENCE: Duration = Duration::from_secs(30);

/// How a registry is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// Over TLS, or in plain text to a registry on this machine.
    #[default]
    Automatic,
    /// Over TLS, on this machine as well.
    Tls,
    /// In plain text, for everybody on the way to read and to change; digests that
    /// are pinned protect what is pulled, nothing protects credentials.
    PlainText,
}

/// Pulls and pushes. It keeps no connection from one call to the next.
#[derive(Debug, Clone)]
pub struct Client {
    transport: Transport,
    limit: Duration,
}

impl Client {
    /// A client whose calls take at most `limit` each.
    #[must_use]
    pub fn new(transport: Transport, limit: Duration) -> Self {
        Self { transport, limit }
    }

    pub(crate) fn connect(&self, reference: &Reference) -> Result<oci_client::Client, Error> {
        if CryptoProvider::get_default().is_none() {
            // Another thread may have been faster, which is as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let plain = match self.transport {
            Transport::Automatic => reference.is_loopback(),
            Transport::Tls => false,
            Transport::PlainText => true,
        };
        let config = ClientConfig {
            protocol: if plain { ClientProtocol::Http } else { ClientProtocol::Https },
            // An index chooses by platform, and a component has none.
            platform_resolver: None,
            connect_timeout: Some(SILENCE.min(self.limit)),
            read_timeout: Some(SILENCE.min(self.limit)),
            user_agent: concat!("nala/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        oci_client::Client::try_from(config).map_err(|error| Error::Client(error.to_string()))
    }

    /// Runs a call to its end or to the limit. It runs in a task of its own, since
    /// the library panics on some answers, such as a token with a line feed.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        reference: Arc<Reference>,
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        // Ends the task when whoever waits for it has gone.
        let mut tasks = JoinSet::new();
        tasks.spawn(call);
        match tokio::time::timeout(self.limit, tasks.join_next()).await {
            Ok(Some(Ok(result))) => result,
            Ok(Some(Err(error))) => Err(Error::Client(error.to_string())),
            Ok(None) => Err(Error::Client("the call was not run".to_owned())),
            Err(_) => Err(Error::TimedOut { registry: reference.registry().to_owned(), limit: self.limit }),
        }
    }
}
