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
    /// By the trigger, and the place among its middleware.
    pub(super) middleware: BTreeMap<(String, usize), PathBuf>,
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
        self.of_provider(application, dependency, |fetched| {
            fetched.dependencies.get(&(id.to_owned(), name.clone())).map(PathBuf::as_path)
        })
    }

    /// The file of the middleware of a trigger that stands at the place `number`.
    pub(crate) fn of_middleware<'a>(
        &'a self,
        application: &'a Application,
        trigger: &str,
        number: usize,
        middleware: &'a Dependency,
    ) -> Option<&'a Path> {
        self.of_provider(application, middleware, |fetched| {
            fetched.middleware.get(&(trigger.to_owned(), number)).map(PathBuf::as_path)
        })
    }

    fn of_provider<'a>(
        &'a self,
        application: &'a Application,
        dependency: &'a Dependency,
        fetched: impl FnOnce(&'a Fetched) -> Option<&'a Path>,
    ) -> Option<&'a Path> {
        match (&dependency.from, self) {
            (Provider::Component(of), _) => self.of(of, application.component(of)?),
            (Provider::Path(path), Self::Named(_)) => Some(path),
            (Provider::Url(_) | Provider::Registry(_), Self::Named(all)) => fetched(all),
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
        let files = fetched
            .into_iter()
            .flat_map(|all| all.components.values().chain(all.dependencies.values()).chain(all.middleware.values()));
        files.map(PathBuf::as_path)
    }
}
