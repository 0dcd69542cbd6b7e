//! `[component.ID]`: a component and what it is granted.

use std::collections::BTreeMap;
use std::path::Path;

use crate::build::{self, Build};
use crate::dependencies::{self, Dependency, DependencyName, Provider};
use crate::diagnostic::Place;
use crate::files::{self, Files};
use crate::hosts::{self, AllowedHost};
use crate::limits::Limits;
use crate::names::{self, Style};
use crate::profile::Profiles;
use crate::reader::{Node, Table};
use crate::source::{self, Source};
use crate::targets;
use crate::template::Template;
use crate::tool::{self, Clock, Keyed, Renderer};
use crate::variables::{self, Declared};

/// `[component.ID]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Where it is described, for errors of loading it: "spin.toml:12:
    /// component `id` cannot be served".
    pub place: String,
    /// Where its Wasm is.
    pub source: Source,
    /// Where its source is written, for errors in it.
    pub source_place: Place,
    /// One line about it.
    pub description: Option<String>,
    /// What it sees of variables; see [`Values::seen_by`](variables::Values::seen_by).
    pub variables: BTreeMap<String, Template>,
    /// Its environment variables.
    pub environment: BTreeMap<String, String>,
    /// The files that it may read.
    pub files: Files,
    /// The hosts that it may connect to.
    pub allowed_outbound_hosts: Vec<AllowedHost>,
    /// The key-value stores that it may open, by name.
    pub key_value_stores: Vec<String>,
    /// The models it may use, by name.
    pub ai_models: Vec<String>,
    /// Who answers its imports that the host does not.
    pub dependencies: BTreeMap<DependencyName, Dependency>,
    /// How it is built.
    pub build: Option<Build>,
    /// Who answers `nala:chat` for it (`tool.nala.renderer`).
    pub renderer: Option<Renderer>,
    /// The components whose tools it may call (`tool.nala.tools`).
    pub tools: Vec<String>,
    /// The MCP servers whose tools it may call, which stand in the same list.
    pub mcp: Vec<String>,
    /// What it learns about time (`tool.nala.clock`); none is the host's
    /// default.
    pub clock: Option<Clock>,
    /// How instances of its tools are kept between calls (`tool.nala.keyed`).
    pub keyed: Option<Keyed>,
    /// Whether it may read what the machine and its models do (`tool.nala.telemetry`).
    pub telemetry: bool,
    /// Its limits; where it sets none, the application's.
    pub limits: Limits,
}

impl Component {
    /// What it has of its own that would have no effect where only its Wasm is
    /// used, as the manifest calls it.
    pub(crate) fn own(&self) -> Vec<&'static str> {
        [
            ("ai_models", self.ai_models.is_empty()),
            ("allowed_outbound_hosts", self.allowed_outbound_hosts.is_empty()),
            ("dependencies", self.dependencies.is_empty()),
            ("environment", self.environment.is_empty()),
            ("files", self.files.is_empty()),
            ("key_value_stores", self.key_value_stores.is_empty()),
            ("telemetry", !self.telemetry),
            ("tools", self.tools.is_empty() && self.mcp.is_empty()),
            ("variables", self.variables.is_empty()),
        ]
        .into_iter()
        .filter_map(|(key, is_empty)| (!is_empty).then_some(key))
        .collect()
    }

    /// The components of the application whose Wasm it is composed with.
    pub(crate) fn composed_of(&self) -> impl Iterator<Item = (&str, &Place)> {
        self.dependencies.values().filter_map(|dependency| match &dependency.from {
            Provider::Component(id) => Some((id.as_str(), &dependency.place)),
            _ => None,
        })
    }
}

/// What all components are read with.
pub(crate) struct Reading<'r, 'd> {
    pub(crate) base: &'r Path,
    pub(crate) declared: &'r Declared<'d>,
    /// The limits of the application.
    pub(crate) defaults: Limits,
    pub(crate) profile: Option<&'r str>,
}

/// A component that was read, and where it names its renderer and its tools.
pub(crate) struct Read {
    pub(crate) component: Component,
    pub(crate) renderer_place: Option<Place>,
    pub(crate) tool_places: Vec<Place>,
}

