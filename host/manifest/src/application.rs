//! The typed application, and the rules that make one out of TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::component::{Component, Read, Reading};
use crate::diagnostic::{Diagnostic, Diagnostics, Error, Place};
use crate::file;
use crate::mcp::McpServer;
use crate::names::{self, Style};
use crate::profile::Profiles;
use crate::reader::{Document, Name, Node, Table, listed};
use crate::references::{self, Renderers, ToolUses};
use crate::routes::RouteTable;
use crate::targets;
use crate::tool::{self, ApplicationTool};
use crate::triggers::{self, Answer, HttpTrigger, TriggerRoute, Triggers};
use crate::variables::{self, Declared, MissingVariables, Values, Variable};

/// An application: components and the routes they answer.
#[derive(Debug, Clone)]
pub struct Application {
    /// The application's name.
    pub name: String,
    /// Its version, as written.
    pub version: Option<String>,
    /// One line about it.
    pub description: Option<String>,
    /// Who wrote it.
    pub authors: Vec<String>,
    /// Its variables, by name.
    pub variables: BTreeMap<String, Variable>,
    /// The HTTP triggers, in the order of the file. Each component that one
    /// names is in `components`; no two match the same paths.
    pub triggers: Vec<HttpTrigger>,
    /// The MCP servers elsewhere whose tools components may be given, by their names.
    pub mcp: BTreeMap<String, McpServer>,
    /// The components, by their identifiers: those with a table, and those
    /// that stand in a trigger.
    pub components: BTreeMap<String, Component>,
    /// What is probably not meant, for a log.
    pub warnings: Vec<Diagnostic>,
}

impl Application {
    /// Reads the manifest at `path` with the chosen profile; its folder is
    /// where sources start from.
    ///
    /// # Errors
    /// [`Error::Read`], and those of [`Application::parse`].
    pub fn read(path: &Path, profile: Option<&str>) -> Result<Self, Error> {
        let text = file::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let file = path.display().to_string();
        Self::parse_named(&file, &text, folder, profile)
    }

    /// Reads the manifest in `text`, whose relative paths start at `base_dir`,
    /// with the chosen profile: components that have it are changed by it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the places of all that is malformed, unknown,
    /// not supported or contradictory, and what to write instead; a profile
    /// that no component has.
    pub fn parse(text: &str, base_dir: &Path, profile: Option<&str>) -> Result<Self, Error> {
        Self::parse_named("spin.toml", text, base_dir, profile)
    }

    /// The component `id`.
    #[must_use]
    pub fn component(&self, id: &str) -> Option<&Component> {
        self.components.get(id)
    }

    /// A table that finds who answers a path. Private triggers are not in it.
    #[must_use]
    pub fn routes(&self) -> RouteTable<Answer> {
        let mut table = RouteTable::new();
        for trigger in &self.triggers {
            if let TriggerRoute::Public(route) = &trigger.route {
                // Doubles were refused when the manifest was read.
                let _ = table.insert(route.clone(), trigger.answer.clone());
            }
        }
        table
    }

    /// The components that another one of the application reaches as
    /// `http://ID.spin.internal/`, if it may: those of all triggers, private
    /// or not.
    #[must_use]
    pub fn reachable(&self) -> BTreeSet<&str> {
        self.triggers.iter().filter_map(|trigger| trigger.answer.component()).collect()
    }

    /// The components whose tools others may call.
    #[must_use]
    pub fn tools(&self) -> BTreeSet<&str> {
        self.components.values().flat_map(|component| component.tools.iter().map(String::as_str)).collect()
    }

    /// The values of the variables at this start: what `provider` has for a
    /// name, or else the default. [`variables::from_environment`] is such a
    /// provider.
    ///
    /// # Errors
    /// All variables that have no usable value.
    pub fn values(&self, provider: &impl Fn(&str) -> Option<OsString>) -> Result<Values, MissingVariables> {
        Values::of(&self.variables, provider)
    }

    fn parse_named(file: &str, text: &str, base_dir: &Path, profile: Option<&str>) -> Result<Self, Error> {
        let document = Document::new(file, text);
        let application = read_document(&document, text, base_dir, profile);
        let found = document.into_found();
        if let Some(diagnostics) = Diagnostics::of(&found) {
            return Err(diagnostics.into());
        }
        match application {
            Some(application) => Ok(Self { warnings: found, ..application }),
            // Nothing is left out without a word; if it ever is, it is told here.
            None => Err(unexplained(file).into()),
        }
    }
}

fn unexplained(file: &str) -> Diagnostics {
    let document = Document::new(file, "");
    document.error(0..0, "the manifest cannot be used", "see https://spinframework.dev/manifest-reference");
    Diagnostics::always(document.into_found())
}

fn read_document(document: &Document<'_>, text: &str, base_dir: &Path, profile: Option<&str>) -> Option<Application> {
    let (root, syntax) = DeTable::parse_recoverable(text);
    let is_other = version_is_other(root.get_ref(), document);
    if !is_other {
        for error in &syntax {
            let span = error.span().unwrap_or(0..0);
            document.error(span, error.message().trim(), "see https://toml.io for how it is written");
        }
    }
    // What is behind a slip of the pen, or in another format, would be told
    // wrong things about.
    if is_other || !syntax.is_empty() {
        return None;
    }
    read_root(document, root.get_ref(), base_dir, profile)
}

