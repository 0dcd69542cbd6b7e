//! `dependencies`: who answers what a component imports, and with which of its
//! rights.
//!
//! Source: <https://spinframework.dev/writing-apps#using-component-dependencies>.

mod name;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use semver::VersionReq;

pub(crate) use self::name::conflict;
use self::name::parse_name;
pub use self::name::{DependencyName, InvalidName};
use crate::diagnostic::Place;
use crate::reader::{Name, Node, Table, likeliest, listed};
use crate::source::{self, Download, Package};

/// Who answers some imports of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Where its Wasm is.
    pub from: Provider,
    /// Its export that answers; none is the one that is called as the import.
    pub export: Option<String>,
    /// What it may use of what the component has.
    pub inherits: Inheritance,
    /// Where it is described.
    pub place: Place,
}

/// Where the Wasm of a dependency is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// The newest of a registry's package that fits.
    Registry(Package<VersionReq>),
    /// A file, joined to the manifest's folder.
    Path(PathBuf),
    /// A file to download.
    Url(Download),
    /// A component of this application, which has nothing of its own: only its
    /// Wasm is used.
    Component(String),
}

/// What a dependency may use of what its component has. It has nothing of its
/// own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inheritance {
    /// Everything.
    All,
    /// These; an empty set is nothing.
    Only(BTreeSet<Configuration>),
}

/// What a component has and may share with a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the key of the component that it is called as")]
pub enum Configuration {
    AiModels,
    AllowedOutboundHosts,
    Environment,
    Files,
    KeyValueStores,
    SqliteDatabases,
    Variables,
}

const CONFIGURATIONS: &[(&str, Configuration)] = &[
    ("ai_models", Configuration::AiModels),
    ("allowed_outbound_hosts", Configuration::AllowedOutboundHosts),
    ("environment", Configuration::Environment),
    ("files", Configuration::Files),
    ("key_value_stores", Configuration::KeyValueStores),
    ("sqlite_databases", Configuration::SqliteDatabases),
    ("variables", Configuration::Variables),
];

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = CONFIGURATIONS.iter().find(|(_, configuration)| configuration == self);
        key.map_or(Ok(()), |(key, _)| f.write_str(key))
    }
}

/// What stands behind a dependency's name, as written.
#[derive(Clone)]
pub(crate) struct Written {
    from: Provider,
    export: Option<String>,
    inherits: Option<Inheritance>,
    /// A version alone takes no rights, not even by
    /// `dependencies_inherit_configuration`.
    is_version: bool,
    place: Place,
}

