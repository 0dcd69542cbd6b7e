//! `nala.toml`, the operator's file: listeners, who may ask, and what each may
//! use. It is read as strictly as `spin.toml`, since a misspelt limit is no
//! limit; what can be limited stands in [`nala_tenant::Limit`].
//!
//! Keys may stand in a file of their own, so that they can be changed by others
//! than those who set limits; see [`Operator::files`] for reading both again
//! while the host runs.

mod classes;
mod credentials;
mod error;
mod keys;
mod limits;
mod moment;
mod raw;
mod source;
mod tokens;
mod unknown;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use nala_tenant::{Conflict, Declared, InvalidHost, InvalidPrefix, Limits, Roster, StoredKey, TenantName};
use toml::Spanned;
use url::Url;

use self::source::Source;
use crate::file;

pub use classes::Class;
pub use credentials::{Application, Credential, CredentialForm, CredentialValue, PlainText, Whom};
pub use error::Error;
pub use tokens::{TokenIssuer, TokenKeys, TokenOwner};

/// What `anonymous` says for nobody, and so no tenant's name.
const REFUSE: &str = "refuse";

/// What the operator set.
#[derive(Debug, Clone)]
pub struct Operator {
    /// Who may ask, and what each may use. Without any `[tenant.NAME]` it is
    /// one, `local`, who has the machine alone.
    pub roster: Roster,
    /// The classes of tenants that have a process of their own, by name.
    pub classes: Vec<Class>,
    /// Where to listen.
    pub listen: Listen,
    /// By whose keys the host is managed; none lets nobody do so.
    pub admin_keys: Vec<StoredKey>,
    /// The registries out of which components may be deployed, each a host with its port
    /// if it has one; none lets nothing be pulled.
    pub registries: Vec<String>,
    /// Which addresses components may reach.
    pub egress: Egress,
    /// The authorization servers whose access tokens are taken beside keys.
    pub tokens: Vec<TokenIssuer>,
    /// Where state is kept, joined to the file's folder.
    pub state_dir: Option<PathBuf>,
    /// The files that this was read from.
    files: Vec<PathBuf>,
    /// What is probably not meant, for a log.
    pub warnings: Vec<Warning>,
}

/// `[listen]`. None leaves it to the host's own default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listen {
    /// For requests.
    pub http: Option<SocketAddr>,
    /// For probes, metrics and what needs one of the admin's keys.
    pub admin: Option<SocketAddr>,
}

/// `[egress]`: addresses and networks, as they are written, and what the host adds to
/// requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Egress {
    /// Not public, and granted to all components for the names that each may use.
    pub private: Vec<String>,
    /// Refused to all, whatever else is granted.
    pub refused: Vec<String>,
    /// What is added to requests of components. No request has two of them.
    pub credentials: Vec<Credential>,
}

/// Something that is allowed and probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The tenant has no key, and callers without one are not it.
    Unreachable(TenantName),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(name) => {
                write!(f, "nobody can be the tenant `{name}`: give it a key, or write `anonymous = \"{name}\"`")
            }
        }
    }
}

