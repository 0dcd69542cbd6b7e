//! What the operator says about addresses, for all components.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

use crate::range::{behind_nat64, canonical, grants, range};

/// What the operator says about addresses, for all components: `[egress]` of
/// the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    private: Vec<IpNet>,
    refused: Vec<IpNet>,
}

/// An entry of `private` or `refused` that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// It is neither an address nor a network.
    #[error("{0:?} is not a network: write an address (10.1.2.3) or a CIDR (10.1.0.0/16)")]
    Malformed(String),
    /// It is public, or wider than any special range.
    #[error(
        "{0:?} lies in no single private range, so granting it would grant nothing: name the ranges themselves, \
         for example 10.0.0.0/8; public addresses need no grant"
    )]
    NotSpecial(String),
    /// It has bits behind its length.
    #[error("{0:?} names an address in a network: write {1} for all of it, or the address alone")]
    HostBits(String, IpNet),
    /// It holds addresses of IPv4 as IPv6 has them, and others.
    #[error("{0:?} is wider than the addresses of IPv4 that it holds: write networks of IPv4 as such (0.0.0.0/0)")]
    Mapped(String),
    /// It is of a kind that no host has.
    #[error("{0:?} cannot be granted: no single host has such an address; for this machine write 127.0.0.1 or ::1")]
    NeverGranted(String),
}

impl Networks {
    /// Reads the two lists of the configuration: networks that names may
    /// resolve to although they are special, and networks that nothing may
    /// reach, not even a literal grant.
    ///
    /// # Errors
    /// An entry is malformed, or grants nothing.
    pub fn parse<S: AsRef<str>>(private: &[S], refused: &[S]) -> Result<Self, NetworkError> {
        let private = private.iter().map(|entry| grantable(entry.as_ref())).collect::<Result<_, _>>()?;
        let refused = refused.iter().map(|entry| network(entry.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self { private, refused })
    }

    pub(crate) fn grants(&self, address: IpAddr) -> bool {
        self.private.iter().any(|network| grants(network, address))
    }

    pub(crate) fn refuses(&self, address: IpAddr) -> bool {
        let address = canonical(address);
        let inner = behind_nat64(address).map(IpAddr::V4);
        [Some(address), inner].iter().flatten().any(|a| self.refused.iter().any(|network| network.contains(a)))
    }
}

fn network(entry: &str) -> Result<IpNet, NetworkError> {
    let entry = entry.trim();
    if let Ok(address) = entry.parse::<IpAddr>() {
        return Ok(IpNet::from(canonical(address)));
    }
    let written = entry.parse::<IpNet>().map_err(|_| NetworkError::Malformed(entry.to_owned()))?;
    if written != written.trunc() {
        return Err(NetworkError::HostBits(entry.to_owned(), written.trunc()));
    }
    let network = mapped(written);
    // Addresses are looked up as those of IPv4 that they are, and would not be found.
    let one = IpAddr::V6(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped());
    if network.prefix_len() > 0 && network.contains(&one) {
        return Err(NetworkError::Mapped(entry.to_owned()));
    }
    Ok(network)
}

fn grantable(entry: &str) -> Result<IpNet, NetworkError> {
    let network = network(entry)?;
    match range(network.network()) {
        Some(range) if !range.kind.can_be_granted() => Err(NetworkError::NeverGranted(entry.to_owned())),
        Some(range) if range.network.contains(&network) => Ok(network),
        _ => Err(NetworkError::NotSpecial(entry.to_owned())),
    }
}

/// A CIDR, with the bits behind its length cleared, and with a network of
/// mapped addresses as the network of IPv4 that it is.
pub(crate) fn parse_network(text: &str) -> Option<IpNet> {
    Some(mapped(text.parse::<IpNet>().ok()?.trunc()))
}

fn mapped(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let mapped = v6.network().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96));
    let v4 = mapped.and_then(|(address, length): (Ipv4Addr, u8)| Ipv4Net::new(address, length).ok());
    v4.map_or(network, IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_names_one_special_range() {
        assert!(Networks::parse(&["10.1.0.0/16", "fd00:1::/32", "127.0.0.1", "169.254.169.254"], &[]).is_ok());
        for (entry, fix) in [
            ("10.1.0.0", ""),
            ("10.1.0.0/33", "is not a network"),
            ("ten", "is not a network"),
            ("0.0.0.0/0", "cannot be granted"),
            ("192.0.0.0/8", "no single private range"),
            ("8.8.8.8", "no single private range"),
            ("::/0", "cannot be granted"),
            ("224.0.0.0/8", "cannot be granted"),
            ("10.1.2.3/8", "write 10.0.0.0/8"),
            ("::ffc0:0:0/90", "networks of IPv4"),
        ] {
            match Networks::parse(&[entry], &[]) {
                Ok(_) => assert_eq!(fix, "", "{entry} was taken"),
                Err(error) => assert!(!fix.is_empty() && error.to_string().contains(fix), "{entry}: {error}"),
            }
        }
    }

    #[test]
    fn what_is_refused_is_refused_behind_a_translator_too() {
        let networks = Networks::parse(&[], &["93.184.0.0/16"]).unwrap();
        for refused in ["93.184.1.1", "::ffff:93.184.1.1", "64:ff9b::93.184.1.1"] {
            assert!(networks.refuses(refused.parse().unwrap()), "{refused}");
        }
        assert!(!networks.refuses("93.185.1.1".parse().unwrap()));
    }

    #[test]
    fn networks_of_mapped_addresses_are_those_of_ipv4() {
        assert_eq!(parse_network("::ffff:10.1.2.3/104"), Some("10.0.0.0/8".parse().unwrap()));
        assert_eq!(parse_network("::/0"), Some("::/0".parse().unwrap()));
    }
}
