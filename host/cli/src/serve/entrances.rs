//! Where requests and the operator come in: listeners, or a link to the host that has
//! started this process.

use std::net::SocketAddr;
use std::sync::Arc;

use nala_http::{DrainReport, HttpConfig, Readiness, Server, Shutdown};
use nala_tenant::ClassName;
use nala_wasm::MAX_COMPONENT_BYTES;
use tokio::task::JoinHandle;

use crate::args::HttpArgs;
use crate::classes;
use crate::deploy::Managed;
use crate::signals::Signals;
use crate::tenancy::Doors;

/// What is open, and not served yet.
pub(super) struct Entrances {
    /// For requests.
    pub(super) server: Server,
    /// For the operator.
    pub(super) admin: Option<Server>,
    /// What tells the host to end.
    pub(super) signals: Signals,
    pub(super) place: Place,
}

/// Where that is, for people.
pub(crate) enum Place {
    /// At addresses.
    Listening { requests: SocketAddr, admin: Option<SocketAddr> },
    /// Behind the host that has started this process.
    Behind(ClassName),
}

impl Entrances {
    /// Opens them.
    ///
    /// # Errors
    /// An address cannot be bound, or the system has no handles left.
    pub(super) async fn open(doors: Doors, http: &HttpArgs) -> anyhow::Result<Self> {
        let for_operator = HttpConfig { max_body_bytes: MAX_COMPONENT_BYTES, ..HttpConfig::default() };
        match doors {
            Doors::Listen { requests, admin } => {
                let signals = Signals::take()?;
                let server = Server::bind(requests, http.config()).await?;
                let admin = match admin {
                    None => None,
                    Some(address) => Some(Server::bind(address, for_operator).await.map_err(|error| {
                        anyhow::Error::new(error).context("the admin listener (--admin-listen) cannot be opened")
                    })?),
                };
                let place = Place::Listening {
                    requests: server.local_addr().unwrap_or(requests),
                    admin: admin.as_ref().and_then(Server::local_addr),
                };
                Ok(Self { server, admin, signals, place })
            }
            Doors::Link { link, class } => {
                let (doors, gone) = link.serve()?;
                // The host in front of it says when: signals for a whole group of processes
                // would end this one before what that one still hands on.
                let signals = Signals::instead(gone)?;
                let server = Server::behind(doors.requests, classes::behind(http.config()))
                    // The host in front logs each of them.
                    .with_access_log(tracing::Level::DEBUG);
                let admin = Some(Server::behind(doors.operator, classes::behind(for_operator)));
                Ok(Self { server, admin, signals, place: Place::Behind(class.name) })
            }
        }
    }
}

/// The operator's server.
pub(super) struct Admin {
    shutdown: Shutdown,
    task: JoinHandle<DrainReport>,
}

impl Admin {
    pub(super) fn start(server: Server, handler: &Arc<Managed>, readiness: &Readiness) -> Self {
        let server = server.with_readiness(readiness.clone()).with_access_log(tracing::Level::DEBUG);
        let shutdown = Shutdown::new();
        let task = tokio::spawn(server.serve(Arc::clone(handler), shutdown.signal()));
        Self { shutdown, task }
    }

    /// Ends it, the last of all, so that probes see the drain.
    pub(super) async fn stop(self) {
        self.shutdown.cut();
        let _ended = self.task.await;
    }
}
