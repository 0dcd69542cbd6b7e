//! One entry: scheme, host and port.

use std::ops::Range;

use super::AllowFault;
use super::host::HostRule;
use crate::networks::parse_network;
use crate::target::Scheme;

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) scheme: SchemeRule,
    pub(super) host: HostRule,
    ports: PortRule,
}

/// Which schemes an entry is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SchemeRule {
    Any,
    /// Spin has others than HTTP, such as `postgres`. They match no request.
    One(String),
}

impl SchemeRule {
    pub(super) fn takes(&self, scheme: Scheme) -> bool {
        match self {
            Self::Any => true,
            Self::One(one) => one == scheme.as_str(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PortRule {
    Any,
    One(u16),
    /// Without its end, as Spin has it.
    Between(Range<u16>),
}

impl Entry {
    pub(super) fn parse(text: &str) -> Result<Self, AllowFault> {
        let text = text.trim();
        if text.contains("{{") {
            return Err(AllowFault::Template);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(match text {
                "" | "*" | ":" | "?" => AllowFault::NoHost,
                "insecure:allow-all" => AllowFault::AllowAll,
                _ => AllowFault::NoScheme(text.to_owned()),
            });
        };
        if [scheme, rest].iter().any(|part| part.starts_with('{')) {
            return Err(AllowFault::List);
        }
        let rule = match scheme {
            "*" => SchemeRule::Any,
            word if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                SchemeRule::One(word.to_owned())
            }
            other => return Err(AllowFault::Scheme(other.to_owned())),
        };
        if rest.contains('@') {
            return Err(AllowFault::UserInfo);
        }
        let (host, port) = split(rest)?;
        if host.is_empty() {
            return Err(AllowFault::NoHost);
        }
        let host_rule = HostRule::parse(host)?;
        let ports = match port {
            Some(port) => PortRule::parse(port)?,
            None => PortRule::One(
                known_port(scheme)
                    .ok_or_else(|| AllowFault::NoPort { scheme: scheme.to_owned(), host: host.to_owned() })?,
            ),
        };
        Ok(Self { scheme: rule, host: host_rule, ports })
    }

    pub(super) fn takes(&self, scheme: Scheme, port: u16) -> bool {
        let port_is = match &self.ports {
            PortRule::Any => true,
            PortRule::One(one) => *one == port,
            PortRule::Between(range) => range.contains(&port),
        };
        port_is && self.scheme.takes(scheme)
    }
}

/// Separates host and port. One slash may stand at the end.
fn split(rest: &str) -> Result<(&str, Option<&str>), AllowFault> {
    // A CIDR of IPv6 is written without brackets, and is full of colons.
    if parse_network(rest).is_some() {
        return Ok((rest, None));
    }
    let bracket = rest.contains('[').then(|| rest.rfind(']')).flatten();
    let host_end = match bracket {
        Some(bracket) => bracket + 1,
        None => rest.rfind(':').unwrap_or(rest.len()),
    };
    let (host, tail) = rest.split_at_checked(host_end).unwrap_or((rest, ""));
    match tail.strip_prefix(':') {
        Some(port) => match port.split_once('/') {
            Some((port, "")) => Ok((host, some(port))),
            Some((_, path)) => Err(AllowFault::Path(format!("/{path}"))),
            None => Ok((host, some(port))),
        },
        None if tail.is_empty() => Ok((host.strip_suffix('/').unwrap_or(host), None)),
        None if tail == "/" => Ok((host, None)),
        // Behind the bracket stands something else.
        None if tail.starts_with('/') => Err(AllowFault::Path(tail.to_owned())),
        None => Err(AllowFault::Port(tail.to_owned())),
    }
}

fn some(port: &str) -> Option<&str> {
    (!port.is_empty()).then_some(port)
}

impl PortRule {
    fn parse(text: &str) -> Result<Self, AllowFault> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let number = |digits: &str| digits.parse::<u16>().map_err(|_| AllowFault::Port(text.to_owned()));
        match text.split_once("..") {
            Some((first, last)) => {
                let range = number(first)?..number(last)?;
                if range.is_empty() { Err(AllowFault::EmptyRange(text.to_owned())) } else { Ok(Self::Between(range)) }
            }
            None => match number(text)? {
                0 => Err(AllowFault::Port(text.to_owned())),
                port => Ok(Self::One(port)),
            },
        }
    }
}

/// The ports that Spin knows for schemes.
fn known_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        "postgres" => Some(5432),
        "mysql" => Some(3306),
        "redis" => Some(6379),
        "mqtt" => Some(1883),
        _ => None,
    }
}
