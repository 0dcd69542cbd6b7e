//! From what is kept of a version to handlers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nala_deploy::{AppName, Digest, Version};
use nala_wasm::MAX_COMPONENT_BYTES;

use super::compose::Bounds;
use super::{COMPILE_TIME, Deployments, Loaded};
use crate::application::{Described, Loading};

/// Where the code of each component is.
type Sources = BTreeMap<String, PathBuf>;

impl Deployments {
    /// Loads a version; its components are compiled already, or are now.
    pub(super) fn load(&self, app: &AppName, version: &Version) -> anyhow::Result<Arc<Loaded>> {
        let sources = self.sources(version.components.iter().map(|(id, component)| (id, &component.digest)))?;
        // They were compiled when they were deployed; the cache may have been emptied.
        let bounds = Bounds { cpu: COMPILE_TIME, component_bytes: MAX_COMPONENT_BYTES };
        let described = self.describe(app, &version.spin_toml, sources, bounds)?;
        self.finish(described.loading(&self.preparing))
    }

    /// Where components are that were put, by the names that a manifest has for them.
    pub(super) fn sources<'a>(
        &self,
        components: impl Iterator<Item = (&'a String, &'a Digest)>,
    ) -> Result<Sources, nala_deploy::Error> {
        components.map(|(id, digest)| Ok((id.clone(), self.state.component_path(digest)?))).collect()
    }

    /// Reads the manifest, and has the components composed and compiled, each within
    /// bounds.
    pub(super) fn describe(
        &self,
        app: &AppName,
        spin_toml: &str,
        sources: Sources,
        bounds: Bounds,
    ) -> anyhow::Result<Described> {
        let mut described = Described::deployed(spin_toml, app.as_str(), sources)?;
        self.composer.compose(&mut described, spin_toml, bounds)?;
        for path in described.to_compile() {
            self.compiler.compile(&path, bounds.cpu)?;
        }
        Ok(described)
    }

    /// Loads what is being loaded to its end.
    pub(super) fn finish(&self, mut loading: Loading<'_>) -> anyhow::Result<Arc<Loaded>> {
        let routes = loading.routes_with_served(&self.models)?;
        Ok(Arc::new(Loaded { routes, _members: loading.members() }))
    }
}