/// What is served without a `nala.toml`: one tenant that has the machine alone.
impl Default for Operator {
    fn default() -> Self {
        Self {
            roster: Roster::local(Limits::unlimited()),
            classes: Vec::new(),
            listen: Listen::default(),
            admin_keys: Vec::new(),
            registries: Vec::new(),
            egress: Egress::default(),
            tokens: Vec::new(),
            state_dir: None,
            files: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// The file of keys, if there is one.
struct KeysFile {
    path: PathBuf,
    /// The path as errors show it.
    name: String,
    text: String,
}

impl KeysFile {
    fn new(path: PathBuf, text: String) -> Self {
        Self { name: path.display().to_string(), path, text }
    }
}

impl Operator {
    /// Reads the file at `path`, and the file of keys that it names.
    ///
    /// # Errors
    /// [`Error::Read`] for either file, [`Error::Writable`] for a file of keys
    /// that anybody may write to, and those of [`Operator::parse`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = read(path)?;
        let name = path.display().to_string();
        let source = Source { file: &name, text: &text };
        let folder = path.parent().unwrap_or(Path::new(""));
        let raw = raw::file(source)?;
        let keys = match &raw.keys.file {
            None => None,
            Some(keys) => {
                let path = folder.join(keys.get_ref());
                error::refuse_writable(&path)?;
                let text = read(&path)?;
                Some(KeysFile::new(path, text))
            }
        };
        let mut operator = Self::typed(raw, keys.as_ref(), folder, source)?;
        operator.files = std::iter::once(path.to_owned()).chain(keys.map(|keys| keys.path)).collect();
        Ok(operator)
    }

    /// Reads the file in `text`, whose relative paths start at `base_dir`, with
    /// the text of the file of keys, if it names one.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the place of what is malformed, unknown or
    /// contradictory, and what to write instead.
    pub fn parse(text: &str, keys: Option<&str>, base_dir: &Path) -> Result<Self, Error> {
        let source = Source { file: "nala.toml", text };
        let keys = keys.map(|text| KeysFile::new(PathBuf::from("keys.toml"), text.to_owned()));
        Self::typed(raw::file(source)?, keys.as_ref(), base_dir, source)
    }

    /// The files that this was read from: when one of them changes, reading
    /// again gives the next roster for `Directory::reload`. What listens and
    /// where state is kept is decided when the host starts.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn typed(raw: raw::File, keys: Option<&KeysFile>, base_dir: &Path, source: Source<'_>) -> Result<Self, Error> {
        let names: BTreeSet<String> = raw.tenant.keys().map(|name| name.get_ref().clone()).collect();
        let mut kept = match keys {
            None => keys::Kept::default(),
            Some(file) => keys::Kept::read(Source { file: &file.name, text: &file.text }, &names)?,
        };
        let classes = classes::read(raw.class, source)?;
        let defaults = &raw.defaults.limits;
        let roster = if names.is_empty() {
            sole(raw.anonymous.as_ref(), limits::read(defaults, Limits::unlimited(), source)?, source)?
        } else {
            let defaults = limits::read(defaults, Limits::default(), source)?;
            declared(raw.tenant, raw.anonymous.as_ref(), &defaults, &classes, &mut kept, source)?
        };
        let used = roster.tenants().filter_map(|tenant| tenant.class.as_ref()).collect();
        classes::refuse_empty(&classes, &used, source)?;
        let credentials = credentials::read(raw.egress.credentials, &roster, base_dir, source)?;
        let tokens = tokens::read(raw.tokens, (!names.is_empty()).then_some(&roster), base_dir, source)?;
        let mut admin_keys = keys::list(raw.admin.keys, source)?;
        admin_keys.append(&mut kept.admin);
        let admin_keys = keys::distinct(admin_keys)?;
        let warnings = roster
            .tenants()
            .filter(|tenant| tenant.keys.is_empty() && roster.anonymous() != Some(&tenant.name))
            .filter(|tenant| !tokens.iter().any(|issuer| issuer.owner.can_be(&tenant.name)))
            .map(|tenant| Warning::Unreachable(tenant.name.clone()))
            .collect();
        Ok(Self {
            roster,
            classes: classes.into_iter().map(|(_, class)| class).collect(),
            listen: Listen {
                http: address(raw.listen.http.as_ref(), source)?,
                admin: address(raw.listen.admin.as_ref(), source)?,
            },
            admin_keys,
            registries: raw.admin.registries.iter().map(|text| registry(text, source)).collect::<Result<_, _>>()?,
            egress: Egress { private: raw.egress.private, refused: raw.egress.refused, credentials },
            tokens,
            state_dir: raw.state.dir.map(|dir| base_dir.join(dir.into_inner())),
            files: Vec::new(),
            warnings,
        })
    }
}

fn read(path: &Path) -> Result<String, Error> {
    file::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// The roster without any tenant that is declared.
fn sole(anonymous: Option<&Spanned<String>>, limits: Limits, source: Source<'_>) -> Result<Roster, Error> {
    let local = TenantName::local();
    match anonymous {
        Some(name) if name.get_ref() != local.as_str() => Err(error::at(
            source,
            name.span(),
            match name.get_ref().as_str() {
                REFUSE => {
                    "callers without a key are refused, and no tenant has one: nobody could ask anything".to_owned()
                }
                other => format!("there is no tenant `{other}`"),
            },
            "add a table [tenant.NAME], or leave `anonymous` out to serve everybody",
        )),
        _ => Ok(Roster::local(limits)),
    }
}

fn declared(
    tenants: BTreeMap<Spanned<String>, raw::Tenant>,
    anonymous: Option<&Spanned<String>>,
    defaults: &Limits,
    classes: &[(Spanned<String>, Class)],
    kept: &mut keys::Kept<'_>,
    source: Source<'_>,
) -> Result<Roster, Error> {
    let mut roster = Roster::new();
    for (name, raw) in tenants {
        let parsed = name.get_ref().parse::<TenantName>();
        let fail = |message: String| error::at(source, name.span(), message, "choose another name");
        let parsed = parsed.map_err(|error| fail(error.to_string()))?;
        if parsed.as_str() == REFUSE {
            return Err(fail(format!("`{REFUSE}` is what `anonymous` says for nobody, and cannot be a tenant")));
        }
        let others = kept.tenants.remove(name.get_ref()).unwrap_or_default();
        let class = raw.class.as_ref().map(|class| classes::named(class, classes, source)).transpose()?;
        let declared = Declared { class, ..Declared::new(parsed) };
        tenant(declared, &name, raw, defaults, others, &mut roster, source)?;
    }
    let Some(anonymous) = anonymous.filter(|name| name.get_ref() != REFUSE) else { return Ok(roster) };
    let known = || roster.tenants().map(|tenant| tenant.name.to_string()).collect::<Vec<_>>();
    match anonymous.get_ref().parse().ok().filter(|name: &TenantName| roster.tenant(name.as_str()).is_some()) {
        Some(name) => {
            // It is there, so this cannot fail.
            let _ = roster.set_anonymous(name);
            Ok(roster)
        }
        None => Err(error::at(
            source,
            anonymous.span(),
            format!("there is no tenant `{}`", anonymous.get_ref()),
            format!("write \"{REFUSE}\" or {}", unknown::help(anonymous.get_ref(), &known())),
        )),
    }
}

/// Adds one tenant, of whom name and class are known. What belongs to somebody else already is shown where it
/// stands.
fn tenant(
    mut tenant: Declared,
    name: &Spanned<String>,
    raw: raw::Tenant,
    defaults: &Limits,
    kept: Vec<keys::Placed<'_>>,
    roster: &mut Roster,
    source: Source<'_>,
) -> Result<(), Error> {
    tenant.limits = limits::read(&raw.limits, defaults.clone(), source)?;
    tenant.reads_machine = raw.telemetry;
    tenant.models = raw.models.map(|models| models.into_iter().collect());
    if let Some(weight) = raw.weight {
        tenant.weight = self::weight(&weight, source)?;
    }
    for host in &raw.hosts {
        tenant.hosts.push(host.get_ref().parse().map_err(|error: InvalidHost| {
            let message = format!("`{}` is no host name: {error}", host.get_ref());
            error::at(source, host.span(), message, "write for example \"acme.example.com\"")
        })?);
    }
    if let Some(prefix) = &raw.prefix {
        tenant.prefix = Some(prefix.get_ref().parse().map_err(|error: InvalidPrefix| {
            let message = format!("`{}` is no prefix: {error}", prefix.get_ref());
            error::at(source, prefix.span(), message, "write for example \"/t/acme\"")
        })?);
    }
    let mut keys = keys::list(raw.keys, source)?;
    keys.extend(kept);
    tenant.keys = keys.iter().map(|placed| placed.key.clone()).collect();
    let hosts = tenant.hosts.clone();
    roster.add(tenant).map_err(|conflict| {
        // The last one of two that are the same.
        let place = match &conflict {
            Conflict::Host { host, .. } => {
                let at = hosts.iter().rposition(|own| own == host);
                at.and_then(|at| raw.hosts.get(at)).map(|host| (host.span(), source))
            }
            Conflict::Prefix { .. } => raw.prefix.as_ref().map(|prefix| (prefix.span(), source)),
            Conflict::Key { id, .. } => {
                keys.iter().rfind(|placed| placed.key.id() == *id).map(|placed| (placed.span.clone(), placed.source))
            }
            Conflict::Name(_) => None,
        };
        let (span, source) = place.unwrap_or((name.span(), source));
        error::at(source, span, conflict.to_string(), "let it belong to one of them only, and stand there once")
    })
}

fn weight(weight: &Spanned<i64>, source: Source<'_>) -> Result<NonZeroU32, Error> {
    u32::try_from(*weight.get_ref()).ok().and_then(NonZeroU32::new).ok_or_else(|| {
        let message = format!("`{}` is no weight", weight.get_ref());
        error::at(source, weight.span(), message, "write a whole number from 1; 2 gets twice as much as 1")
    })
}

fn registry(text: &Spanned<String>, source: Source<'_>) -> Result<String, Error> {
    let host = text.get_ref();
    // As a reference to a component names it, which is where it is looked for.
    let is_usual = host.as_str() == host.trim().to_lowercase() && !host.contains(['/', '@', '?', '#', '\\', '*']);
    let has_place = host == "localhost" || host.contains(['.', ':']);
    match Url::parse(&format!("https://{host}/")) {
        Ok(_) if is_usual && has_place => Ok(host.clone()),
        _ => Err(error::at(
            source,
            text.span(),
            format!("`{host}` is no registry"),
            "write its host in lower case, with a port if it has one, such as \"registry.example.com\" or \
             \"10.0.0.5:5000\"",
        )),
    }
}

fn address(text: Option<&Spanned<String>>, source: Source<'_>) -> Result<Option<SocketAddr>, Error> {
    let Some(text) = text else { return Ok(None) };
    text.get_ref().parse().map(Some).map_err(|_| {
        let message = format!("`{}` is no address to listen at", text.get_ref());
        error::at(
            source,
            text.span(),
            message,
            "write an IP address and a port, such as \"127.0.0.1:3000\" or \"[::]:3000\"",
        )
    })
}

#[cfg(test)]
mod tests;
