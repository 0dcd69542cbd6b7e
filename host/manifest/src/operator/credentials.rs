//! `[[egress.credentials]]`: what the host adds to requests of components, so that they
//! need not know it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use http::HeaderName;
use nala_tenant::{Roster, TenantName};
use toml::Spanned;
use url::Url;

use super::error::{self, Error};
use super::source::Source;
use super::{raw, unknown};

/// What the host adds to requests of some components for one origin. The values
/// themselves are elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Where it is sent: scheme, host, and port if it is not the scheme's own.
    pub origin: String,
    /// For whom.
    pub whom: Whom,
    /// What it is sent as.
    pub form: CredentialForm,
    /// Where the value is.
    pub value: CredentialValue,
    /// Certificates of those who are trusted to say who the origin is, in place of the
    /// system's.
    pub ca_file: Option<PathBuf>,
    /// Whether it may be sent without TLS to another machine.
    pub plain: PlainText,
}

/// Whose requests a credential is added to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whom {
    /// The components, by their names in the manifest.
    pub components: BTreeSet<String>,
    /// Of which application.
    pub of: Application,
}

/// Which application the components are of: names of components are free to choose for
/// whoever writes a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Application {
    /// That which the host was started with.
    Started {
        /// On behalf of these tenants; None for all who are served.
        tenants: Option<BTreeSet<TenantName>>,
    },
    /// One that was deployed while the host served.
    Deployed {
        /// Under this name.
        name: String,
        /// By these tenants.
        tenants: BTreeSet<TenantName>,
    },
}

impl Application {
    /// The tenants whose requests these are; None for all.
    #[must_use]
    pub fn tenants(&self) -> Option<&BTreeSet<TenantName>> {
        match self {
            Self::Started { tenants } => tenants.as_ref(),
            Self::Deployed { tenants, .. } => Some(tenants),
        }
    }

    /// Whether a request can be of both.
    fn meets(&self, other: &Self) -> bool {
        let is_same = match (self, other) {
            (Self::Started { .. }, Self::Started { .. }) => true,
            (Self::Deployed { name, .. }, Self::Deployed { name: other, .. }) => name == other,
            _ => false,
        };
        is_same
            && match (self.tenants(), other.tenants()) {
                (Some(tenants), Some(others)) => !tenants.is_disjoint(others),
                _ => true,
            }
    }
}

/// What a credential is sent as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialForm {
    /// `Authorization: Bearer …`
    Bearer,
    /// The value of this header.
    Header(HeaderName),
}

/// Where the value of a credential is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialValue {
    /// In a file, joined to the folder of the operator's.
    File(PathBuf),
    /// In an environment variable of the host.
    Environment(String),
}

/// Whether a credential may be sent where it can be read on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainText {
    /// Only within the machine.
    Refused,
    /// `allow_plain = true`.
    Allowed,
}

/// For messages: the origin, and whose requests it is for.
impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.whom.components.iter().map(String::as_str).collect();
        write!(f, "the credential of {} for {}", names.join(", "), self.origin)
    }
}

/// All of them.
///
/// # Errors
/// One has no value or several, no components, an origin that is none, a tenant that is
/// not there; or two are for the same requests.
pub(super) fn read(
    all: Vec<Spanned<raw::Credential>>,
    roster: &Roster,
    base_dir: &Path,
    source: Source<'_>,
) -> Result<Vec<Credential>, Error> {
    let mut read: Vec<Credential> = Vec::new();
    for raw in all {
        let span = raw.span();
        let credential = one(raw, roster, base_dir, source)?;
        let is_double = |other: &&Credential| {
            let (one, other) = (&credential, other);
            one.origin == other.origin
                && one.whom.of.meets(&other.whom.of)
                && !one.whom.components.is_disjoint(&other.whom.components)
        };
        if let Some(other) = read.iter().find(is_double) {
            let message = format!("{other} is there already, and a request has one");
            return Err(error::at(source, span, message, "name each component once for an origin"));
        }
        read.push(credential);
    }
    Ok(read)
}

