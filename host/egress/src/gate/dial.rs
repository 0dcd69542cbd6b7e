//! How a connection is made, and who keeps it going.

use hyper_util::rt::TokioIo;
use prometheus_client::metrics::gauge::Gauge;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::{Bounds, Egress, Errand, Shared, after};
use crate::admit::Permit;
use crate::error::EgressError;
use crate::judge::judged;
use crate::pool::Connection;
use crate::resolve::addresses;
use crate::target::Scheme;
use crate::tls::chose_http2;
use crate::wire::{Ends, Wire, http1, http2};

impl Egress {
    /// Makes a connection that can be used, within the connect timeout.
    pub(super) async fn connect(&self, errand: &Errand, bounds: Bounds) -> Result<Connection, EgressError> {
        let by = after(bounds.timeouts.connect).min(bounds.deadline);
        let permit = self.admitted(by).await?;
        let shared = &*self.shared;
        let Errand { target, tls, standing, .. } = errand;
        let host = || target.host.to_string();
        let found = timeout_at(by, addresses(target, &*shared.resolver)).await;
        let found = found
            .map_err(|_| EgressError::DnsTimeout { host: host() })?
            .map_err(|error| EgressError::DnsError { host: host(), why: error.to_string() })?;
        let addresses = judged(&found, target, *standing, &self.allow, &shared.config.networks)?;
        let made = async {
            let (stream, address) = crate::connect::connect(target, addresses).await?;
            let head = shared.config.sizes.response_headers;
            let wire = match target.scheme {
                Scheme::Http => {
                    let (sender, driver) = http1(TokioIo::new(stream), head).await?;
                    Wire::One(sender, Ends::new(self.drive(driver, permit)))
                }
                Scheme::Https => {
                    let stream = tls.connect(target, stream).await?;
                    if chose_http2(&stream) {
                        let (sender, driver) = http2(TokioIo::new(stream), head).await?;
                        self.drive(driver, permit);
                        Wire::Two(sender)
                    } else {
                        let (sender, driver) = http1(TokioIo::new(stream), head).await?;
                        Wire::One(sender, Ends::new(self.drive(driver, permit)))
                    }
                }
            };
            Ok(Connection { wire, address: address.ip(), opened: Instant::now() })
        };
        timeout_at(by, made).await.map_err(|_| EgressError::ConnectionTimeout)?
    }

    /// A place for a connection, at the latest by then.
    async fn admitted(&self, by: Instant) -> Result<Permit, EgressError> {
        let Shared { admit, pool, .. } = &*self.shared;
        if let Some(permit) = admit.admit(&self.owner) {
            return Ok(permit);
        }
        let waiting = pool.make_room(&self.owner.tenant);
        let permit = timeout_at(by, admit.wait(&self.owner)).await;
        drop(waiting);
        permit.map_err(|_| EgressError::ConnectionLimitReached)
    }

    /// Lets a connection run by itself. It has an end in any case: no request
    /// begins on it after a while, and each has to end.
    fn drive(&self, driver: impl Future<Output = hyper::Result<()>> + Send + 'static, permit: Permit) -> AbortHandle {
        let Shared { config, metrics, .. } = &*self.shared;
        metrics.connections_opened.inc();
        let open = Open::new(metrics.connections.clone());
        let longest = config.idle.age.saturating_add(config.whole.0);
        let task = tokio::spawn(async move {
            // Both live as long as the connection.
            let _held = (permit, open);
            match timeout_at(after(longest), driver).await {
                // Whoever waits for a response is told, too.
                Ok(Err(error)) => tracing::debug!(target: "nala::outbound", %error, "a connection failed"),
                Ok(Ok(())) => {}
                Err(_) => tracing::debug!(target: "nala::outbound", "a connection had to end"),
            }
        });
        task.abort_handle()
    }
}

/// Counts a connection as open.
struct Open(Gauge);

impl Open {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
