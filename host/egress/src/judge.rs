//! Which of the addresses of a name may be connected to.

use std::net::{IpAddr, SocketAddr};

use crate::allow::AllowList;
use crate::error::{EgressError, Prohibited};
use crate::networks::Networks;
use crate::range::{Special, canonical, range};
use crate::target::Target;

/// How many addresses of a name are tried. A name with more is a way to make
/// the host scan.
pub(crate) const MAX_ADDRESSES: usize = 8;

/// What is known of who is at a target, wherever its name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing: whoever owns the name decides, and may do harm.
    Unknown,
    /// The operator has named the origin for a credential, and TLS finds out who is
    /// there before anything is sent. So what DNS says can lead nobody astray, and
    /// the name alone grants the addresses of networks of one's own.
    Proven,
}

impl Standing {
    /// Whether a kind of address needs no grant. Metadata services and the like are
    /// never what an operator means by a name.
    fn grants(self, kind: Special) -> bool {
        self == Self::Proven && matches!(kind, Special::Loopback | Special::Private | Special::Shared)
    }
}

/// Whether one address may be connected to for a target that the list allows.
pub(crate) fn judge(
    address: IpAddr,
    target: &Target,
    standing: Standing,
    allow: &AllowList,
    networks: &Networks,
) -> Result<(), Prohibited> {
    let address = canonical(address);
    if networks.refuses(address) {
        return Err(Prohibited::ByOperator);
    }
    match range(address) {
        None => Ok(()),
        Some(_) if allow.grants(target, address) || networks.grants(address) => Ok(()),
        Some(range) if standing.grants(range.kind) => Ok(()),
        Some(range) => Err(Prohibited::Special(range.kind)),
    }
}

/// Those addresses of a target that may be connected to, in the order in which
/// they are tried: the families take turns, IPv6 first (RFC 8305, section 4).
pub(crate) fn judged(
    addresses: &[IpAddr],
    target: &Target,
    standing: Standing,
    allow: &AllowList,
    networks: &Networks,
) -> Result<Vec<SocketAddr>, EgressError> {
    let mut families: [Vec<IpAddr>; 2] = Default::default();
    let [six, four] = &mut families;
    let mut refused = None;
    for address in addresses.iter().copied().map(canonical) {
        match judge(address, target, standing, allow, networks) {
            Ok(()) if six.contains(&address) || four.contains(&address) => {}
            Ok(()) if address.is_ipv6() => six.push(address),
            Ok(()) => four.push(address),
            Err(why) => {
                refused.get_or_insert((address, why));
            }
        }
    }
    let turns = six.len().max(four.len());
    let order = (0..turns).flat_map(|turn| [six.get(turn), four.get(turn)]).flatten();
    let order: Vec<_> = order.take(MAX_ADDRESSES).map(|address| SocketAddr::new(*address, target.port)).collect();
    match refused {
        Some((address, why)) if order.is_empty() => {
            Err(EgressError::AddressProhibited { target: target.to_string(), address, why })
        }
        _ if order.is_empty() => {
            Err(EgressError::DnsError { host: target.host.to_string(), why: "it has no addresses".to_owned() })
        }
        _ => Ok(order),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
