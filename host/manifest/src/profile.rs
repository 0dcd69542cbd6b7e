//! `profile`: other sources, settings and builds of components, of which one
//! is chosen when the manifest is read. A component without the chosen one is
//! as it is.
//!
//! Source: <https://spinframework.dev/manifest-reference>.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::build::{self, Build};
use crate::component::{self, Component};
use crate::dependencies::{self, DependencyName, Written};
use crate::diagnostic::Place;
use crate::reader::Node;
use crate::source::{self, Source};

/// What a profile of a component says.
pub(crate) struct Profile {
    source: Option<(Source, Place)>,
    environment: BTreeMap<String, String>,
    dependencies: BTreeMap<DependencyName, Written>,
    commands: Option<Vec<String>>,
}

/// The names of all profiles of all components.
#[derive(Default)]
pub(crate) struct Profiles(BTreeSet<String>);

impl Profiles {
    pub(crate) fn names(&self) -> &BTreeSet<String> {
        &self.0
    }

    /// Reads the profiles of a component, which all must be sound; gives the
    /// chosen one.
    pub(crate) fn read(&mut self, node: Option<Node<'_>>, base: &Path, chosen: Option<&str>) -> Option<Profile> {
        let mut found = None;
        for (name, node) in node?.entries() {
            self.0.insert(name.text().to_owned());
            let profile = profile(name.text(), node, base);
            if chosen == Some(name.text()) {
                found = profile;
            }
        }
        found
    }
}

fn profile(name: &str, node: Node<'_>, base: &Path) -> Option<Profile> {
    let table = node.table(format!("the profile `{name}`"))?;
    let source = table.get("source");
    let profile = Profile {
        source: source.and_then(|node| Some((source::read(node, base)?, node.place()))),
        environment: component::environment(table.get("environment")),
        dependencies: dependencies::read(table.get("dependencies"), base),
        commands: table.get("build").and_then(build::of_profile),
    };
    table.close();
    Some(profile)
}

impl Profile {
    /// Changes a component to what the profile says.
    pub(crate) fn apply(
        self,
        component: &mut Component,
        dependencies: &mut BTreeMap<DependencyName, Written>,
        base: &Path,
    ) {
        if let Some((source, place)) = self.source {
            component.source = source;
            component.source_place = place;
        }
        component.environment.extend(self.environment);
        dependencies.extend(self.dependencies);
        match (self.commands, &mut component.build) {
            (Some(commands), Some(build)) => build.commands = commands,
            (Some(commands), build @ None) => {
                *build = Some(Build { commands, workdir: base.to_owned(), watch: Vec::new() });
            }
            (None, _) => {}
        }
    }
}
