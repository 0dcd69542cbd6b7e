//! Where the code of an application's components is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nala_manifest::dependencies::{Dependency, DependencyName, Provider};
use nala_manifest::{Application, Component};

/// Where the code is.
pub(crate) enum Code {
    /// Where the manifest says.
    Named(Fetched),
    /// It was sent with the manifest: a file for each component.
    Sent(BTreeMap<String, PathBuf>),
}

/// The files of what the manifest says to be elsewhere.
#[derive(Default)]
pub(crate) struct Fetched {
    pub(super) components: BTreeMap<String, PathBuf>,
    /// By the component and the dependency's name.
    pub(super) dependencies: BTreeMap<(String, DependencyName), PathBuf>,
}

impl Code {
    /// The file of a component, without its dependencies.
    pub(crate) fn of<'a>(&'a self, id: &str, component: &'a Component) -> Option<&'a Path> {
        match self {
            Self::Named(fetched) => {
                component.source.path().or_else(|| fetched.components.get(id).map(PathBuf::as_path))
            }
            Self::Sent(files) => files.get(id).map(PathBuf::as_path),
        }
    }

    /// The file of a dependency of the component `id`.
    pub(crate) fn of_dependency<'a>(
        &'a self,
        application: &'a Application,
        id: &str,
        name: &DependencyName,
        dependency: &'a Dependency,
    ) -> Option<&'a Path> {
        match (&dependency.from, self) {
            (Provider::Component(of), _) => self.of(of, application.component(of)?),
            (Provider::Path(path), Self::Named(_)) => Some(path),
            (Provider::Url(_) | Provider::Registry(_), Self::Named(fetched)) => {
                fetched.dependencies.get(&(id.to_owned(), name.clone())).map(PathBuf::as_path)
            }
            (Provider::Path(_) | Provider::Url(_) | Provider::Registry(_), Self::Sent(_)) => None,
        }
    }

    /// The files that were sent.
    pub(crate) fn sent(&self) -> Option<&BTreeMap<String, PathBuf>> {
        match self {
            Self::Named(_) => None,
            Self::Sent(files) => Some(files),
        }
    }

    /// The files that were fetched.
    pub(crate) fn fetched(&self) -> impl Iterator<Item = &Path> {
        let fetched = match self {
            Self::Named(fetched) => Some(fetched),
            Self::Sent(_) => None,
        };
        fetched
            .into_iter()
            .flat_map(|all| all.components.values().chain(all.dependencies.values()).map(PathBuf::as_path))
    }
}
