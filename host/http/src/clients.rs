//! How many connections each client has open, so that none can have them all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bits of an IPv6 address that one client may choose freely (RFC 6177).
const CHOSEN: u32 = 64;

/// The clients of a listener.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection of a client, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct OfClient {
    clients: Clients,
    client: IpAddr,
}

impl Clients {
    /// Counts a connection, unless its client has `most` already.
    pub(crate) fn enter(&self, address: IpAddr, most: usize) -> Option<OfClient> {
        let client = client(address);
        let mut open = self.open();
        let count = open.entry(client).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(OfClient { clients: self.clone(), client })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OfClient {
    fn drop(&mut self) {
        let mut open = self.clients.open();
        if let Some(count) = open.get_mut(&self.client) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

/// Whom an address stands for.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> CHOSEN << CHOSEN).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_number() {
        let clients = Clients::default();
        let enter = |address: &str| clients.enter(address.parse().unwrap(), 2);
        let first = enter("192.0.2.1");
        let second = enter("::ffff:192.0.2.1");
        assert!(first.is_some() && second.is_some() && enter("192.0.2.1").is_none());
        assert!(enter("192.0.2.2").is_some());
        drop(first);
        assert!(enter("192.0.2.1").is_some());
        drop(second);
        assert!(clients.open().is_empty(), "nobody is remembered for longer");
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let clients = Clients::default();
        let _first = clients.enter("2001:db8:0:1::1".parse().unwrap(), 1).unwrap();
        assert!(clients.enter("2001:db8:0:1:ffff::2".parse().unwrap(), 1).is_none());
        assert!(clients.enter("2001:db8:0:2::1".parse().unwrap(), 1).is_some());
    }
}