/// Looks at the version alone first: a manifest of another version has other
/// keys, and complaints about those would lead astray.
fn version_is_other(root: &DeTable<'_>, document: &Document<'_>) -> bool {
    let Some(version) = root.get("spin_manifest_version") else {
        // It is missed with all else.
        return false;
    };
    if matches!(version.get_ref(), DeValue::Integer(number) if number.as_str() == "2") {
        return false;
    }
    document.error(
        version.span(),
        "only version 2 of the manifest is supported",
        "write `spin_manifest_version = 2`; \
         https://spinframework.dev/manifest-reference shows the format",
    );
    true
}

fn read_root<'d>(
    document: &'d Document<'d>,
    entries: &'d DeTable<'d>,
    base_dir: &Path,
    profile: Option<&str>,
) -> Option<Application> {
    let root = Table::root(document, entries);
    root.need("spin_manifest_version", "write `spin_manifest_version = 2`");
    let (variables, declared) = variables::read(root.get("variables"));
    let details = root
        .need("application", "write [application] with a `name`")
        .and_then(|node| details(node, &declared, base_dir));
    let tables = root.get("component").map(Node::entries).unwrap_or_default();
    let named: BTreeSet<&str> = tables.iter().map(|(id, _)| id.text()).collect();
    let trigger = root.get("trigger");
    let Triggers { triggers, inline } = triggers::read(trigger, &named, base_dir);
    root.close();
    for (id, _) in &tables {
        check_id(*id);
    }

    let defaults = details.as_ref().map(|details| details.tool.limits).unwrap_or_default();
    let mcp = details.as_ref().map(|details| details.tool.mcp.clone()).unwrap_or_default();
    let reading = Reading { base: base_dir, declared: &declared, defaults, profile };
    let mut profiles = Profiles::default();
    let mut components = BTreeMap::new();
    let mut renderer_places = BTreeMap::new();
    let mut tool_places = BTreeMap::new();
    let tables_ids = tables.iter().map(|(id, node)| (id.text().to_owned(), id.place(), *node));
    let inline_ids = inline.into_iter().map(|(id, node)| (id, node.place(), node));
    for (id, place, node) in tables_ids.chain(inline_ids) {
        let read = reading.component(&id, &place, node, &mut profiles);
        let Some(Read { mut component, renderer_place, tool_places: places }) = read else { continue };
        tool_places.insert(id.clone(), take_servers(&mut component, places, &mcp));
        if let Some(place) = renderer_place {
            renderer_places.insert(id.clone(), place);
        }
        components.insert(id, component);
    }
    check_profile(profile, &profiles, document);

    let known = named.iter().copied().chain(components.keys().map(String::as_str)).collect();
    check_servers(&mcp, &known, document);
    let tools = tool_uses(&components, &tool_places);
    references::check_tools(&tools, &known, document);
    let mut used = check_references(&triggers, &components, &renderer_places, &known, document);
    used.extend(tools.iter().map(|(_, tool, _)| *tool));
    // What is refused may have been what uses them.
    if !document.has_errors() {
        warn_of_unused(&tables, &used, document);
    }
    if !triggers.iter().any(|trigger| matches!(trigger.route, TriggerRoute::Public(_))) {
        no_way_in(trigger, document, &details);
    }
    let details = details?;
    Some(Application {
        name: details.name,
        version: details.version,
        description: details.description,
        authors: details.authors,
        variables,
        triggers,
        mcp: details.tool.mcp,
        components,
        warnings: Vec::new(),
    })
}

fn warn_of_unused(tables: &[(Name<'_>, Node<'_>)], used: &BTreeSet<&str>, document: &Document<'_>) {
    for (id, _) in tables.iter().filter(|(id, _)| !used.contains(id.text())) {
        let message = format!("component `{}` is never used", id.text());
        document.push(id.place().warning(message, "name it in a [[trigger.http]] or remove it"));
    }
}

/// Says that nothing could reach the application, if no mistake in a trigger
/// says it already.
fn no_way_in(trigger: Option<Node<'_>>, document: &Document<'_>, details: &Option<Details<'_>>) {
    if document.has_errors() && trigger.is_some() {
        return;
    }
    let message = "the application has no HTTP trigger with a path, so nothing could reach it";
    let help = "add [[trigger.http]] with a `route`, such as \"/...\", and a `component`";
    if let Some(details) = details {
        details.node.fail::<()>(message, help);
    }
}

/// What stands in `[application]`.
struct Details<'d> {
    node: Node<'d>,
    name: String,
    version: Option<String>,
    description: Option<String>,
    authors: Vec<String>,
    tool: ApplicationTool,
}

