//! The host of an entry.

use std::net::IpAddr;

use ipnet::IpNet;

use super::AllowFault;
use crate::networks::parse_network;
use crate::range::canonical;
use crate::target::Host;

/// Which hosts an entry is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostRule {
    /// `*`
    Any,
    /// `*.example.com`, kept as `.example.com`.
    Below(String),
    /// A name.
    Name(String),
    /// An address or a CIDR.
    Network(IpNet),
    /// `self`: the application.
    Application,
}

impl HostRule {
    pub(super) fn parse(host: &str) -> Result<Self, AllowFault> {
        match host {
            "*" => return Ok(Self::Any),
            "self" | "self.alt" => return Ok(Self::Application),
            _ => {}
        }
        if let Some(network) = parse_network(host) {
            return Ok(Self::Network(network));
        }
        if let Some((before, path)) = host.split_once('/') {
            let network = before.parse::<IpAddr>().is_ok() && path.bytes().all(|byte| byte.is_ascii_digit());
            return Err(if network { AllowFault::Network(host.into()) } else { AllowFault::Path(format!("/{path}")) });
        }
        let below = host.strip_prefix("*.");
        let name = below.unwrap_or(host);
        if name.contains('*') {
            return Err(AllowFault::Wildcard);
        }
        let fault = |why: String| AllowFault::Host { host: host.to_owned(), why };
        // As the URL of a request is read: upper case is lowered, and letters
        // outside ASCII become their `xn--` form.
        match (url::Host::parse(name).map_err(|error| fault(error.to_string()))?, below) {
            (url::Host::Domain(name), below) => {
                let name = name.strip_suffix('.').unwrap_or(&name);
                if name.split('.').any(str::is_empty) {
                    return Err(fault("a part of it is empty".to_owned()));
                }
                Ok(if below.is_some() { Self::Below(format!(".{name}")) } else { Self::Name(name.to_owned()) })
            }
            (_, Some(address)) => Err(AllowFault::WildcardAddress(address.to_owned())),
            (url::Host::Ipv4(address), None) => Ok(Self::Network(IpAddr::V4(address).into())),
            (url::Host::Ipv6(address), None) => Ok(Self::Network(canonical(address.into()).into())),
        }
    }

    /// Whether a URL's host is one of these.
    pub(super) fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Below(suffix), Host::Name(name)) => name.ends_with(suffix.as_str()),
            (Self::Name(rule), Host::Name(name)) => **name == **rule,
            (Self::Network(network), Host::Address(address)) => network.contains(address),
            _ => false,
        }
    }
}
