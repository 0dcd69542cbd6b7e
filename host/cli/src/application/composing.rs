//! Components composed with their dependencies, before they are compiled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nala_compose::{Main, compose};
use nala_manifest::dependencies::{Dependency, DependencyName, Provider};
use nala_manifest::{Application, Build, Component, Diagnostic};

use super::Code;
use crate::component;

/// The code of an application's components, to compose them of.
#[derive(Clone, Copy)]
pub(crate) struct Composing<'a> {
    application: &'a Application,
    /// Where the code of each component is, if it was sent.
    sent: Option<&'a BTreeMap<String, PathBuf>>,
}

impl<'a> Composing<'a> {
    /// Of an application whose code is where the manifest says.
    pub(crate) fn named(application: &'a Application) -> Self {
        Self { application, sent: None }
    }

    /// Of an application that was sent.
    pub(super) fn sent(application: &'a Application, sources: &'a BTreeMap<String, PathBuf>) -> Self {
        Self { application, sent: Some(sources) }
    }

    /// Composes a component, whose own code is `main`, with its dependencies. The result
    /// has at most `most` bytes.
    ///
    /// # Errors
    /// Whatever is wrong, where it is written.
    pub(crate) fn compose(
        &self,
        id: &str,
        component: &Component,
        main: &[u8],
        most: u64,
    ) -> Result<Vec<u8>, Box<Diagnostic>> {
        let mut read: Vec<(&DependencyName, &Dependency, Vec<u8>)> = Vec::new();
        for (name, dependency) in &component.dependencies {
            read.push((name, dependency, self.bytes(dependency)?));
        }
        let dependencies: Vec<nala_compose::Dependency<'_>> = read
            .iter()
            .map(|(name, dependency, bytes)| nala_compose::Dependency {
                name,
                bytes,
                export: dependency.export.as_deref(),
                inherits: &dependency.inherits,
            })
            .collect();
        compose(&Main { name: id, bytes: main }, &dependencies, most).map_err(|error| {
            let dependency = error.dependency().and_then(|name| component.dependencies.get(name));
            let place = dependency.map_or(&component.source_place, |dependency| &dependency.place);
            Box::new(place.error(error.to_string(), error.help()))
        })
    }

    /// The Wasm of a dependency. What a provider is stands here and in [`refused`] alone.
    fn bytes(&self, dependency: &Dependency) -> Result<Vec<u8>, Box<Diagnostic>> {
        let code = if self.sent.is_none() { Code::Named } else { Code::Sent };
        if let Some(refused) = refused(dependency, code) {
            return Err(Box::new(refused));
        }
        let (path, build) = match &dependency.from {
            Provider::Path(path) => (Some(path.as_path()), None),
            Provider::Component(id) => {
                let component = self.application.component(id);
                let build = component.and_then(|component| component.build.as_ref()).map(Build::shell_line);
                let path = match self.sent {
                    Some(sources) => sources.get(id).map(PathBuf::as_path),
                    None => component.and_then(|component| component.source.path()),
                };
                (path, build)
            }
            Provider::Url(_) | Provider::Registry(_) => (None, None),
        };
        // What is no file was refused, here or as the source of its component.
        let path = path.ok_or_else(|| dependency.place.error("the dependency is no file", "write `path`"))?;
        component::read(path, build.as_deref())
            .map_err(|error| Box::new(dependency.place.error(format!("{error:#}"), "")))
    }
}

/// The files that are dependencies of a component and no components of the application.
pub(crate) fn files(component: &Component) -> impl Iterator<Item = &Path> {
    component.dependencies.values().filter_map(|dependency| match &dependency.from {
        Provider::Path(path) => Some(path.as_path()),
        Provider::Component(_) | Provider::Url(_) | Provider::Registry(_) => None,
    })
}

/// Why a dependency cannot be had, whatever it is.
pub(super) fn refused(dependency: &Dependency, code: Code) -> Option<Diagnostic> {
    let (message, help) = match (&dependency.from, code) {
        (Provider::Component(_), _) | (Provider::Path(_), Code::Named) => return None,
        (Provider::Url(_) | Provider::Registry(_), Code::Named) => (
            "dependencies are not downloaded yet",
            "download it, and write the path of the file: { path = \"dep.wasm\" }",
        ),
        (Provider::Path(_) | Provider::Url(_) | Provider::Registry(_), Code::Sent) => (
            "an application that is sent has only what was sent with it",
            "send it as a component, describe it under [component.ID], and write { component = \"ID\" }",
        ),
    };
    Some(dependency.place.error(message, help))
}
