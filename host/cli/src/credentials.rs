//! What the operator's file has the host add to requests of components: opened before
//! anything is served, and found for each component and tenant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nala_egress::{Credential, CredentialError, Form, Held, Plain, Unusable};
use nala_manifest::operator::{self, CredentialForm, CredentialValue, PlainText, Whom};
use nala_tenant::{Roster, TenantName};

use crate::console::Help;

/// Which application a component is of. Names of components and of applications are free
/// to choose for whoever writes a manifest, so they do not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Home {
    /// That which the host was started with.
    Started,
    /// One that was deployed, under this name.
    Deployed(String),
}

/// Those that can be of use in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    all: Vec<(Whom, Arc<Credential>)>,
}

impl Credentials {
    /// Opens those which tenants that are served here can have; others stay unknown to
    /// this process. `file` is the operator's, for messages.
    ///
    /// # Errors
    /// One cannot be used.
    pub(crate) fn open(
        file: &Path,
        declared: &[operator::Credential],
        is_served: impl Fn(&TenantName) -> bool,
    ) -> Result<Self, Help> {
        let of_use = declared.iter().filter(|one| is_of_use(one, &is_served));
        let all = of_use.map(|one| Ok((one.whom.clone(), Arc::new(open(file, one)?))));
        Ok(Self { all: all.collect::<Result<_, _>>()? })
    }

    /// What is added to requests of a component on behalf of a tenant.
    pub(crate) fn of(&self, tenant: &str, home: &Home, component: &str) -> Vec<Arc<Credential>> {
        let is_meant = |whom: &Whom| {
            let is_home = match (&whom.of, home) {
                (operator::Application::Started { .. }, Home::Started) => true,
                (operator::Application::Deployed { name, .. }, Home::Deployed(deployed)) => name == deployed,
                _ => false,
            };
            is_home
                && whom.components.contains(component)
                && whom.of.tenants().is_none_or(|tenants| tenants.contains(tenant))
        };
        self.all.iter().filter(|(whom, _)| is_meant(whom)).map(|(_, credential)| Arc::clone(credential)).collect()
    }

    /// The files that are read again for each request.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().flat_map(|(_, credential)| credential.files())
    }

    /// Components of the application that the host is started with which it does not
    /// have: probably misspelt.
    pub(crate) fn unknown(&self, is_known: impl Fn(&str) -> bool) -> BTreeSet<(String, String)> {
        let started = self.all.iter().filter(|(whom, _)| matches!(whom.of, operator::Application::Started { .. }));
        let components = started.flat_map(|(whom, credential)| {
            whom.components.iter().map(move |component| (component.clone(), credential.origin().to_string()))
        });
        components.filter(|(component, _)| !is_known(component)).collect()
    }
}

/// The environment variables with credentials that none of the tenants can have for whom
/// `is_served` holds.
pub(crate) fn environment_of_others(
    declared: &[operator::Credential],
    is_served: impl Fn(&TenantName) -> bool,
) -> BTreeSet<String> {
    let variable = |one: &operator::Credential| match &one.value {
        CredentialValue::Environment(name) => Some(name.clone()),
        CredentialValue::File(_) => None,
    };
    let of = |wanted: bool| declared.iter().filter(move |one| is_of_use(one, &is_served) == wanted);
    let used: BTreeSet<String> = of(true).filter_map(variable).collect();
    declared.iter().filter_map(variable).filter(|name| !used.contains(name)).collect()
}

/// Whether a tenant is served by the host's own process, and not by that of a class.
pub(crate) fn is_served_in_front(roster: &Roster) -> impl Fn(&TenantName) -> bool + '_ {
    |name| roster.tenant(name.as_str()).is_some_and(|tenant| tenant.class.is_none())
}

fn is_of_use(one: &operator::Credential, is_served: &impl Fn(&TenantName) -> bool) -> bool {
    one.whom.of.tenants().is_none_or(|tenants| tenants.iter().any(is_served))
}

fn open(file: &Path, one: &operator::Credential) -> Result<Credential, Help> {
    let wrong = |why: String, help: &str| Help {
        what: format!("[egress] of {}: {one}: {why}", file.display()),
        help: help.to_owned(),
    };
    let form = match &one.form {
        CredentialForm::Bearer => Form::Bearer,
        CredentialForm::Header(name) => Form::Header(name.clone()),
    };
    let held = match &one.value {
        CredentialValue::File(path) => Held::File(path.clone()),
        CredentialValue::Environment(name) => {
            let help = "start the host with the value in its environment, or name a file";
            let wrong = |why: String| wrong(format!("the environment variable {name} {why}"), help);
            let text = std::env::var_os(name).ok_or_else(|| wrong("is not set".to_owned()))?;
            let held = text.to_str().ok_or(Unusable::Character).and_then(Held::text);
            held.map_err(|why| wrong(why.to_string()))?
        }
    };
    let plain = match one.plain {
        PlainText::Refused => Plain::Refused,
        PlainText::Allowed => Plain::Allowed,
    };
    let opened = Credential::open(&one.origin, form, held, one.ca_file.as_deref(), plain);
    opened.map_err(|error| {
        let help = match error {
            CredentialError::Plain(_) => "write an origin with https, or `allow_plain = true`",
            _ => "see \"Credentials\" in docs/egress.md",
        };
        wrong(error.to_string(), help)
    })
}

/// Where a file is and may be found later: in its folder, by whatever names lead to it.
pub(crate) fn places(file: &Path) -> Vec<PathBuf> {
    let folder = |file: &Path| {
        let folder = crate::wall::folder(file);
        // All of the file system is no folder to go on reading.
        if folder.parent().is_none() { file.to_owned() } else { folder.to_owned() }
    };
    let real = file.canonicalize().ok();
    std::iter::once(folder(file)).chain(real.as_deref().map(folder)).collect()
}

#[cfg(test)]
mod tests;