impl Written {
    pub(crate) fn says_what_it_inherits(&self) -> bool {
        self.inherits.is_some()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn into_dependency(self, all_inherit: bool) -> Dependency {
        let inherits = match self.inherits {
            Some(inherits) => inherits,
            None if all_inherit && !self.is_version => Inheritance::All,
            None => Inheritance::Only(BTreeSet::new()),
        };
        Dependency { from: self.from, export: self.export, inherits, place: self.place }
    }
}

/// Reads `dependencies` of a component or a profile.
pub(crate) fn read(node: Option<Node<'_>>, base: &Path) -> BTreeMap<DependencyName, Written> {
    let mut dependencies = BTreeMap::new();
    for (name, node) in node.map(Node::entries).unwrap_or_default() {
        let Some(parsed) = dependency_name(name) else { continue };
        if let Some(written) = dependency(name, &parsed, node, base)
            && dependencies.insert(parsed, written).is_some()
        {
            name.fail::<()>(format!("the dependency `{}` is there twice", name.text()), "remove one");
        }
    }
    dependencies
}

fn dependency_name(name: Name<'_>) -> Option<DependencyName> {
    let text = name.text();
    parse_name(text).map_or_else(
        |why| {
            let help = "write \"namespace:package\", \"namespace:package/interface\", either with @VERSION, \
                        or the name of an import";
            name.fail(format!("`{text}` cannot be the name of a dependency: {why}"), help)
        },
        Some,
    )
}

fn dependency(name: Name<'_>, parsed: &DependencyName, node: Node<'_>, base: &Path) -> Option<Written> {
    let own_package = match parsed {
        DependencyName::Plain(_) => None,
        DependencyName::Package { package, .. } => Some(package.as_str()),
    };
    if node.is_text() {
        let version = requirement(node)?;
        let Some(package) = own_package else { return nameless(name) };
        let from = Provider::Registry(Package { registry: None, package: package.to_owned(), version });
        return Some(Written { from, export: None, inherits: None, is_version: true, place: node.place() });
    }
    if !node.is_table() {
        return node.fail(
            format!("the dependency `{}` must be a version or a table that says where it is", name.text()),
            "write \"1.0.0\", { path = \"…\" }, { component = \"ID\" }, { url = \"…\", digest = \"sha256:…\" } or \
             { registry = \"…\", package = \"namespace:name\", version = \"1.0.0\" }",
        );
    }
    let table = node.table(format!("the dependency `{}`", name.text()))?;
    let is_registered = is_registered(&table);
    let inherits = table.get("inherit_configuration").map(inheritance);
    let export_node = table.get("export");
    let export = export_node.map(|node| node.full_text().map(str::to_owned));
    let from = provider(&table, own_package, base);
    if let DependencyName::Package { interface: None, .. } = parsed
        && let (Some(node), true) = (export_node, is_registered || table.has("path"))
    {
        node.fail::<()>(
            format!("`{}` is a whole package, which no single export answers", name.text()),
            format!("remove `export`, or write the interface: \"{}/…\"", own_package.unwrap_or_default()),
        );
    }
    table.close();
    let from = match from? {
        Found::Provider(from) => from,
        Found::Nameless => return nameless(name),
    };
    let export = export.map_or(Some(None), |read| read.map(Some))?;
    let inherits = inherits.map_or(Some(None), |read| read.map(Some))?;
    Some(Written { from, export, inherits, is_version: false, place: node.place() })
}

fn nameless<T>(name: Name<'_>) -> Option<T> {
    let message = format!("the dependency `{}` does not say which package it is", name.text());
    name.fail(message, "write { package = \"namespace:name\", version = \"…\" }")
}

enum Found {
    Provider(Provider),
    Nameless,
}

fn is_registered(table: &Table<'_>) -> bool {
    !["path", "url", "digest", "component"].iter().any(|key| table.has(key))
}

fn provider(table: &Table<'_>, own_package: Option<&str>, base: &Path) -> Option<Found> {
    if table.has("path") {
        let path = table.get("path")?.full_text()?;
        return Some(Found::Provider(Provider::Path(base.join(path))));
    }
    if table.has("component") {
        let id = table.get("component")?.text()?;
        return Some(Found::Provider(Provider::Component(id.to_owned())));
    }
    if !is_registered(table) {
        return Some(Found::Provider(Provider::Url(source::download(table)?)));
    }
    let help = "write `version = \"1.0.0\"`, or where else it is: `path`, `component`, or `url` with `digest`";
    let version = table.need("version", help).and_then(requirement);
    let registry = table.get("registry").map(source::registry);
    let package = match table.get("package") {
        Some(node) => Some(source::package(node)?),
        None => own_package.map(str::to_owned),
    };
    let registry = registry.map_or(Some(None), |read| read.map(Some))?;
    let version = version?;
    Some(match package {
        Some(package) => Found::Provider(Provider::Registry(Package { registry, package, version })),
        None => Found::Nameless,
    })
}

fn requirement(node: Node<'_>) -> Option<VersionReq> {
    let text = node.text()?;
    VersionReq::parse(text).map_or_else(
        |error| {
            let help = "write which versions fit, such as \"1.2\", \"=1.2.3\" or \">=1.0, <2.0\"";
            node.fail(format!("`{text}` is no version: {error}"), help)
        },
        Some,
    )
}

fn inheritance(node: Node<'_>) -> Option<Inheritance> {
    if !node.is_list() {
        return Some(match node.boolean()? {
            true => Inheritance::All,
            false => Inheritance::Only(BTreeSet::new()),
        });
    }
    let mut these = BTreeSet::new();
    for (text, node) in node.texts()? {
        let keys = || CONFIGURATIONS.iter().map(|(key, _)| *key);
        match CONFIGURATIONS.iter().find(|(key, _)| *key == text) {
            Some((_, configuration)) => {
                these.insert(*configuration);
            }
            None => {
                let help = match likeliest(text, keys()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("write one of {}", listed(keys())),
                };
                node.fail::<()>(format!("`{text}` is nothing that can be inherited"), help);
            }
        }
    }
    Some(Inheritance::Only(these))
}

/// Reads a dependency of a trigger, which has no name.
pub(crate) fn of_trigger(node: Node<'_>, base: &Path) -> Option<Dependency> {
    let table = node.table("the dependency")?;
    let inherits = table.get("inherit_configuration").map(inheritance);
    let from = provider(&table, None, base);
    table.close();
    let from = match from? {
        Found::Provider(from) => from,
        Found::Nameless => {
            let help = "write { package = \"namespace:name\", version = \"…\" }";
            return node.fail("the dependency does not say which package it is", help);
        }
    };
    let inherits = inherits.map_or(Some(None), |read| read.map(Some))?;
    let written = Written { from, export: None, inherits, is_version: false, place: node.place() };
    Some(written.into_dependency(false))
}

#[cfg(test)]
#[path = "dependencies_tests.rs"]
mod tests;
