//! Where a request wants to go, in one spelling.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Uri;

use crate::error::EgressError;
use crate::range::canonical;

/// The domain under which components of an application reach each other.
pub(crate) const CHAINING_SUFFIX: &str = ".spin.internal";

/// The longest name that DNS can carry, in bytes (RFC 1035, 2.3.4, as text).
const MAX_NAME: usize = 253;

/// How a request is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP/1.1 in the clear.
    Http,
    /// HTTP/2 or HTTP/1.1 over TLS, whatever the server prefers.
    Https,
}

impl Scheme {
    /// As a URL has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL that has none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name: lower case, ASCII, and without a dot at its end.
    Name(Arc<str>),
    /// An address, however it was spelled. One of IPv4 is never written as one
    /// of IPv6.
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The origin that a request goes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// How.
    pub scheme: Scheme,
    /// To whom.
    pub host: Host,
    /// To which port.
    pub port: u16,
}

impl Target {
    /// The host, and the port unless it is the scheme's own: what the `Host`
    /// header says.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Whether the host is a name that stands for this machine (RFC 6761, 6.3).
    pub(crate) fn is_localhost(&self) -> bool {
        matches!(&self.host, Host::Name(name) if &**name == "localhost" || name.ends_with(".localhost"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

/// Who is to answer a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A server outside.
    Outside(Target),
    /// Another component of the application, by its name:
    /// `http://NAME.spin.internal`. There is no connection.
    Component(Arc<str>),
    /// The application itself, through its own routes: a URL without a host,
    /// or `http://self.alt`.
    Application,
}

impl Route {
    /// Reads the URL of a request.
    ///
    /// The host is normalised as the WHATWG URL standard does, so `0x7f.1` is
    /// 127.0.0.1 before anything is judged, and what is judged is what is
    /// connected to.
    ///
    /// # Errors
    /// The URL has no scheme that can be served, a user name, or a host that
    /// is none.
    pub fn of(uri: &Uri) -> Result<Self, EgressError> {
        let invalid = |why: &str| EgressError::UriInvalid(why.to_owned());
        let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
            return Ok(Self::Application);
        };
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            Some(other) => return Err(invalid(&format!("the scheme {other:?} is neither http nor https"))),
            None => return Err(invalid("there is a host but no scheme: write http:// or https:// before it")),
        };
        if authority.as_str().contains('@') {
            return Err(invalid("it has a user name: send an Authorization header instead"));
        }
        // The path plays no part in where it goes.
        let url = url::Url::parse(&format!("{}://{authority}/", scheme.as_str()))
            .map_err(|error| invalid(&format!("{authority:?}: {error}")))?;
        let host = match url.host() {
            Some(url::Host::Ipv4(address)) => Host::Address(address.into()),
            Some(url::Host::Ipv6(address)) => Host::Address(canonical(address.into())),
            Some(url::Host::Domain(name)) => name_host(name)?,
            None => return Err(invalid("it has no host")),
        };
        let port = url.port().unwrap_or(scheme.default_port());
        if port == 0 {
            return Err(invalid("nothing can listen on port 0"));
        }
        if let Host::Name(name) = &host {
            if &**name == "self.alt" {
                return Ok(Self::Application);
            }
            if let Some(component) = name.strip_suffix(CHAINING_SUFFIX) {
                return Ok(Self::Component(component.into()));
            }
        }
        Ok(Self::Outside(Target { scheme, host, port }))
    }
}

fn name_host(name: &str) -> Result<Host, EgressError> {
    let invalid = |why: &str| EgressError::UriInvalid(format!("the host {name:?} {why}"));
    // `example.com.` is the same name, said to be complete. One spelling.
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > MAX_NAME {
        return Err(EgressError::UriInvalid(format!("its host has more than {MAX_NAME} characters")));
    }
    if name.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return Err(invalid("has a part that is empty or longer than 63 characters"));
    }
    // A name of which resolvers would make an address by their own rules. The
    // URL parser knows all of these; a second pair of eyes costs nothing.
    if name.parse::<IpAddr>().is_ok() || name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(invalid("is an address in a spelling that is not served"));
    }
    Ok(Host::Name(name.into()))
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
