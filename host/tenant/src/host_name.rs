//! Host names, in the one form in which they are compared.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// The longest name, in characters (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;

/// A host name or an address, without a port: lower-case, without a dot at the
/// end, an IPv6 address in brackets and in its shortest form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// A text is no host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHost {
    /// Nothing, or a port and nothing before it.
    #[error("the host name is empty")]
    Empty,
    /// Something that stands in no host name.
    #[error("a host name has letters, digits, `-`, `_` and `.`; others are written as `xn--…`")]
    Character,
    /// A part between dots that is empty or longer than 63 characters, or a
    /// name with more than 253.
    #[error("the parts of a host name have 1 to 63 characters, and all of it at most 253")]
    Length,
    /// Something in brackets that is no IPv6 address.
    #[error("brackets hold an IPv6 address, such as [::1]")]
    Address,
    /// A port where none belongs, or one that is no number.
    #[error("a host name here has no port: requests to all ports are meant")]
    Port,
}

impl HostName {
    /// The host of a `Host` header or an authority, whose port is dropped.
    ///
    /// # Errors
    /// It is not written as RFC 3986, section 3.2.2 has it, or has a user name.
    pub fn of_authority(text: &str) -> Result<Self, InvalidHost> {
        let (host, port) = match text.rfind(']') {
            Some(at) => {
                let (host, rest) = text.split_at(at + 1);
                match rest.strip_prefix(':') {
                    Some(port) => (host, port),
                    None if rest.is_empty() => (host, ""),
                    None => return Err(InvalidHost::Address),
                }
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        // An empty port is allowed there.
        if !port.bytes().all(|byte| byte.is_ascii_digit()) || port.len() > 5 {
            return Err(InvalidHost::Port);
        }
        host.parse()
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        if let Some(inner) = text.strip_prefix('[') {
            let address = inner.strip_suffix(']').ok_or(InvalidHost::Address)?;
            let address: Ipv6Addr = address.parse().map_err(|_| InvalidHost::Address)?;
            return Ok(Self(format!("[{address}]")));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(InvalidHost::Empty);
        }
        if name.contains(':') {
            return Err(InvalidHost::Port);
        }
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
            return Err(InvalidHost::Character);
        }
        if name.len() > MAX_NAME || name.split('.').any(|part| part.is_empty() || part.len() > 63) {
            return Err(InvalidHost::Length);
        }
        Ok(Self(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(text: &str) -> Result<String, InvalidHost> {
        HostName::of_authority(text).map(|host| host.to_string())
    }

    #[test]
    fn one_host_has_one_form() {
        for text in
            ["acme.example.com", "ACME.Example.COM", "acme.example.com.", "acme.example.com:80", "acme.example.com.:"]
        {
            assert_eq!(host(text).as_deref(), Ok("acme.example.com"), "{text}");
        }
        for text in ["[::1]", "[::1]:3000", "[0:0::0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]:"] {
            assert_eq!(host(text).as_deref(), Ok("[::1]"), "{text}");
        }
        assert_eq!(host("[FE80::A]:1").as_deref(), Ok("[fe80::a]"));
        assert_eq!(host("127.0.0.1:3000").as_deref(), Ok("127.0.0.1"));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for (text, error) in [
            ("", InvalidHost::Empty),
            (":80", InvalidHost::Empty),
            (".", InvalidHost::Empty),
            ("a..b", InvalidHost::Length),
            ("a.b..", InvalidHost::Length),
            (".a", InvalidHost::Length),
            ("a b", InvalidHost::Character),
            ("a@b", InvalidHost::Character),
            ("a/b", InvalidHost::Character),
            ("a%2eb", InvalidHost::Character),
            ("a,b", InvalidHost::Character),
            ("bücher.example", InvalidHost::Character),
            ("::1", InvalidHost::Port),
            ("a:80:90", InvalidHost::Port),
            ("a:http", InvalidHost::Port),
            ("a:999999", InvalidHost::Port),
            ("[::1", InvalidHost::Port),
            ("[acme]", InvalidHost::Address),
            ("[::1]x", InvalidHost::Address),
            ("[fe80::1%eth0]", InvalidHost::Address),
            ("x[::1]", InvalidHost::Port),
        ] {
            assert_eq!(host(text), Err(error), "{text}");
        }
        assert_eq!("acme.example.com:80".parse::<HostName>(), Err(InvalidHost::Port));
        assert!(host(&"a.".repeat(128)).is_err() && host(&"a".repeat(64)).is_err());
    }

    proptest! {
        #[test]
        fn a_form_stays_as_it_is(text in "[a-zA-Z0-9._:\\[\\]@% -]{0,24}") {
            if let Ok(host) = HostName::of_authority(&text) {
                prop_assert_eq!(HostName::of_authority(host.as_str()), Ok(host.clone()));
                prop_assert_eq!(HostName::of_authority(&host.as_str().to_uppercase()), Ok(host));
            }
        }
    }
}
