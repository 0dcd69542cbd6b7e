//! How registries are reached.

use std::time::Duration;

use crate::error::Error;
use crate::reference::Reference;
use crate::web::{Reach, Web};

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

/// Hears how far something is: bytes that were moved, of how many, where that is known.
pub type Progress<'p> = dyn FnMut(u64, Option<u64>) + Send + 'p;

/// Pulls and pushes. A clone shares the connections of the first.
#[derive(Debug, Clone)]
pub struct Client {
    transport: Transport,
    limit: Duration,
    pub(crate) web: Web,
}

impl Client {
    /// A client whose calls take at most `limit` each. Certificates to trust are read
    /// now, and not again.
    ///
    /// # Errors
    /// [`Error::Client`]: the client of HTTP cannot be made.
    pub fn new(transport: Transport, limit: Duration, reach: Reach) -> Result<Self, Error> {
        Ok(Self { transport, limit, web: Web::new(reach, limit)? })
    }

    /// The same with another way to speak to registries.
    #[must_use]
    pub fn by(&self, transport: Transport) -> Self {
        Self { transport, ..self.clone() }
    }

    /// The scheme of a registry's addresses.
    pub(crate) fn scheme(&self, reference: &Reference) -> &'static str {
        match self.transport {
            Transport::Automatic if reference.is_loopback() => "http",
            Transport::Automatic | Transport::Tls => "https",
            Transport::PlainText => "http",
        }
    }

    /// Runs a call to its end or to the limit.
    pub(crate) async fn run<T>(
        &self,
        registry: &str,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(self.limit, call).await {
            Ok(result) => result,
            Err(_) => Err(Error::TimedOut { registry: registry.to_owned(), limit: self.limit }),
        }
    }
}
