//! Components that the manifest says to be elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nala_fetch::{Fetcher, Wanted};
use nala_manifest::{Application, Component, Diagnostic};

use crate::args::FetchArgs;
use crate::console::Console;
use crate::fetching;

/// Has components fetched that are elsewhere.
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

    /// The files of all components that are elsewhere.
    ///
    /// # Errors
    /// The first that cannot be had, with its place.
    pub(super) fn fetch_all(&self, application: &Application) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        let mut found = BTreeMap::new();
        for (id, component) in &application.components {
            if let Some(path) = self.fetch(id, component).map_err(|diagnostic| *diagnostic)? {
                found.insert(id.clone(), path);
            }
        }
        Ok(found)
    }

    /// The file of a component that is elsewhere; none is where the manifest says.
    ///
    /// # Errors
    /// It cannot be had, with its place.
    pub(crate) fn fetch(&self, id: &str, component: &Component) -> Result<Option<PathBuf>, Box<Diagnostic>> {
        let refused = |error: nala_fetch::Error| {
            Box::new(component.source_place.error(format!("component `{id}` cannot be fetched: {error}"), ""))
        };
        let Some(wanted) = Wanted::of(&component.source).map_err(refused)? else { return Ok(None) };
        let fetched = fetching::fetch(&self.fetcher, &wanted, &component.source.to_string(), self.console);
        fetched.map(|fetched| Some(fetched.path)).map_err(refused)
    }
}
