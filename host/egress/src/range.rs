//! Which addresses are not the public internet, and why.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Why an address is not of the public internet.
///
/// From IANA's registries of special-purpose addresses for IPv4 and IPv6
/// (RFC 6890 and its updates), and what the clouds document about their
/// metadata services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// `0.0.0.0/8` and `::`: this host, on Linux the loopback interface.
    Unspecified,
    /// `127.0.0.0/8` and `::1`.
    Loopback,
    /// RFC 1918, unique local (RFC 4193) and the site-local of old.
    Private,
    /// `100.64.0.0/10`, between a provider and its customers (RFC 6598).
    Shared,
    /// `169.254.0.0/16` and `fe80::/10`.
    LinkLocal,
    /// Where a cloud gives credentials to whoever asks from inside.
    Metadata,
    /// `224.0.0.0/4` and `ff00::/8`.
    Multicast,
    /// `255.255.255.255`.
    Broadcast,
    /// For examples in documents (RFC 5737, 3849 and 9637).
    Documentation,
    /// For benchmarks of networks (RFC 2544 and 5180).
    Benchmarking,
    /// Carries packets on to an address within: 6to4, Teredo, local NAT64.
    Tunnel,
    /// Assigned to protocols, or to nobody.
    Reserved,
}

impl Special {
    /// Its name in messages and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Tunnel => "tunnel",
            Self::Reserved => "reserved",
        }
    }

    /// Whether an operator can grant such addresses. Those that are no single
    /// host's have no use over TCP; the loopback interface has an address of
    /// its own to be granted by.
    pub(crate) fn can_be_granted(self) -> bool {
        !matches!(self, Self::Unspecified | Self::Multicast | Self::Broadcast)
    }
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A range that an address was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) kind: Special,
    pub(crate) network: IpNet,
}

/// The first that contains an address counts, so the narrow ones are first.
const V4: &[([u8; 4], u8, Special)] = &[
    // AWS, GCP, Azure, Oracle, DigitalOcean and others; then what AWS gives to
    // containers (ECS, EKS), and the services of Scaleway and Alibaba.
    ([169, 254, 169, 254], 32, Special::Metadata),
    ([169, 254, 170, 2], 32, Special::Metadata),
    ([169, 254, 170, 23], 32, Special::Metadata),
    ([169, 254, 42, 42], 32, Special::Metadata),
    ([100, 100, 100, 200], 32, Special::Metadata),
    ([192, 0, 0, 192], 32, Special::Metadata),
    // A public address that inside Azure is the platform's own.
    ([168, 63, 129, 16], 32, Special::Metadata),
    ([255, 255, 255, 255], 32, Special::Broadcast),
    ([0, 0, 0, 0], 8, Special::Unspecified),
    ([10, 0, 0, 0], 8, Special::Private),
    ([100, 64, 0, 0], 10, Special::Shared),
    ([127, 0, 0, 0], 8, Special::Loopback),
    ([169, 254, 0, 0], 16, Special::LinkLocal),
    ([172, 16, 0, 0], 12, Special::Private),
    ([192, 0, 0, 0], 24, Special::Reserved),
    ([192, 0, 2, 0], 24, Special::Documentation),
    ([192, 88, 99, 0], 24, Special::Tunnel),
    ([192, 168, 0, 0], 16, Special::Private),
    ([198, 18, 0, 0], 15, Special::Benchmarking),
    ([198, 51, 100, 0], 24, Special::Documentation),
    ([203, 0, 113, 0], 24, Special::Documentation),
    ([224, 0, 0, 0], 4, Special::Multicast),
    ([240, 0, 0, 0], 4, Special::Reserved),
];

const V6: &[([u16; 8], u8, Special)] = &[
    // AWS (twice), GCP, Scaleway.
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Special::Metadata),
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, Special::Metadata),
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Special::Metadata),
    ([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, Special::Metadata),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Special::Loopback),
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, Special::Unspecified),
    // Addresses of IPv4 in those of IPv6, as they were first written.
    ([0, 0, 0, 0, 0, 0, 0, 0], 96, Special::Reserved),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Special::Tunnel),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Special::Tunnel),
    ([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, Special::Benchmarking),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Special::Reserved),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Special::Documentation),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Special::Tunnel),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Special::Documentation),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Special::Private),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Special::LinkLocal),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Special::Private),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Special::Multicast),
];

/// Why an address is not of the public internet, `None` if it is.
///
/// An address of IPv4 that is written as one of IPv6 (`::ffff:127.0.0.1`, or
/// `64:ff9b::7f00:1` for a NAT64) is judged as that of IPv4.
pub fn special(address: IpAddr) -> Option<Special> {
    range(address).map(|range| range.kind)
}

/// The address of IPv4 that a mapped one of IPv6 stands for: the kernel
/// connects to that one.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The address of IPv4 that a NAT64 (RFC 6052, 64:ff9b::/96) sends packets to.
pub(crate) fn behind_nat64(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

/// The special range of an address.
pub(crate) fn range(address: IpAddr) -> Option<Range> {
    match canonical(address) {
        IpAddr::V4(address) => range_v4(address),
        IpAddr::V6(address) => range_v6(address),
    }
}

fn range_v4(address: Ipv4Addr) -> Option<Range> {
    V4.iter().find_map(|(base, length, kind)| {
        let network = Ipv4Net::new_assert(Ipv4Addr::from(*base), *length);
        network.contains(&address).then_some(Range { kind: *kind, network: network.into() })
    })
}

fn range_v6(address: Ipv6Addr) -> Option<Range> {
    if let Some(inner) = behind_nat64(address.into()) {
        // Only by its whole address can one behind a translator be granted.
        let network = IpNet::from(IpAddr::V6(address));
        return range_v4(inner).map(|range| Range { kind: range.kind, network });
    }
    let listed = V6.iter().find_map(|(base, length, kind)| {
        let network = Ipv6Net::new_assert(Ipv6Addr::from(*base), *length);
        network.contains(&address).then_some(Range { kind: *kind, network: network.into() })
    });
    let eighth = Ipv6Net::new_assert(address, 3).trunc();
    // Nothing outside 2000::/3 is given to hosts of the public internet.
    let public = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);
    let unassigned = (eighth.network() != public).then_some(Range { kind: Special::Reserved, network: eighth.into() });
    listed.or(unassigned)
}

/// Whether naming a network grants an address in it.
///
/// One of the public internet, always. A special one only if the network lies
/// within the special range: `10.0.0.0/8` means the private addresses, while
/// whoever writes `0.0.0.0/0` means the internet, and did not think of the
/// metadata service.
pub(crate) fn grants(network: &IpNet, address: IpAddr) -> bool {
    let address = canonical(address);
    network.contains(&address)
        && range(address).is_none_or(|range| range.kind.can_be_granted() && range.network.contains(network))
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
