//! Components and dependencies that the manifest says to be elsewhere.

use std::path::PathBuf;

use nala_fetch::{Error, Fetcher, Wanted};
use nala_manifest::source::Source;
use nala_manifest::{Application, Diagnostic};

use super::code::Fetched;
use super::composing::called;
use crate::args::FetchArgs;
use crate::builtin;
use crate::console::Console;
use crate::fetching;

/// Has fetched what is elsewhere.
pub(crate) struct Remote {
    fetcher: Fetcher,
    console: Console,
}

impl Remote {
    /// # Errors
    /// No folder for what is fetched can be named.
    pub(crate) fn new(args: &FetchArgs, console: Console) -> anyhow::Result<Self> {
        Ok(Self { fetcher: fetching::fetcher(args)?, console })
    }

    /// The files of all components and dependencies that are elsewhere, and why others
    /// cannot be had, each with its place.
    pub(crate) fn fetch_all(&self, application: &Application) -> (Fetched, Vec<Diagnostic>) {
        let (mut fetched, mut missing) = (Fetched::default(), Vec::new());
        for (id, component) in &application.components {
            let found = match &component.source {
                Source::Builtin(builtin) => self.fetcher.keep(builtin::bytes(*builtin)).map(Some),
                source => self.fetch(Wanted::of(source), &source.to_string()),
            };
            match found {
                Ok(path) => fetched.components.extend(path.map(|path| (id.clone(), path))),
                Err(error) => {
                    let what = format!("component `{id}` cannot be fetched: {error}");
                    missing.push(component.source_place.error(what, ""));
                }
            }
            for (name, dependency) in &component.dependencies {
                match self.fetch(Ok(Wanted::behind(&dependency.from)), &name.to_string()) {
                    Ok(path) => fetched.dependencies.extend(path.map(|path| ((id.clone(), name.clone()), path))),
                    Err(error) => {
                        let what = format!("the dependency `{name}` cannot be fetched: {error}");
                        missing.push(dependency.place.error(what, ""));
                    }
                }
            }
        }
        for trigger in &application.triggers {
            for (number, middleware) in trigger.middleware.iter().enumerate() {
                let name = called(middleware);
                match self.fetch(Ok(Wanted::behind(&middleware.from)), &name.to_string()) {
                    Ok(path) => {
                        fetched.middleware.extend(path.map(|path| ((trigger.id.clone(), number), path)));
                    }
                    Err(error) => {
                        let what = format!("the middleware `{name}` cannot be fetched: {error}");
                        missing.push(middleware.place.error(what, ""));
                    }
                }
            }
        }
        (fetched, missing)
    }

    /// The file of what is wanted under the name `what`, if anything is.
    fn fetch(&self, wanted: Result<Option<Wanted<'_>>, Error>, what: &str) -> Result<Option<PathBuf>, Error> {
        let Some(wanted) = wanted? else { return Ok(None) };
        fetching::fetch(&self.fetcher, &wanted, what, self.console).map(|fetched| Some(fetched.path))
    }
}
