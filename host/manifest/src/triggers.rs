//! `[[trigger.http]]`: which requests the application answers, and who does.
//!
//! Source: <https://spinframework.dev/http-trigger>.

use std::collections::BTreeSet;
use std::path::Path;

use crate::dependencies::{self, Dependency};
use crate::diagnostic::Place;
use crate::names::{self, Style};
use crate::reader::{Node, Table, likeliest, listed};
use crate::routes::{Route, RouteTable};
use crate::static_response::{self, StaticResponse};

/// `[[trigger.http]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTrigger {
    /// Its name: the one in the manifest, or one made of the component's.
    pub id: String,
    /// From where it is reached.
    pub route: TriggerRoute,
    /// Who answers.
    pub answer: Answer,
    /// What requests go through before the component, the outermost first. Private
    /// triggers and static responses have none.
    pub middleware: Vec<Dependency>,
}

/// From where a trigger is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerRoute {
    /// By these paths.
    Public(Route),
    /// From components of the application only, as
    /// `http://COMPONENT.spin.internal/`.
    Private,
}

/// Who answers a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The component with this identifier.
    Component(String),
    /// The host, always the same.
    Static(StaticResponse),
}

impl Answer {
    /// The identifier, if it is a component.
    #[must_use]
    pub fn component(&self) -> Option<&str> {
        match self {
            Self::Component(id) => Some(id),
            Self::Static(_) => None,
        }
    }
}

/// A trigger before the components that stand in triggers have names.
pub(crate) struct Written<'d> {
    id: Option<String>,
    route: TriggerRoute,
    answer: WrittenAnswer<'d>,
    middleware: Vec<Dependency>,
}

enum WrittenAnswer<'d> {
    Named(String),
    Inline(Node<'d>),
    Static(StaticResponse),
}

/// What was read of `trigger`.
pub(crate) struct Triggers<'d> {
    pub(crate) triggers: Vec<HttpTrigger>,
    /// The components that stand in triggers, with the names they got.
    pub(crate) inline: Vec<(String, Node<'d>)>,
}

/// Reads `trigger`, whose components are in `known` or described in it.
pub(crate) fn read<'d>(node: Option<Node<'d>>, known: &BTreeSet<&str>, base: &Path) -> Triggers<'d> {
    let mut written = Vec::new();
    for (name, node) in node.map(Node::entries).unwrap_or_default() {
        if name.text() == "http" {
            written = read_http(node, known, base);
        } else if !node.says_nothing() {
            let help = match likeliest(name.text(), ["http"].into_iter()) {
                Some(_) => "did you mean `http`?",
                None => "only [[trigger.http]] is served: remove this trigger",
            };
            name.fail::<()>(format!("triggers of type `{}` are not supported", name.text()), help);
        }
    }
    named(written, known)
}

fn read_http<'d>(node: Node<'d>, known: &BTreeSet<&str>, base: &Path) -> Vec<Written<'d>> {
    if !node.is_list() {
        node.fail::<()>("`trigger.http` must be a list of tables", "write [[trigger.http]], with two brackets");
        return Vec::new();
    }
    let mut table = RouteTable::new();
    let mut ids = BTreeSet::new();
    let mut written = Vec::new();
    for node in node.list().unwrap_or_default() {
        let Some(fields) = node.table("[[trigger.http]]") else { continue };
        let trigger = trigger(&fields, known, base, &mut table);
        if let Some(id) = fields.get("id").and_then(Node::full_text)
            && !ids.insert(id)
        {
            let help = "give each trigger an `id` of its own, or none";
            fields.fail::<()>(format!("two triggers have the `id` `{id}`"), help);
        }
        fields.close();
        written.extend(trigger);
    }
    written
}

fn trigger<'d>(
    table: &Table<'d>,
    known: &BTreeSet<&str>,
    base: &Path,
    routes: &mut RouteTable<()>,
) -> Option<Written<'d>> {
    let id = table.get("id").and_then(Node::text).filter(|id| !id.is_empty()).map(str::to_owned);
    table.get("executor").map(executor);
    let help = "write `route = \"/...\"` for all paths, or such as \"/chat\" or \"/files/...\"";
    let route = table.need("route", help).and_then(|node| route(node, routes));
    let before = table.get("dependencies");
    let middleware = before.map(|node| middleware(node, base)).unwrap_or_default();
    if let Some(node) = table.get("components")
        && !node.says_nothing()
    {
        node.fail::<()>("an HTTP trigger has one component", "name the one that answers with `component`");
    }
    let component = table.get("component");
    let response = table.get("static_response");
    let answer = match (component, response) {
        (Some(node), None) => answer(node, known),
        (None, Some(node)) => static_response::read(node).map(WrittenAnswer::Static),
        (Some(_), Some(node)) => node.fail(
            "the trigger has a `component` and a `static_response`, and only one can answer",
            "remove one of them",
        ),
        (None, None) => table.fail(
            "nobody answers what the trigger takes",
            "write `component = \"ID\"`, or `static_response = { body = \"…\" }`",
        ),
    };
    if let (Some(TriggerRoute::Private), Some(WrittenAnswer::Static(_))) = (&route, &answer) {
        return table.fail(
            "a private trigger is reached by the name of its component, and this one has none",
            "give it a `route` with a path, or a `component`",
        );
    }
    // Nothing would go through it, and what was meant to guard the component would not.
    if let Some(node) = before.filter(|_| !middleware.is_empty()) {
        if let Some(WrittenAnswer::Static(_)) = &answer {
            return node.fail("a static response goes through no middleware", "remove `dependencies`");
        }
        if let Some(TriggerRoute::Private) = &route {
            return node.fail(
                "what is asked of a private trigger goes through no middleware: the component itself is called",
                "remove `dependencies`, or give the trigger a `route` with a path, which other components ask through \
                 http://self.alt/",
            );
        }
    }
    Some(Written { id, route: route?, answer: answer?, middleware })
}

