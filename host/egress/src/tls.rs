//! TLS towards servers: who is trusted, and what is offered.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::{ClientConfig, Resumption};
use rustls::pki_types::{CertificateDer, DnsName, ServerName};
use rustls::{RootCertStore, crypto};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::EgressError;
use crate::target::{Host, Target};

/// Whose certificates are trusted. Certificates are in DER.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrustRoots {
    /// What the system trusts.
    #[default]
    System,
    /// What the system trusts, and these.
    SystemAnd(Vec<CertificateDer<'static>>),
    /// These and nobody else.
    Only(Vec<CertificateDer<'static>>),
}

/// Tells who was trusted when a connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TrustNumber(u64);

/// Makes connections of TLS.
pub(crate) struct Tls {
    connector: TlsConnector,
    number: TrustNumber,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads what is trusted.
    pub(crate) fn new(roots: &TrustRoots) -> Result<Self, rustls::Error> {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let system = |extra: &[CertificateDer<'static>]| {
            Verifier::new_with_extra_roots(extra.to_vec(), Arc::clone(&provider)).map(Arc::new)
        };
        let builder = match roots {
            TrustRoots::System => builder.dangerous().with_custom_certificate_verifier(system(&[])?),
            TrustRoots::SystemAnd(extra) => builder.dangerous().with_custom_certificate_verifier(system(extra)?),
            TrustRoots::Only(only) => {
                let mut store = RootCertStore::empty();
                for certificate in only {
                    store.add(certificate.clone())?;
                }
                builder.with_root_certificates(store)
            }
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // A ticket would tell a server that two tenants are behind one host.
        config.resumption = Resumption::disabled();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = TrustNumber(NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), number })
    }

    /// Tells it from others, whose connections it has no use for.
    pub(crate) fn number(&self) -> TrustNumber {
        self.number
    }

    /// Shakes hands with who should be the target.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, EgressError> {
        let name = match &target.host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => DnsName::try_from(name.to_string())
                .map(ServerName::DnsName)
                .map_err(|error| EgressError::UriInvalid(format!("{name:?} cannot be a name in TLS: {error}")))?,
        };
        self.connector.connect(name, stream).await.map_err(|error: io::Error| EgressError::of_tls(&error))
    }
}

/// Whether the server chose HTTP/2.
pub(crate) fn chose_http2(stream: &TlsStream<TcpStream>) -> bool {
    let (_, session) = stream.get_ref();
    session.alpn_protocol() == Some(b"h2")
}
