//! Components composed with their dependencies, before they are compiled.

use std::fmt;
use std::path::Path;

use nala_compose::{Main, behind, compose};
use nala_manifest::dependencies::{Dependency, DependencyName, Provider};
use nala_manifest::{Application, Build, Component, Diagnostic, HttpTrigger};
use serde::{Deserialize, Serialize};

use super::code::Code;
use crate::component;

/// What is composed of several components.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Joined {
    /// A component with its dependencies.
    Component(String),
    /// The component of a trigger, with its middleware before it.
    Trigger(String),
}

impl fmt::Display for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Component(id) => write!(f, "`{id}`"),
            Self::Trigger(id) => write!(f, "the middleware of the trigger `{id}`"),
        }
    }
}

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

    /// Puts a trigger's middleware before its component, whose code with its dependencies
    /// is `main`.
    ///
    /// # Errors
    /// Whatever is wrong, where it is written.
    pub(crate) fn behind(
        &self,
        trigger: &HttpTrigger,
        component: &Component,
        main: &[u8],
        most: u64,
    ) -> Result<Vec<u8>, Box<Diagnostic>> {
        let id = trigger.answer.component().unwrap_or_default();
        let mut read: Vec<(DependencyName, &Dependency, Vec<u8>)> = Vec::new();
        for (number, dependency) in trigger.middleware.iter().enumerate() {
            let path = self.code.of_middleware(self.application, &trigger.id, number, dependency);
            read.push((called(dependency), dependency, self.read(path, dependency)?));
        }
        let middleware: Vec<nala_compose::Dependency<'_>> = read
            .iter()
            .map(|(name, dependency, bytes)| nala_compose::Dependency {
                name,
                bytes,
                export: None,
                inherits: &dependency.inherits,
            })
            .collect();
        behind(&Main { name: id, bytes: main }, &middleware, most).map_err(|error| {
            let at_fault = read.iter().find(|(name, ..)| Some(name) == error.dependency());
            let place = at_fault.map_or(&component.source_place, |(_, dependency, _)| &dependency.place);
            Box::new(place.error(error.to_string(), error.help()))
        })
    }

    /// The Wasm of a dependency of the component `id`.
    fn bytes(&self, id: &str, name: &DependencyName, dependency: &Dependency) -> Result<Vec<u8>, Box<Diagnostic>> {
        let path = self.code.of_dependency(self.application, id, name, dependency);
        self.read(path, dependency)
    }

    fn read(&self, path: Option<&Path>, dependency: &Dependency) -> Result<Vec<u8>, Box<Diagnostic>> {
        let build = match &dependency.from {
            Provider::Component(id) => self.application.component(id).and_then(|component| component.build.as_ref()),
            Provider::Path(_) | Provider::Url(_) | Provider::Registry(_) => None,
        };
        // What was not fetched or sent was refused before.
        let path = path.ok_or_else(|| dependency.place.error("the dependency is not there", "write `path`"))?;
        component::read(path, build.map(Build::shell_line).as_deref())
            .map_err(|error| Box::new(dependency.place.error(format!("{error:#}"), "")))
    }
}

/// The files that are dependencies of a component and no components of the application.
pub(crate) fn files(component: &Component) -> impl Iterator<Item = &Path> {
    component.dependencies.values().filter_map(file)
}

/// The files that are middleware and no components of the application.
pub(crate) fn files_of_middleware(application: &Application) -> impl Iterator<Item = &Path> {
    application.triggers.iter().flat_map(|trigger| &trigger.middleware).filter_map(file)
}

fn file(dependency: &Dependency) -> Option<&Path> {
    match &dependency.from {
        Provider::Path(path) => Some(path.as_path()),
        Provider::Component(_) | Provider::Url(_) | Provider::Registry(_) => None,
    }
}

/// What a middleware is called where something is said about it.
pub(super) fn called(middleware: &Dependency) -> DependencyName {
    DependencyName::Plain(match &middleware.from {
        Provider::Component(id) => id.clone(),
        Provider::Path(path) => path.display().to_string(),
        Provider::Url(download) => download.url.clone(),
        Provider::Registry(package) => package.package.clone(),
    })
}

/// Why an application that was sent cannot have a dependency.
pub(super) fn refused(dependency: &Dependency) -> Option<Diagnostic> {
    let help = "send it as a component, describe it under [component.ID], and write { component = \"ID\" }";
    let is_sent = matches!(dependency.from, Provider::Component(_));
    (!is_sent).then(|| dependency.place.error("an application that is sent has only what was sent with it", help))
}
