//! From what is kept of a version to handlers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nala_deploy::{AppName, Digest, Version};

use super::{COMPILE_TIME, Deployments, Loaded};
use crate::application::{Described, Loading};

/// Where the code of each component is.
type Sources = BTreeMap<String, PathBuf>;

impl Deployments {
    /// Loads a version; its components are compiled already, or are now.
    pub(super) fn load(&self, app: &AppName, version: &Version) -> anyhow::Result<Arc<Loaded>> {
        let sources = self.sources(version.components.iter().map(|(id, component)| (id, &component.digest)))?;
        // They were compiled when they were deployed; the cache may have been emptied.
        let described = self.describe(app, &version.spin_toml, sources, COMPILE_TIME)?;
        self.finish(described.loading(&self.preparing))
    }

    /// Where components are that were put, by the names that a manifest has for them.
    pub(super) fn sources<'a>(
        &self,
        components: impl Iterator<Item = (&'a String, &'a Digest)>,
    ) -> Result<Sources, nala_deploy::Error> {
        components.map(|(id, digest)| Ok((id.clone(), self.state.component_path(digest)?))).collect()
    }

    /// Has the components compiled, each in so much CPU time, and reads the manifest.
    pub(super) fn describe(
        &self,
        app: &AppName,
        spin_toml: &str,
        sources: Sources,
        cpu: Duration,
    ) -> anyhow::Result<Described> {
        for path in sources.values() {
            self.compiler.compile(path, cpu)?;
        }
        Described::deployed(spin_toml, app.as_str(), sources)
    }

    /// Loads what is being loaded to its end.
    pub(super) fn finish(&self, mut loading: Loading<'_>) -> anyhow::Result<Arc<Loaded>> {
        let routes = loading.routes_with_served(&self.models)?;
        Ok(Arc::new(Loaded { routes, _members: loading.members() }))
    }
}
