//! What a component may reach: `allowed_outbound_hosts` of its manifest.

mod entry;
mod fault;
mod host;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use entry::Entry;
pub use fault::{AllowError, AllowFault};
use host::HostRule;

use crate::range::{Special, grants, special};
use crate::target::{CHAINING_SUFFIX, Host, Scheme, Target};

/// What a component may reach, in the syntax of Spin's
/// `allowed_outbound_hosts`. The empty one allows nothing.
///
/// An entry is `scheme://host:port`:
/// - the scheme is a word, or `*` for any;
/// - the host is a name, `*.` before a name for everything below it (the name
///   itself is not), `*` for any, an address, a CIDR, or `self`;
/// - the port is a number, `FIRST..LAST` without the last one, or `*`; it can
///   be left out where the scheme has one of its own.
///
/// A name says nothing about addresses: what it resolves to is judged for
/// itself, and private addresses need an entry of theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Arc<[Entry]>,
}

/// A component that another may call without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chained<'a> {
    /// `http://*.spin.internal`: any.
    Any,
    /// `http://NAME.spin.internal`.
    One(&'a str),
}

impl AllowList {
    /// Reads the entries of a manifest.
    ///
    /// # Errors
    /// The first entry that cannot be read, with what to write instead.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, AllowError> {
        let entries = entries.iter().enumerate().map(|(index, entry)| {
            let entry = entry.as_ref();
            Entry::parse(entry).map_err(|fault| AllowError { index, entry: entry.to_owned(), fault })
        });
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    /// Whether nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an entry names the application itself (`http://self`), or all
    /// hosts, which it is one of.
    pub fn allows_application(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.host, HostRule::Application | HostRule::Any) && entry.is_http())
    }

    /// Whether an entry names this component of the application, or all.
    pub fn allows_component(&self, name: &str) -> bool {
        let host = Host::Name(format!("{name}{CHAINING_SUFFIX}").into());
        self.entries.iter().any(|entry| entry.host.covers(&host) && entry.is_http())
    }

    /// The components that entries name, so that one that is not there can be
    /// told at the start.
    pub fn chained(&self) -> impl Iterator<Item = Chained<'_>> {
        self.entries.iter().filter_map(|entry| match &entry.host {
            HostRule::Below(suffix) if suffix == CHAINING_SUFFIX => Some(Chained::Any),
            HostRule::Name(name) => name.strip_suffix(CHAINING_SUFFIX).map(Chained::One),
            _ => None,
        })
    }

    /// Whether an entry names this origin. What its name resolves to is
    /// another question.
    pub fn allows(&self, target: &Target) -> bool {
        self.matching(target).any(|entry| entry.host.covers(&target.host))
    }

    /// Whether an entry of the target's scheme and port grants an address by
    /// itself: as a literal, as a CIDR, or as a name of this machine.
    pub(crate) fn grants(&self, target: &Target, address: IpAddr) -> bool {
        self.matching(target).any(|entry| match &entry.host {
            HostRule::Network(network) => grants(network, address),
            // Such a name is never asked of DNS, so it can only mean loopback.
            HostRule::Name(name) => {
                target.is_localhost()
                    && matches!(&target.host, Host::Name(host) if **host == **name)
                    && special(address) == Some(Special::Loopback)
            }
            _ => false,
        })
    }

    fn matching<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(|entry| entry.takes(target.scheme, target.port))
    }
}

impl Entry {
    fn is_http(&self) -> bool {
        self.scheme.takes(Scheme::Http) || self.scheme.takes(Scheme::Https)
    }
}
