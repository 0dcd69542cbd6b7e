//! Who asks a registry.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};

use crate::error::Error;
use crate::reference::Reference;

/// Whose credentials those in the environment are: a registry's host and port.
const REGISTRY: &str = "NALA_REGISTRY";
const USER: &str = "NALA_REGISTRY_USER";
const PASSWORD: &str = "NALA_REGISTRY_PASSWORD";

/// What a registry is shown. Secrets are not part of its debug output.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials {
    /// Nothing.
    Anonymous,
    /// A user's name and password, or whatever the registry takes for one.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token as registries give them to who has logged in.
    Bearer(String),
}

impl Credentials {
    /// The names of the variables that are read.
    pub const VARIABLES: [&str; 3] = [REGISTRY, USER, PASSWORD];

    /// What this process has for a registry. The variables `NALA_REGISTRY_USER`
    /// and `NALA_REGISTRY_PASSWORD` are for the registry that `NALA_REGISTRY`
    /// names and no other; else Docker's configuration is asked, with its
    /// helpers (`DOCKER_CONFIG`, or `.docker` in `HOME`).
    ///
    /// # Errors
    /// [`Error::Credentials`] where there are some that cannot be used.
    pub fn of_this_process(reference: &Reference) -> Result<Self, Error> {
        Self::find(reference, |name| std::env::var_os(name))
    }

    /// The same with variables of the caller's choice.
    ///
    /// # Errors
    /// [`Error::Credentials`].
    pub fn find(reference: &Reference, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let registry = reference.registry();
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        if text(REGISTRY).as_deref() == Some(registry) {
            return match (text(USER), text(PASSWORD)) {
                (Some(user), Some(password)) => Ok(Self::Password { user, password }),
                _ => Err(unusable(registry, &format!("set {USER} and {PASSWORD}, as {REGISTRY} is set"))),
            };
        }
        let folder = variable("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".docker")));
        let Some(path) = folder.map(|folder| folder.join("config.json")) else { return Ok(Self::Anonymous) };
        let file = match File::open(&path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Anonymous),
            Err(error) => return Err(unusable(registry, &format!("{}: {error}", path.display()))),
        };
        match get_credential_from_reader(file, registry) {
            Ok(DockerCredential::UsernamePassword(user, password)) => Ok(Self::Password { user, password }),
            Ok(DockerCredential::IdentityToken(_)) => Err(unusable(
                registry,
                &format!("{} has an identity token, which is not supported: log in with a password", path.display()),
            )),
            Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(Self::Anonymous),
            Err(error) => Err(unusable(registry, &format!("{}: {error}", path.display()))),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Password { user, .. } => f.debug_struct("Password").field("user", user).finish_non_exhaustive(),
            Self::Bearer(_) => f.write_str("Bearer(..)"),
        }
    }
}

fn unusable(registry: &str, why: &str) -> Error {
    Error::Credentials { registry: registry.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> Reference {
        Reference::parse("oci://registry.example:5000/shop:1").unwrap()
    }

    fn find(variables: &[(&str, &str)]) -> Result<Credentials, Error> {
        Credentials::find(&reference(), |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    fn password(user: &str, password: &str) -> Credentials {
        Credentials::Password { user: user.to_owned(), password: password.to_owned() }
    }

    #[test]
    fn the_environment_is_for_the_registry_that_it_names() {
        let rest = [("NALA_REGISTRY_USER", "u"), ("NALA_REGISTRY_PASSWORD", "p")];
        let with = |registry| [("NALA_REGISTRY", registry), rest[0], rest[1]];
        assert_eq!(find(&with("registry.example:5000")).unwrap(), password("u", "p"));
        for other in ["registry.example", "evil.example", ""] {
            assert_eq!(find(&with(other)).unwrap(), Credentials::Anonymous, "{other}");
        }
        assert_eq!(find(&rest).unwrap(), Credentials::Anonymous);
        let error = find(&[("NALA_REGISTRY", "registry.example:5000"), rest[0]]).unwrap_err().to_string();
        assert!(error.contains("set NALA_REGISTRY_USER and NALA_REGISTRY_PASSWORD"), "{error}");
    }

    #[test]
    fn dockers_configuration_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        std::fs::create_dir(folder.path().join(".docker")).unwrap();
        let config = |text: &str| std::fs::write(folder.path().join(".docker/config.json"), text).unwrap();
        assert_eq!(find(&[("DOCKER_CONFIG", home)]).unwrap(), Credentials::Anonymous);
        // `dTpwOnE=` is `u:p:q`.
        config(r#"{"auths":{"registry.example:5000":{"auth":"dTpwOnE="}}}"#);
        assert_eq!(find(&[("HOME", home)]).unwrap(), password("u", "p:q"));
        config(r#"{"auths":{"other.example":{"auth":"dTpwOnE="}}}"#);
        assert_eq!(find(&[("HOME", home)]).unwrap(), Credentials::Anonymous);
        config(r#"{"auths":{"registry.example:5000":{"identitytoken":"t"}}}"#);
        assert!(find(&[("HOME", home)]).unwrap_err().to_string().contains("log in with a password"));
        config("{");
        assert!(find(&[("HOME", home)]).unwrap_err().to_string().contains(".docker/config.json"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?} {:?}", password("u", "secret"), Credentials::Bearer("secret".to_owned()));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
