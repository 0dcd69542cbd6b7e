//! Looking at a manifest, and at what it names, without running anything.

use std::path::Path;

use crate::application::Application;
use crate::component::Component;
use crate::dependencies::{Dependency, Provider};
use crate::diagnostic::{Diagnostic, Error, Severity};
use crate::source::Source;

/// What was found in a manifest and in its folder.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The application, if the manifest can be read.
    pub application: Option<Application>,
    /// Errors and warnings; for people by [`plain`](crate::plain), for
    /// programs by [`json`](crate::json).
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    /// Whether the application could be loaded, as far as its manifest tells.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.diagnostics.iter().all(|one| one.severity == Severity::Warning)
    }
}

impl Application {
    /// Checks the manifest at `path` with the chosen profile, and that the
    /// files which it names are there.
    ///
    /// # Errors
    /// [`Error::Read`]; what is wrong in the manifest is in [`Checked`].
    pub fn check(path: &Path, profile: Option<&str>) -> Result<Checked, Error> {
        match Self::read(path, profile) {
            Ok(application) => {
                let mut diagnostics = application.warnings.clone();
                diagnostics.extend(application.components.values().flat_map(of_component));
                diagnostics.extend(application.triggers.iter().flat_map(|trigger| missing(&trigger.middleware)));
                Ok(Checked { application: Some(application), diagnostics })
            }
            Err(Error::Invalid(found)) => {
                Ok(Checked { application: None, diagnostics: found.iter().cloned().collect() })
            }
            Err(error) => Err(error),
        }
    }
}

fn of_component(component: &Component) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if let Source::Path(path) = &component.source
        && !path.is_file()
    {
        let help = match &component.build {
            Some(build) => format!("build it: {}", build.shell_line()),
            None => "make it, or correct the path".to_owned(),
        };
        found.push(component.source_place.error(format!("there is no file {}", path.display()), help));
    }
    found.extend(missing(component.dependencies.values()));
    found.extend(component.files.expand().err().map(|error| *error));
    found
}

/// Dependencies or middleware whose files are not there.
fn missing<'a>(all: impl IntoIterator<Item = &'a Dependency>) -> Vec<Diagnostic> {
    let missing = all.into_iter().filter_map(|dependency| match &dependency.from {
        Provider::Path(path) if !path.is_file() => {
            let message = format!("there is no file {}", path.display());
            Some(dependency.place.error(message, "make it, or correct the path"))
        }
        _ => None,
    });
    missing.collect()
}