fn one(
    raw: Spanned<raw::Credential>,
    roster: &Roster,
    base_dir: &Path,
    source: Source<'_>,
) -> Result<Credential, Error> {
    let span = raw.span();
    let raw = raw.into_inner();
    let fail = |message: &str, help: &str| error::at(source, span.clone(), message, help);
    let Some(written) = &raw.origin else {
        return Err(fail("a credential has no origin", "write for example `origin = \"https://api.example.com\"`"));
    };
    let origin = origin(written, source)?;
    let components: BTreeSet<String> = raw.components.into_iter().collect();
    if components.is_empty() {
        let help = "write the names of components in the manifest: components = [\"NAME\"]";
        return Err(fail("a credential is for no component", help));
    }
    let header = raw.header.as_ref().map(|name| header(name, source)).transpose()?;
    let file = |path: Spanned<PathBuf>| CredentialValue::File(base_dir.join(path.into_inner()));
    let (form, value) = match (raw.bearer_file, raw.bearer_env, raw.value_file, raw.value_env, header) {
        (Some(path), None, None, None, None) => (CredentialForm::Bearer, file(path)),
        (None, Some(name), None, None, None) => (CredentialForm::Bearer, CredentialValue::Environment(name)),
        (None, None, Some(path), None, Some(header)) => (CredentialForm::Header(header), file(path)),
        (None, None, None, Some(name), Some(header)) => {
            (CredentialForm::Header(header), CredentialValue::Environment(name))
        }
        _ => {
            let message = format!("it is not clear what is to be sent to {origin}");
            let help =
                "write one of `bearer_file` and `bearer_env`; or `header`, and one of `value_file` and `value_env`";
            return Err(fail(&message, help));
        }
    };
    if raw.ca_file.is_some() && origin.starts_with("http:") {
        return Err(fail(
            "there are no certificates without TLS",
            "write an origin with https, or leave `ca_file` out",
        ));
    }
    let tenants = raw.tenants.map(|tenants| named(&tenants, roster, source)).transpose()?;
    let of = match (raw.application, tenants) {
        (None, tenants) => Application::Started { tenants },
        (Some(name), Some(tenants)) => Application::Deployed { name, tenants },
        (Some(name), None) => {
            let message = format!("any tenant can deploy an application `{name}`");
            let help = "name those whose application it is: tenants = [\"NAME\"]; or leave `application` out for that \
                        which the host is started with";
            return Err(fail(&message, help));
        }
    };
    Ok(Credential {
        origin,
        whom: Whom { components, of },
        form,
        value,
        ca_file: raw.ca_file.map(|path| base_dir.join(path.into_inner())),
        plain: if raw.allow_plain { PlainText::Allowed } else { PlainText::Refused },
    })
}

/// An origin in one spelling.
fn origin(text: &Spanned<String>, source: Source<'_>) -> Result<String, Error> {
    let wrong = |why: &str| {
        let message = format!("`{}` {why}", text.get_ref());
        error::at(source, text.span(), message, "write scheme://host:port, such as \"https://api.example.com\"")
    };
    let url = Url::parse(text.get_ref()).map_err(|error| wrong(&format!("is no origin: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Not to be shown: it may be the credential.
        let message = "an origin has no user name and no password";
        return Err(error::hidden(source, text.span(), message, "write scheme://host:port"));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has more than an origin: a credential is for all of one"));
    }
    Ok(url.origin().ascii_serialization())
}

fn header(name: &Spanned<String>, source: Source<'_>) -> Result<HeaderName, Error> {
    name.get_ref().parse().map_err(|_| {
        let message = format!("`{}` is no name of a header", name.get_ref());
        error::at(source, name.span(), message, "write for example \"x-api-key\"")
    })
}

/// The tenants of a list.
fn named(tenants: &[Spanned<String>], roster: &Roster, source: Source<'_>) -> Result<BTreeSet<TenantName>, Error> {
    tenants.iter().map(|name| unknown::tenant(name, roster, source)).collect()
}
