//! What a component is granted beside models, and how it is made ready once for
//! all its stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use nala_keyvalue::Store;
use thiserror::Error;

use crate::clocks::Clocks;
use crate::files::{Files, FilesError, Opened};
use crate::outbound::Outbound;
use crate::secret::Secret;
use crate::variables::Variables;

/// What a component is granted beside models. By default nothing.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    /// Environment variables by their names (`environment` in spin.toml).
    pub environment: BTreeMap<String, Secret>,
    /// Variables of the application by their names, resolved (`variables`).
    pub variables: BTreeMap<String, Secret>,
    /// Files and folders (`files`).
    pub files: Files,
    /// How fine the time is that it is told.
    pub clocks: Clocks,
    /// Key-value stores by the labels that it opens them by
    /// (`key_value_stores`).
    pub key_value: BTreeMap<String, Store>,
    /// Requests to others (`allowed_outbound_hosts`). None: each is denied.
    pub outbound: Option<Outbound>,
}

/// Why a component cannot be given what it is granted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GrantError {
    /// A guest could not read an environment variable of this name.
    #[error("{0:?} is no name of an environment variable: it is empty, or has `=` or a zero byte in it")]
    EnvironmentName(
        /// The name.
        String,
    ),
    /// A guest would read only the beginning of the value.
    #[error("the value of the environment variable {0} has a zero byte in it")]
    EnvironmentValue(
        /// The variable's name.
        String,
    ),
    /// The files cannot be had.
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// What of a component's grant each tenant has of its own. By default nothing.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// As [`Capabilities::key_value`].
    pub key_value: BTreeMap<String, Store>,
    /// As [`Capabilities::outbound`].
    pub outbound: Option<Outbound>,
}

/// What is granted, ready for stores.
#[derive(Clone)]
pub(crate) struct Granted {
    pub(crate) environment: Arc<BTreeMap<String, Secret>>,
    pub(crate) variables: Arc<Variables>,
    pub(crate) files: Arc<Opened>,
    pub(crate) clocks: Clocks,
    pub(crate) key_value: BTreeMap<String, Store>,
    pub(crate) outbound: Option<Outbound>,
}

impl Granted {
    /// Copies and opens files, so it blocks.
    pub(crate) fn new(capabilities: Capabilities) -> Result<Self, GrantError> {
        let Capabilities { environment, variables, files, clocks, key_value, outbound } = capabilities;
        for (name, value) in &environment {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(GrantError::EnvironmentName(name.clone()));
            }
            if value.expose().contains('\0') {
                return Err(GrantError::EnvironmentValue(name.clone()));
            }
        }
        let (environment, variables) = (Arc::new(environment), Arc::new(variables));
        Ok(Self { environment, variables, files: Arc::new(files.open()?), clocks, key_value, outbound })
    }

    /// The same for another tenant.
    pub(crate) fn with(&self, own: Own) -> Self {
        let Own { key_value, outbound } = own;
        Self { key_value, outbound, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_shows_names_and_no_values() {
        let secrets: BTreeMap<_, _> = [("TOKEN".to_owned(), "hunter2".into())].into();
        let granted = Capabilities { environment: secrets.clone(), variables: secrets, ..Capabilities::default() };
        let shown = format!("{granted:#?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_a_guest_would_read_otherwise_is_refused() {
        let refused = |name: &str, value: &str| {
            let environment = [(name.to_owned(), value.into())].into();
            Granted::new(Capabilities { environment, ..Capabilities::default() }).map(drop)
        };
        refused("NAME", "a=b").unwrap();
        for name in ["", "A=B", "A\0"] {
            assert!(matches!(refused(name, ""), Err(GrantError::EnvironmentName(_))), "{name:?}");
        }
        let error = refused("TOKEN", "hunter2\0").unwrap_err();
        assert!(error.to_string().contains("TOKEN") && !error.to_string().contains("hunter2"), "{error}");
    }
}
