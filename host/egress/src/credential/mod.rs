//! What the host adds to requests, so that guests need not know it.
//!
//! A [`Credential`] belongs to one origin. What it is read from is read again for
//! each request, so that a token that was renewed is in force at once, and is kept
//! nowhere in between. No error and no `Debug` has the value.

mod file;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{Method, Uri};

use self::trust::Trust;
use crate::error::EgressError;
use crate::head;
use crate::judge::Standing;
use crate::target::{Host, Route, Scheme, Target};
use crate::tls::Tls;

/// How a credential is shown to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `Authorization: Bearer …` (RFC 6750, 2.1).
    Bearer,
    /// The value alone, as this header.
    Header(HeaderName),
}

impl Form {
    /// The header.
    fn name(&self) -> HeaderName {
        match self {
            Self::Bearer => AUTHORIZATION,
            Self::Header(name) => name.clone(),
        }
    }

    /// The header's value. It is marked so that HTTP/2 puts it into no table, and
    /// `Debug` does not show it.
    fn value(&self, text: &str) -> Result<HeaderValue, Unusable> {
        let value = match self {
            Self::Bearer => HeaderValue::from_str(&format!("Bearer {text}")),
            Self::Header(_) => HeaderValue::from_str(text),
        };
        let mut value = value.map_err(|_| Unusable::Character)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Where a credential is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// In a file, which somebody may renew at any time.
    File(PathBuf),
    /// With the host. See [`Held::text`].
    Text(HeaderValue),
}

impl Held {
    /// A value that the host has already.
    ///
    /// # Errors
    /// It is empty, or no header can have it.
    pub fn text(text: &str) -> Result<Self, Unusable> {
        let mut value = HeaderValue::from_str(file::usable(text.as_bytes())?).map_err(|_| Unusable::Character)?;
        value.set_sensitive(true);
        Ok(Self::Text(value))
    }
}

/// Whether a credential may be sent to where whoever is in between can read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// Only within this machine.
    #[default]
    Refused,
    /// The operator has said so.
    Allowed,
}

/// Why a text is no credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// There is nothing in it.
    #[error("is empty")]
    Empty,
    /// It is longer than servers take.
    #[error("has more than {most} bytes", most = file::MOST)]
    TooLong,
    /// It has a character that is none of those that a header carries unchanged.
    #[error("has a line break, a space or another character within that no credential has")]
    Character,
}

/// Why a credential cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// What it is for is no origin.
    #[error("{origin:?} is no origin: {why}; write scheme://host:port, such as \"https://api.example.com\"")]
    Origin {
        /// As it was written.
        origin: String,
        /// Why not.
        why: String,
    },
    /// Whoever is in between could read it.
    #[error(
        "{0} is without TLS, so a credential for it can be read on its way: use https, or allow it in so many words"
    )]
    Plain(Target),
    /// The header is about the connection, or the host's own.
    #[error("the header {0} cannot carry a credential: it is about the connection, or the host's own")]
    Header(HeaderName),
    /// Its file cannot be read.
    #[error("{} cannot be read: {why}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// What is in its file is none.
    #[error("{} {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        why: Unusable,
    },
    /// What should be certificates is none.
    #[error("{} has no certificates that can be used, in PEM: {why}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// What the host adds to requests for one origin.
#[derive(Debug)]
pub struct Credential {
    origin: Target,
    form: Form,
    held: Held,
    /// Who is trusted to say who the origin is, in place of whom the gate trusts.
    trust: Option<Trust>,
}

/// What one request gets of a credential.
pub(crate) struct Ready {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
    /// How to find out who the server is, if not as always.
    pub(crate) tls: Option<Arc<Tls>>,
}

