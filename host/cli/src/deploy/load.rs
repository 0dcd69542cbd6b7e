//! From what is kept of a version to handlers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nala_deploy::{AppName, Version};

use super::{COMPILE_TIME, Deployments, Loaded};
use crate::application::Described;

impl Deployments {
    /// Loads a version; its components are compiled already, or are now.
    pub(super) fn load(&self, app: &AppName, version: &Version) -> anyhow::Result<Arc<Loaded>> {
        let sources = self.sources(version)?;
        for path in sources.values() {
            // It was, when it was deployed; the cache may have been emptied.
            self.compiler.compile(path, COMPILE_TIME)?;
        }
        let described = Described::deployed(&version.spin_toml, app.as_str(), sources)?;
        let (routes, members) = described.routes(&self.preparing, &self.models)?;
        Ok(Arc::new(Loaded { routes, _members: members }))
    }

    /// Where the components of a version are.
    fn sources(&self, version: &Version) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        let paths = version.components.iter();
        paths.map(|(id, component)| Ok((id.clone(), self.state.component_path(&component.digest)?))).collect()
    }
}
