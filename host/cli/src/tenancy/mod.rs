//! Whose a request is: the room for tenants, joined to the server.

mod admins;
mod collector;
mod open;
mod presented;
mod reload;
mod tokens;
mod usage;

use std::path::Path;
use std::sync::Arc;

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Response, StatusCode, Uri};
use nala_http::{HostError, ResponseBody};
use nala_tenant::{ClassName, Directory, Identity, Presented, Refusal, Roster, Shown, SystemClock, Tenant, Totals};
use nala_token::Tokens;
use tokio::task::JoinHandle;

use crate::services::Outside;

pub(crate) use admins::AdminKeys;
pub(crate) use collector::TenantMetrics;
pub(crate) use open::{Doors, Follow, Opened, networks};
pub(crate) use presented::bearer;
pub(crate) use usage::{USAGE_PATH, answer as answer_usage};

/// Who is served.
#[derive(Clone)]
pub(crate) enum Tenancy {
    /// The one owner of the machine. Requests show nothing, and none of their headers
    /// means anything to the host.
    Sole(Arc<Tenant>),
    /// Those that the operator's file declares, known by keys and by tokens.
    Declared(Arc<Directory>, Tokens),
}

impl Tenancy {
    /// One owner of the machine.
    pub(crate) fn sole() -> Self {
        Self::Sole(Tenant::sole())
    }

    /// Whose a request is.
    ///
    /// # Errors
    /// It is nobody's.
    pub(crate) fn identify(&self, parts: &Parts) -> Result<Identified, HostError> {
        let (directory, tokens) = match self {
            Self::Sole(tenant) => return Ok(Identified::Sole(Arc::clone(tenant))),
            Self::Declared(directory, tokens) => (directory, tokens),
        };
        let key = presented::key(&parts.headers);
        let owner = key.as_deref().map(|key| tokens::owner(tokens, key)).transpose()?.flatten();
        let by = match (&owner, &key) {
            (Some(tenant), _) => Shown::Token { tenant },
            (None, Some(key)) => Shown::Key(key),
            (None, None) => Shown::Nothing,
        };
        let shown = Presented { by, host: presented::host(parts), path: parts.uri.path() };
        directory.identify(&shown).map(Identified::Declared).map_err(refused)
    }

    /// The issuers whose tokens are taken.
    fn tokens(&self) -> Option<&Tokens> {
        match self {
            Self::Sole(_) => None,
            Self::Declared(_, tokens) => Some(tokens),
        }
    }

    /// Whether somebody elsewhere is asked for the keys by which tokens are signed.
    pub(crate) fn asks_issuers(&self) -> bool {
        self.tokens().is_some_and(tokens::reach_out)
    }

    /// The files with such keys.
    pub(crate) fn key_files(&self) -> impl Iterator<Item = &Path> {
        self.tokens().into_iter().flat_map(Tokens::issuers).filter_map(|issuer| issuer.keys.file())
    }

    /// Begins to fetch the keys by which tokens are signed, if there is anybody whose tokens
    /// are taken.
    ///
    /// # Errors
    /// The system has no certificates to trust.
    pub(crate) fn follow_issuers(&self, outside: &Outside) -> anyhow::Result<Option<JoinHandle<()>>> {
        let tokens = self.tokens().filter(|tokens| !tokens.is_empty());
        tokens.map(|tokens| tokens::follow(tokens, &outside.networks)).transpose()
    }

    /// Answers what anybody may ask about where tokens come from, if that is asked.
    pub(crate) fn metadata(&self, parts: &Parts) -> Option<Response<ResponseBody>> {
        tokens::metadata(self.tokens()?, &parts.method, parts.uri.path())
    }

    /// What a client that was refused is told of how to get in (`WWW-Authenticate`).
    pub(crate) fn challenge(&self, path: &str, error: &HostError) -> Option<HeaderValue> {
        tokens::challenge(self.tokens()?, path, error)
    }

    /// Whether there is a tenant of this name.
    pub(crate) fn knows(&self, tenant: &str) -> bool {
        match self {
            Self::Sole(sole) => sole.name().as_str() == tenant,
            Self::Declared(directory, _) => directory.tenant(tenant).is_some(),
        }
    }

    /// Whether applications of any tenant may read what the machine does.
    pub(crate) fn reads_machine(&self) -> bool {
        match self {
            Self::Sole(_) => false,
            Self::Declared(directory, _) => directory.tenants().iter().any(|tenant| tenant.may_read_machine()),
        }
    }

    /// In which class's process a tenant is served, if that is not this one.
    pub(crate) fn class_of(&self, tenant: &str) -> Option<ClassName> {
        match self {
            Self::Sole(_) => None,
            Self::Declared(directory, _) => directory.tenant(tenant)?.class().cloned(),
        }
    }
}

