//! How names become addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::target::{Host, Target};

/// The addresses of a name, once they are known.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// How names become addresses. Asked once for each connection, never for
/// `localhost` or what is below it, and never for what is an address already.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolved<'a>;
}

/// Asks the system, as every program does: `/etc/hosts`, then DNS.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    places: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        // A lookup takes a thread and cannot be given up, so names that are
        // slow on purpose must not take all the threads of the process.
        Self { places: Arc::new(Semaphore::new(32)) }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolved<'a> {
        Box::pin(async move {
            let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            // What tokio::net::lookup_host does, but for the place, which is
            // held until the thread is free again, not until nobody waits.
            let lookup = tokio::task::spawn_blocking(move || {
                let addresses = (name.as_str(), 0).to_socket_addrs();
                drop(place);
                addresses
            });
            let addresses = lookup.await.map_err(io::Error::other)??;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

/// The addresses of a target's host.
pub(crate) async fn addresses(target: &Target, resolver: &dyn Resolve) -> io::Result<Vec<IpAddr>> {
    match &target.host {
        Host::Address(address) => Ok(vec![*address]),
        // RFC 6761, 6.3: these are this machine, whatever DNS says.
        Host::Name(_) if target.is_localhost() => Ok(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]),
        Host::Name(name) => resolver.resolve(name).await,
    }
}
