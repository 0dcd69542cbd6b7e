//! What can be wrong with an entry, and what to write instead.

/// An entry that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {} of allowed_outbound_hosts, {entry:?}: {fault}", .index + 1)]
pub struct AllowError {
    /// Which entry, from 0.
    pub index: usize,
    /// What it says.
    pub entry: String,
    /// What is wrong with it.
    pub fault: AllowFault,
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowFault {
    /// Nothing, or a sign that was meant to allow everything.
    #[error("an entry is scheme://host:port; to allow all hosts, write \"*://*:*\"")]
    NoHost,
    /// Spin's word of old for everything.
    #[error("this is no longer taken: to allow all hosts, write \"*://*:*\"")]
    AllowAll,
    /// There is no `://`.
    #[error("there is no scheme: write \"https://{0}\", or \"*://{0}\" with a port for any scheme")]
    NoScheme(String),
    /// The scheme is not a word.
    #[error("the scheme {0:?} is not a word of lower-case letters: write http, https or *")]
    Scheme(String),
    /// The scheme has no port of its own and none is given.
    #[error(
        "there is no port, and the scheme {scheme:?} has none of its own: write \"{scheme}://{host}:443\", or :* for any port"
    )]
    NoPort {
        /// The scheme.
        scheme: String,
        /// The host.
        host: String,
    },
    /// The port is not one.
    #[error("the port {0:?} is not a number from 1 to 65535, a range like 8000..9000, or *")]
    Port(String),
    /// A range without ports in it.
    #[error("the range {0:?} has no port in it: it goes from the first to the one before the last, like 8000..9000")]
    EmptyRange(String),
    /// Something stands behind the host.
    #[error("it has a path, and a host is allowed as a whole: remove {0:?}")]
    Path(String),
    /// A user name before the host.
    #[error("it has a user name: remove all up to the @; the component sends credentials itself")]
    UserInfo,
    /// A `*` that is not the first part.
    #[error("a * stands for all hosts, or for the first part of one: \"*.example.com\"")]
    Wildcard,
    /// `*.` before an address.
    #[error("{0:?} has nothing below it, since it is an address: write a CIDR like 10.0.0.0/8")]
    WildcardAddress(String),
    /// The host is neither name nor address.
    #[error("the host {host:?} is not valid ({why}): write a name in letters, digits, hyphens and dots, or an address")]
    Host {
        /// The host.
        host: String,
        /// Of the standard's rules, the one that it breaks.
        why: String,
    },
    /// The network is not one.
    #[error("{0:?} is not a network: write it like 10.0.0.0/8 or 2001:db8::/32")]
    Network(String),
    /// Lists in braces are not part of the syntax.
    #[error("lists in braces are not served: write an entry for each")]
    List,
    /// A template of a variable that was not filled in.
    #[error("the variable in {{{{ }}}} has not been replaced by a value: write the host itself")]
    Template,
}