fn route(node: Node<'_>, routes: &mut RouteTable<()>) -> Option<TriggerRoute> {
    if node.is_table() {
        let table = node.table("`route`")?;
        let private = table.need("private", "write { private = true }, or a path").and_then(Node::boolean);
        table.close();
        return match private? {
            true => Some(TriggerRoute::Private),
            false => node.fail("a route that is not private has a path", "write it, such as \"/chat\" or \"/...\""),
        };
    }
    if !node.is_text() {
        let help = "write a path, such as \"/chat\" or \"/...\", or { private = true }";
        return node.fail("`route` must be a path or a table", help);
    }
    let text = node.text()?;
    let route: Route = match text.parse() {
        Ok(route) => route,
        Err(error) => return node.fail(format!("`{text}` is no route: {error}"), ""),
    };
    match routes.insert(route.clone(), ()) {
        Ok(()) => Some(TriggerRoute::Public(route)),
        Err(other) => {
            let message = format!("the route `{route}` matches the same paths as `{other}` before it");
            node.fail(message, "give each trigger a route of its own")
        }
    }
}

fn executor(node: Node<'_>) {
    let help = "remove `executor`: what a component exports tells how it is called";
    let Some(table) = node.table("`executor`") else { return };
    match table.need("type", help).map(|node| (node.text(), node)) {
        Some((Some("http" | "spin"), _)) => table.close(),
        Some((Some("wagi"), node)) => {
            let help = "build the component for wasi:http and remove `executor`";
            node.fail::<()>("the executor `wagi` is not supported", help);
        }
        Some((Some(other), node)) => {
            node.fail::<()>(format!("there is no executor `{other}`"), help);
        }
        Some((None, _)) | None => {}
    }
}

fn middleware(node: Node<'_>, base: &Path) -> Vec<Dependency> {
    let Some(table) = node.table("`dependencies` of an HTTP trigger") else { return Vec::new() };
    let list = table.get("middleware").and_then(Node::list).unwrap_or_default();
    table.close();
    list.into_iter().filter_map(|node| dependencies::of_trigger(node, base)).collect()
}

fn answer<'d>(node: Node<'d>, known: &BTreeSet<&str>) -> Option<WrittenAnswer<'d>> {
    if node.is_table() {
        return Some(WrittenAnswer::Inline(node));
    }
    if !node.is_text() {
        return node.fail("`component` must name a component, or describe it", "write `component = \"ID\"`");
    }
    let id = node.text()?;
    match unknown(id, known) {
        None => Some(WrittenAnswer::Named(id.to_owned())),
        Some((message, help)) => node.fail(message, help),
    }
}

/// The message and the help, if there is no component `id`.
pub(crate) fn unknown(id: &str, known: &BTreeSet<&str>) -> Option<(String, String)> {
    if known.contains(id) {
        return None;
    }
    let help = match known.is_empty() {
        true => format!("add a table [component.{id}]"),
        false => format!("add a table [component.{id}], or name one of {}", listed(known.iter().copied())),
    };
    Some((format!("there is no component `{id}`"), help))
}

/// Gives triggers and the components in them names, the same ones as Spin.
fn named<'d>(written: Vec<Written<'d>>, known: &BTreeSet<&str>) -> Triggers<'d> {
    let mut ids: BTreeSet<String> = written.iter().filter_map(|trigger| trigger.id.clone()).collect();
    let mut components: BTreeSet<String> = known.iter().map(|id| (*id).to_owned()).collect();
    let mut triggers = Vec::new();
    let mut inline = Vec::new();
    for trigger in written {
        let natural = match &trigger.answer {
            WrittenAnswer::Named(component) => Some(format!("{component}-http-trigger")),
            WrittenAnswer::Inline(_) | WrittenAnswer::Static(_) => None,
        };
        let id = trigger.id.unwrap_or_else(|| free(natural, "http-trigger", &mut ids));
        let answer = match trigger.answer {
            WrittenAnswer::Named(component) => Answer::Component(component),
            WrittenAnswer::Static(response) => Answer::Static(response),
            WrittenAnswer::Inline(node) => {
                let natural = Some(format!("{id}-component")).filter(|id| names::check(id, Style::Kebab).is_ok());
                let component = free(natural, "inline-component", &mut components);
                inline.push((component.clone(), node));
                Answer::Component(component)
            }
        };
        triggers.push(HttpTrigger { id, route: trigger.route, answer, middleware: trigger.middleware });
    }
    Triggers { triggers, inline }
}

/// The first free one of a name and a word with numbers; it is taken then.
fn free(natural: Option<String>, word: &str, taken: &mut BTreeSet<String>) -> String {
    let mut names = natural.into_iter().chain((1..).map(|number: u64| format!("{word}{number}")));
    names.find(|name| taken.insert(name.clone())).unwrap_or_default()
}

/// Where each trigger's middleware names a component of the application.
pub(crate) fn component_dependencies(triggers: &[HttpTrigger]) -> impl Iterator<Item = (&str, &str, &Place)> {
    triggers.iter().flat_map(|trigger| {
        trigger.middleware.iter().filter_map(|dependency| match &dependency.from {
            dependencies::Provider::Component(id) => Some((trigger.id.as_str(), id.as_str(), &dependency.place)),
            _ => None,
        })
    })
}
