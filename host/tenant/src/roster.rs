//! Who is declared, before anybody is served: everything that must be unlike
//! between tenants is checked here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use crate::class::ClassName;
use crate::host_name::HostName;
use crate::key::{KeyId, KeyRing, StoredKey};
use crate::limit::Limits;
use crate::prefix::Prefix;

/// The name of a tenant: 1 to 64 letters, digits, `-`, `_` and `.`, beginning
/// with a letter or a digit. It stands in metrics, logs and bills.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(Arc<str>);

/// A text is no tenant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a tenant's name has 1 to 64 letters, digits, `-`, `_` and `.`, and begins with a letter or a digit")]
pub struct InvalidName;

/// The name of a machine's one owner.
const LOCAL: &str = "local";

impl TenantName {
    /// The one owner of a machine for which no tenants are declared.
    #[must_use]
    pub fn local() -> Self {
        Self(Arc::from(LOCAL))
    }

    /// Whether it is [`Self::local`].
    #[must_use]
    pub fn is_local(&self) -> bool {
        &*self.0 == LOCAL
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name, to keep.
    #[must_use]
    pub fn shared(&self) -> &Arc<str> {
        &self.0
    }
}

impl FromStr for TenantName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let good =
            text.len() <= 64 && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.bytes().all(allowed);
        if good { Ok(Self(Arc::from(text))) } else { Err(InvalidName) }
    }
}

impl std::borrow::Borrow<str> for TenantName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tenant, as it is declared.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// Its name.
    pub name: TenantName,
    /// The class in whose process it is served; None for the process that its requests
    /// come to.
    pub class: Option<ClassName>,
    /// Its part of the whole where several want more than there is, beside the
    /// weights of the others.
    pub weight: NonZeroU32,
    /// Host names that belong to it alone.
    pub hosts: Vec<HostName>,
    /// The beginning of paths that belongs to it alone, on host names that
    /// belong to nobody.
    pub prefix: Option<Prefix>,
    /// The keys by which it is known.
    pub keys: Vec<StoredKey>,
    /// The models that it may use; None for all that are served.
    pub models: Option<BTreeSet<String>>,
    /// Whether applications that it deploys may read what the machine does, if they ask
    /// for it.
    pub reads_machine: bool,
    /// What it may use.
    pub limits: Limits,
}

impl Declared {
    /// A tenant with a name and the defaults of everything else.
    #[must_use]
    pub fn new(name: TenantName) -> Self {
        Self {
            name,
            class: None,
            weight: NonZeroU32::MIN,
            hosts: Vec::new(),
            prefix: None,
            keys: Vec::new(),
            models: None,
            reads_machine: false,
            limits: Limits::default(),
        }
    }

    /// Whether it is served at places of its own only.
    #[must_use]
    pub fn has_places(&self) -> bool {
        !self.hosts.is_empty() || self.prefix.is_some()
    }
}

/// Two tenants claim the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The name is taken.
    #[error("there is a tenant `{0}` already")]
    Name(TenantName),
    /// The host name belongs to somebody.
    #[error("the host name `{host}` belongs to the tenant `{owner}` already")]
    Host {
        /// The host name.
        host: HostName,
        /// Whose it is.
        owner: TenantName,
    },
    /// The prefix belongs to somebody.
    #[error("the prefix `{prefix}` belongs to the tenant `{owner}` already")]
    Prefix {
        /// The prefix.
        prefix: Prefix,
        /// Whose it is.
        owner: TenantName,
    },
    /// The key, or one with its public part, is somebody's.
    #[error("the key `{id}` belongs to the tenant `{owner}` already")]
    Key {
        /// Its public part.
        id: KeyId,
        /// Whose it is.
        owner: TenantName,
    },
}

/// There is no tenant with a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tenant `{0}`")]
pub struct NoSuchTenant(pub TenantName);

/// All tenants that are declared, and who is meant by nobody.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    pub(crate) tenants: BTreeMap<TenantName, Declared>,
    pub(crate) hosts: BTreeMap<HostName, TenantName>,
    pub(crate) prefixes: BTreeMap<String, TenantName>,
    pub(crate) keys: KeyRing<TenantName>,
    pub(crate) anonymous: Option<TenantName>,
}

impl Roster {
    /// Nobody: every request is refused.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One tenant, `local`, to whom everybody belongs and who has the machine
    /// alone: what is served when no tenants are declared.
    #[must_use]
    pub fn local(limits: Limits) -> Self {
        let name = TenantName::local();
        let declared = Declared { limits, ..Declared::new(name.clone()) };
        Self { tenants: BTreeMap::from([(name.clone(), declared)]), anonymous: Some(name), ..Self::default() }
    }

    /// Adds a tenant.
    ///
    /// # Errors
    /// It claims what is claimed already; nobody was added.
    pub fn add(&mut self, tenant: Declared) -> Result<(), Conflict> {
        let name = &tenant.name;
        if self.tenants.contains_key(name) {
            return Err(Conflict::Name(name.clone()));
        }
        // All is checked before anything is added, so that a conflict leaves
        // nothing behind.
        let (mut hosts, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for host in &tenant.hosts {
            if let Some(owner) = self.hosts.get(host).or((!hosts.insert(host)).then_some(name)) {
                return Err(Conflict::Host { host: host.clone(), owner: owner.clone() });
            }
        }
        if let Some(prefix) = &tenant.prefix
            && let Some(owner) = self.prefixes.get(prefix.as_str())
        {
            return Err(Conflict::Prefix { prefix: prefix.clone(), owner: owner.clone() });
        }
        for key in &tenant.keys {
            let id = key.id();
            if let Some(owner) = self.keys.holder(id).or((!keys.insert(id)).then_some(name)) {
                return Err(Conflict::Key { id, owner: owner.clone() });
            }
        }
        self.hosts.extend(tenant.hosts.iter().map(|host| (host.clone(), name.clone())));
        self.prefixes.extend(tenant.prefix.iter().map(|prefix| (prefix.as_str().to_owned(), name.clone())));
        for key in &tenant.keys {
            // Doubles were refused above.
            let _ = self.keys.add(key.clone(), name.clone());
        }
        self.tenants.insert(name.clone(), tenant);
        Ok(())
    }

    /// The same for the process of a class: with the tenants of that class only, who are
    /// those that its requests come to, and of the others nothing, their keys included.
    #[must_use]
    pub fn only(&self, class: &ClassName) -> Self {
        let mut only = Self::new();
        for tenant in self.tenants.values().filter(|tenant| tenant.class.as_ref() == Some(class)) {
            // What was unlike among all is so among some.
            let _ = only.add(Declared { class: None, ..tenant.clone() });
        }
        only.anonymous = self.anonymous.clone().filter(|name| only.tenants.contains_key(name));
        only
    }

    /// Lets requests without a key belong to a tenant.
    ///
    /// # Errors
    /// There is none with this name.
    pub fn set_anonymous(&mut self, name: TenantName) -> Result<(), NoSuchTenant> {
        if !self.tenants.contains_key(&name) {
            return Err(NoSuchTenant(name));
        }
        self.anonymous = Some(name);
        Ok(())
    }

    /// To whom requests without a key belong; None if they are refused.
    #[must_use]
    pub fn anonymous(&self) -> Option<&TenantName> {
        self.anonymous.as_ref()
    }

    /// The tenants, by name.
    pub fn tenants(&self) -> impl Iterator<Item = &Declared> {
        self.tenants.values()
    }

    /// The tenant with a name.
    #[must_use]
    pub fn tenant(&self, name: &str) -> Option<&Declared> {
        self.tenants.get(name)
    }
}