fn details<'d>(node: Node<'d>, declared: &Declared<'_>, base: &Path) -> Option<Details<'d>> {
    let table = node.table("[application]")?;
    let text = |key| table.get(key).and_then(Node::text).map(str::to_owned);
    let (version, description) = (text("version"), text("description"));
    let name = table.need("name", "write a name for logs and messages, such as \"my-app\"").and_then(|node| {
        let name = node.text()?;
        match name.trim().is_empty() {
            true => {
                node.fail("the application's `name` is empty", "write a name for logs and messages, such as \"my-app\"")
            }
            false => Some(name.to_owned()),
        }
    });
    let authors = table.get("authors").and_then(Node::texts).unwrap_or_default();
    if let Some(node) = table.get("targets") {
        targets::check(node);
    }
    settings_of_triggers(table.get("trigger"));
    let tool = tool::of_application(table.get("tool"), declared, base);
    table.close();
    let authors = authors.into_iter().map(|(author, _)| author.to_owned()).collect();
    Some(Details { node, name: name?, version, description, authors, tool })
}

/// `[application.trigger.http]`: Spin reads only `base` there, which may be
/// only what it is anyway.
fn settings_of_triggers(node: Option<Node<'_>>) {
    for (name, node) in node.map(Node::entries).unwrap_or_default() {
        if name.text() != "http" {
            if !node.says_nothing() {
                let message = format!("triggers of type `{}` are not supported", name.text());
                name.fail::<()>(message, "remove their settings");
            }
            continue;
        }
        let Some(table) = node.table("[application.trigger.http]") else { continue };
        if let Some(base) = table.get("base")
            && base.text().is_some_and(|text| text != "/")
        {
            base.fail::<()>("`base` is of older manifests", "remove it, and write it before each `route`");
        }
        table.close();
    }
}

fn check_id(id: Name<'_>) {
    if let Err(why) = names::check(id.text(), Style::Kebab) {
        id.fail::<()>(
            format!("`{}` cannot be the identifier of a component: {why}", id.text()),
            "use letters and digits, with `-` between words that begin with a letter",
        );
    }
}

fn check_profile(profile: Option<&str>, profiles: &Profiles, document: &Document<'_>) {
    let Some(profile) = profile else { return };
    if profiles.names().contains(profile) {
        return;
    }
    let help = match profiles.names().is_empty() {
        true => format!("add [component.ID.profile.{profile}], or choose none"),
        false => format!("choose one of {}", listed(profiles.names().iter().map(String::as_str))),
    };
    document.error(0..0, format!("no component has the profile `{profile}`"), help);
}

/// Moves the MCP servers among a component's tools to where they belong. Gives back where
/// the components among them are named.
fn take_servers(component: &mut Component, places: Vec<Place>, servers: &BTreeMap<String, McpServer>) -> Vec<Place> {
    let named = std::mem::take(&mut component.tools).into_iter().zip(places);
    let (of_servers, of_components): (Vec<_>, Vec<_>) = named.partition(|(name, _)| servers.contains_key(name));
    component.mcp = of_servers.into_iter().map(|(name, _)| name).collect();
    let (tools, places) = of_components.into_iter().unzip();
    component.tools = tools;
    places
}

/// A name in `tools` is that of one thing.
fn check_servers(servers: &BTreeMap<String, McpServer>, known: &BTreeSet<&str>, document: &Document<'_>) {
    for (name, server) in servers.iter().filter(|(name, _)| known.contains(name.as_str())) {
        let message = format!("a component is named `{name}` as well, so `tools` could mean either");
        document.push(server.place.error(message, "give one of them another name"));
    }
}

/// Which component may call which, and where that is written.
fn tool_uses<'a>(
    components: &'a BTreeMap<String, Component>,
    places: &'a BTreeMap<String, Vec<crate::Place>>,
) -> ToolUses<'a> {
    let named = components.iter().filter_map(|(by, component)| Some((by, component, places.get(by)?)));
    let uses = named.flat_map(|(by, component, places)| {
        component.tools.iter().zip(places).map(move |(tool, place)| (by.as_str(), tool.as_str(), place))
    });
    uses.collect()
}

/// Checks what components and triggers name; tells which components are used.
fn check_references<'a>(
    triggers: &'a [HttpTrigger],
    components: &'a BTreeMap<String, Component>,
    renderer_places: &'a BTreeMap<String, crate::Place>,
    known: &BTreeSet<&str>,
    document: &Document<'_>,
) -> BTreeSet<&'a str> {
    let renderers: Renderers<'a> = components
        .iter()
        .filter_map(|(id, component)| {
            let place = renderer_places.get(id)?;
            Some((id.as_str(), (component.renderer.as_ref()?.component()?, place)))
        })
        .collect();
    references::check(&renderers, known, document);
    let of_components = components
        .iter()
        .flat_map(|(by, component)| component.composed_of().map(move |(needed, place)| (by.as_str(), needed, place)));
    let mut used: BTreeSet<&str> = triggers.iter().filter_map(|trigger| trigger.answer.component()).collect();
    used.extend(renderers.values().map(|(id, _)| *id));
    for dependency in of_components.chain(triggers::component_dependencies(triggers)) {
        references::check_dependency(dependency, components, known, document);
        used.insert(dependency.1);
    }
    used
}

#[cfg(test)]
#[path = "application_tests.rs"]
mod tests;
