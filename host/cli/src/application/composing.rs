//! Components composed with their dependencies, before they are compiled.

use std::path::Path;

use nala_compose::{Main, compose};
use nala_manifest::dependencies::{Dependency, DependencyName, Provider};
use nala_manifest::{Application, Build, Component, Diagnostic};

use super::code::Code;
use crate::component;

/// The code of an application's components, to compose them of.
#[derive(Clone, Copy)]
pub(crate) struct Composing<'a> {
    application: &'a Application,
    code: &'a Code,
}

impl<'a> Composing<'a> {
    pub(crate) fn new(application: &'a Application, code: &'a Code) -> Self {
        Self { application, code }
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
            read.push((name, dependency, self.bytes(id, name, dependency)?));
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

    /// The Wasm of a dependency of the component `id`.
    fn bytes(&self, id: &str, name: &DependencyName, dependency: &Dependency) -> Result<Vec<u8>, Box<Diagnostic>> {
        let build = match &dependency.from {
            Provider::Component(id) => self.application.component(id).and_then(|component| component.build.as_ref()),
            Provider::Path(_) | Provider::Url(_) | Provider::Registry(_) => None,
        };
        // What was not fetched or sent was refused before.
        let path = self.code.of_dependency(self.application, id, name, dependency);
        let path = path.ok_or_else(|| dependency.place.error("the dependency is not there", "write `path`"))?;
        component::read(path, build.map(Build::shell_line).as_deref())
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

/// Why an application that was sent cannot have a dependency.
pub(super) fn refused(dependency: &Dependency) -> Option<Diagnostic> {
    let help = "send it as a component, describe it under [component.ID], and write { component = \"ID\" }";
    let is_sent = matches!(dependency.from, Provider::Component(_));
    (!is_sent).then(|| dependency.place.error("an application that is sent has only what was sent with it", help))
}