impl Reading<'_, '_> {
    /// Reads the component `id`, which is described at `place`, with the
    /// chosen profile; notes the names of the profiles that it has.
    pub(crate) fn component(&self, id: &str, place: &Place, node: Node<'_>, profiles: &mut Profiles) -> Option<Read> {
        let table = node.table(format!("component `{id}`"))?;
        let profile = profiles.read(table.get("profile"), self.base, self.profile);
        let help = "write `source = \"path/to/component.wasm\"`";
        let source_node = table.need("source", help);
        let source = source_node.and_then(|node| source::read(node, self.base));
        let tool = tool::of_component(table.get("tool"));
        if let Some(node) = table.get("targets") {
            targets::check(node);
        }
        let mut component = Component {
            place: format!("{}:{}: component `{id}` cannot be served", place.file, place.line),
            // Any one: without its source, the component is not returned.
            source: source.clone().unwrap_or(Source::Path(self.base.to_owned())),
            source_place: source_node.map_or_else(|| place.clone(), Node::place),
            description: table.get("description").and_then(Node::text).map(str::to_owned),
            variables: variables::of_component(table.get("variables"), self.declared),
            environment: environment(table.get("environment")),
            files: files::read(table.get("files"), table.get("exclude_files"), self.base),
            allowed_outbound_hosts: hosts::read(
                table.get("allowed_outbound_hosts"),
                table.get("allowed_http_hosts"),
                self.declared,
            ),
            key_value_stores: table.get("key_value_stores").map(labels).unwrap_or_default(),
            ai_models: table.get("ai_models").map(models).unwrap_or_default(),
            dependencies: BTreeMap::new(),
            build: table.get("build").and_then(|node| build::read(node, self.base)),
            renderer: tool.renderer.as_ref().map(|(renderer, _)| renderer.clone()),
            tools: tool.tools.iter().map(|(id, _)| id.clone()).collect(),
            mcp: Vec::new(),
            clock: tool.clock,
            keyed: tool.keyed,
            telemetry: tool.telemetry,
            limits: tool.limits.or(self.defaults),
        };
        if let Some(node) = table.get("sqlite_databases")
            && !node.says_nothing()
        {
            node.fail::<()>("there are no SQLite databases here", "remove `sqlite_databases`");
        }
        let mut dependencies = dependencies::read(table.get("dependencies"), self.base);
        if let Some(profile) = profile {
            profile.apply(&mut component, &mut dependencies, self.base);
        }
        component.dependencies = joined(&table, dependencies);
        table.close();
        source?;
        let tool_places = tool.tools.into_iter().map(|(_, place)| place).collect();
        Some(Read { component, renderer_place: tool.renderer.map(|(_, place)| place), tool_places })
    }
}

/// Checks dependencies against each other, and tells each what it inherits.
fn joined(
    table: &Table<'_>,
    written: BTreeMap<DependencyName, dependencies::Written>,
) -> BTreeMap<DependencyName, Dependency> {
    let all = table.get("dependencies_inherit_configuration");
    let all_inherit = all.and_then(Node::boolean) == Some(true);
    if let (Some(all), true) = (all, written.values().any(dependencies::Written::says_what_it_inherits)) {
        all.fail::<()>(
            "`dependencies_inherit_configuration` cannot stand beside a dependency's own `inherit_configuration`",
            "remove it, and write `inherit_configuration = true` in each dependency that is meant",
        );
    }
    if let Some((one, other)) = dependencies::conflict(written.keys()) {
        let place = written.get(other).map(dependencies::Written::place);
        let message = format!("the dependencies `{one}` and `{other}` would answer the same imports");
        let help = "tell them apart by interfaces or by versions that do not fit each other";
        table.push(place.cloned().unwrap_or_else(|| table.place()).error(message, help));
    }
    written.into_iter().map(|(name, written)| (name, written.into_dependency(all_inherit))).collect()
}

/// Reads `environment` of a component or a profile.
pub(crate) fn environment(node: Option<Node<'_>>) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    for (name, node) in node.map(Node::entries).unwrap_or_default() {
        if name.text().is_empty() || name.text().contains(['=', '\0']) {
            let message = format!("`{}` cannot be the name of an environment variable", name.text());
            name.fail::<()>(message, "write it without `=`");
        }
        let Some(value) = node.text() else { continue };
        if value.contains('\0') {
            node.fail::<()>("the value of an environment variable cannot have a zero byte", "remove it");
        }
        environment.insert(name.text().to_owned(), value.to_owned());
    }
    environment
}

fn labels(node: Node<'_>) -> Vec<String> {
    let mut labels = Vec::new();
    for (label, node) in node.texts().unwrap_or_default() {
        if names::check(label, Style::Kebab).is_err()
            && let Err(why) = names::check(label, Style::Snake)
        {
            let help = "write words with `-` or `_` between them, such as \"default\" or \"my-store\"";
            node.fail::<()>(format!("`{label}` cannot be the name of a store: {why}"), help);
        }
        labels.push(label.to_owned());
    }
    labels
}

fn models(node: Node<'_>) -> Vec<String> {
    let models = node.texts().unwrap_or_default();
    for (model, node) in &models {
        if model.trim().is_empty() {
            node.fail::<()>("the name of a model cannot be empty", "write it, or remove it");
        }
    }
    models.into_iter().map(|(model, _)| model.to_owned()).collect()
}