impl Credential {
    /// Reads it once, so that what is wrong is told before it is needed. With
    /// `authorities`, a file of certificates in PEM, the origin has to have a
    /// certificate by one of these.
    ///
    /// # Errors
    /// The origin is none, is one of the application's own, or is not safe to send a
    /// credential to; or a file cannot be used.
    pub fn open(
        origin: &str,
        form: Form,
        held: Held,
        authorities: Option<&Path>,
        plain: Plain,
    ) -> Result<Self, CredentialError> {
        let origin = read_origin(origin)?;
        if origin.scheme == Scheme::Http && plain == Plain::Refused && !is_this_machine(&origin) {
            return Err(CredentialError::Plain(origin));
        }
        if !head::can_be_added(&form.name()) {
            return Err(CredentialError::Header(form.name()));
        }
        let credential = Self { origin, form, held, trust: authorities.map(Trust::new) };
        credential.read()?;
        Ok(credential)
    }

    /// Where it is sent, and nowhere else.
    pub fn origin(&self) -> &Target {
        &self.origin
    }

    /// The files that it is read from, again and again.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let value = match &self.held {
            Held::File(path) => Some(path.as_path()),
            Held::Text(_) => None,
        };
        value.into_iter().chain(self.trust.as_ref().map(Trust::path))
    }

    /// How far the origin's own word goes about where it is.
    pub(crate) fn standing(&self) -> Standing {
        match self.origin.scheme {
            Scheme::Https => Standing::Proven,
            Scheme::Http => Standing::Unknown,
        }
    }

    /// Refuses what would have the server send back what it was sent.
    ///
    /// # Errors
    /// The method is `TRACE` (RFC 9110, 9.3.8).
    pub(crate) fn check(method: &Method) -> Result<(), EgressError> {
        if method == Method::TRACE { Err(EgressError::MethodInvalid(method.to_string())) } else { Ok(()) }
    }

    /// What a request gets, as it is now.
    ///
    /// # Errors
    /// A file cannot be used any more.
    pub(crate) async fn ready(self: &Arc<Self>) -> Result<Ready, CredentialError> {
        if self.files().next().is_none() {
            return self.read();
        }
        let this = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || this.read()).await;
        read.unwrap_or_else(|error| {
            let path = self.files().next().map(Path::to_owned).unwrap_or_default();
            Err(CredentialError::Read { path, why: error.to_string() })
        })
    }

    fn read(&self) -> Result<Ready, CredentialError> {
        let value = match &self.held {
            Held::File(path) => {
                let unusable = |why| CredentialError::Unusable { path: path.clone(), why };
                let bytes = file::read(path)?;
                self.form.value(file::usable(&bytes).map_err(unusable)?).map_err(unusable)?
            }
            // It was looked at when it was taken.
            Held::Text(value) => match (&self.form, value.to_str()) {
                (Form::Bearer, Ok(text)) => self.form.value(text).unwrap_or_else(|_| value.clone()),
                _ => value.clone(),
            },
        };
        let tls = self.trust.as_ref().map(Trust::tls).transpose()?;
        Ok(Ready { name: self.form.name(), value, tls })
    }
}

/// Reads an origin as the URL of a request is read.
fn read_origin(text: &str) -> Result<Target, CredentialError> {
    let wrong = |why: &str| CredentialError::Origin { origin: text.to_owned(), why: why.to_owned() };
    let uri: Uri = text.parse().map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
    if uri.scheme().is_none() {
        return Err(wrong("it has no scheme"));
    }
    if !matches!(uri.path_and_query().map(|path| path.as_str()), None | Some("" | "/")) {
        return Err(wrong("it has a path, and a credential is for all of an origin"));
    }
    match Route::of(&uri) {
        Ok(Route::Outside(Target { host: Host::Name(name), .. })) if name.contains('*') => {
            Err(wrong("a credential is for one host, and `*` is none"))
        }
        Ok(Route::Outside(target)) => Ok(target),
        Ok(_) => Err(wrong("requests within the application have no credentials")),
        Err(error) => Err(wrong(&error.to_string())),
    }
}

/// Whether nothing of a request leaves this machine.
fn is_this_machine(target: &Target) -> bool {
    target.is_localhost() || matches!(target.host, Host::Address(address) if address.is_loopback())
}

#[cfg(test)]
mod tests;