/// Whose a request is, before anything of it was changed.
#[derive(Debug)]
pub(crate) enum Identified {
    /// The one owner's, who shows nothing.
    Sole(Arc<Tenant>),
    /// That of somebody who has shown it.
    Declared(Identity),
}

impl Identified {
    /// In which class's process it is answered, if that is not this one.
    pub(crate) fn class(&self) -> Option<&ClassName> {
        match self {
            Self::Sole(_) => None,
            Self::Declared(identity) => identity.tenant.class(),
        }
    }

    /// Its owner. Its head is changed to what the handler is to see: without the key,
    /// and without the tenant's prefix.
    ///
    /// # Errors
    /// What is left of the target is none.
    pub(crate) fn enter(self, parts: &mut Parts) -> Result<Arc<Tenant>, HostError> {
        let Identity { tenant, path_prefix } = match self {
            Self::Sole(tenant) => return Ok(tenant),
            Self::Declared(identity) => identity,
        };
        presented::remove_key(&mut parts.headers);
        if path_prefix > 0 {
            parts.uri = without_prefix(&parts.uri, path_prefix)?;
        }
        Ok(tenant)
    }
}

/// Those who are declared; counting goes on from `totals`.
fn directory(roster: Roster, totals: &Totals) -> Arc<Directory> {
    Arc::new(Directory::new(roster, totals, Arc::new(SystemClock::new())))
}

fn refused(refusal: Refusal) -> HostError {
    let (status, code) = match refusal {
        Refusal::NoKey => (StatusCode::UNAUTHORIZED, "missing_api_key"),
        Refusal::UnknownKey => (StatusCode::UNAUTHORIZED, "invalid_api_key"),
        Refusal::Expired => (StatusCode::UNAUTHORIZED, "expired_api_key"),
        Refusal::WrongTenant | Refusal::UnknownTenant => (StatusCode::FORBIDDEN, "wrong_tenant"),
        Refusal::UnknownHost => (StatusCode::MISDIRECTED_REQUEST, "misdirected"),
        Refusal::AmbiguousPath => (StatusCode::BAD_REQUEST, "ambiguous_path"),
    };
    HostError::new(status, code, sentence(&refusal.to_string()))
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// A target without the first bytes of its path.
fn without_prefix(uri: &Uri, prefix: usize) -> Result<Uri, HostError> {
    let rest = uri.path().get(prefix..).unwrap_or_default();
    let path = if rest.is_empty() { "/" } else { rest };
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let wrong = |_| HostError::new(StatusCode::BAD_REQUEST, "invalid_target", "The request's target is not valid.");
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).map_err(|error| wrong(error.to_string()))?);
    Uri::from_parts(parts).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use http::Request;
    use nala_manifest::operator::Operator;

    use super::*;

    const FILE: &str = r#"
        [tenant.acme]
        prefix = "/t/acme"
        [tenant.other]
    "#;

    #[test]
    fn a_request_without_a_key_is_nobodys() {
        let operator = Operator::parse(FILE, None, Path::new("")).unwrap();
        let tenancy = Tenancy::Declared(directory(operator.roster, &Totals::default()), Tokens::default());
        let (parts, ()) = Request::get("/t/acme/v1/models").body(()).unwrap().into_parts();
        let error = tenancy.identify(&parts).unwrap_err();
        assert_eq!((error.status().as_u16(), error.code()), (401, "missing_api_key"));
        let wrong = Request::get("/v1/models").header("authorization", "Bearer nala_0_0").body(()).unwrap();
        let (parts, ()) = wrong.into_parts();
        let error = tenancy.identify(&parts).unwrap_err();
        assert_eq!((error.status().as_u16(), error.code()), (401, "invalid_api_key"));
        assert!(!format!("{error}").contains("nala_0_0"));
    }

    #[test]
    fn the_one_owners_requests_are_left_as_they_are() {
        let tenancy = Tenancy::sole();
        let request = Request::get("/x").header("authorization", "Bearer mine").body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        let identified = tenancy.identify(&parts).unwrap();
        assert_eq!(identified.enter(&mut parts).unwrap().name().as_str(), "local");
        assert_eq!(parts.headers["authorization"], "Bearer mine");
    }

    #[test]
    fn a_prefix_is_taken_off() {
        let off = |uri: &str, n| without_prefix(&uri.parse().unwrap(), n).unwrap().to_string();
        assert_eq!(off("/t/acme/v1/models?a=b", 7), "/v1/models?a=b");
        assert_eq!(off("/t/acme", 7), "/");
        assert_eq!(off("http://host/t/acme?x", 7), "http://host/?x");
    }
}
