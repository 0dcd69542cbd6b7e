//! Nala's own settings, in tables that Spin leaves to other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::diagnostic::Place;
use crate::limits::{self, Limits};
use crate::mcp::{self, McpServer};
use crate::names::{self, Style};
use crate::quantity;
use crate::reader::Node;
use crate::variables::Declared;

/// Who answers `nala:chat` for a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renderer {
    /// The component with this identifier.
    Component(String),
    /// The host itself, by the chat template of the model:
    /// `renderer = "nala:chat-template"`.
    ChatTemplate,
}

impl Renderer {
    /// The identifier, if it is a component.
    #[must_use]
    pub fn component(&self) -> Option<&str> {
        match self {
            Self::Component(id) => Some(id),
            Self::ChatTemplate => None,
        }
    }
}

/// What a component learns about time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// All that the host knows.
    Exact,
    /// Too little to measure by it what others do.
    Coarse,
}

/// `[component.ID.tool.nala]`
#[derive(Default)]
pub(crate) struct ComponentTool {
    pub(crate) renderer: Option<(Renderer, Place)>,
    /// Each with where it is named.
    pub(crate) tools: Vec<(String, Place)>,
    pub(crate) clock: Option<Clock>,
    pub(crate) keyed: Option<Keyed>,
    pub(crate) telemetry: bool,
    pub(crate) limits: Limits,
}

/// `keyed = { by, idle, most }`: calls of its tools share instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The argument by which an instance is chosen.
    pub by: String,
    /// How long an instance is kept that is not called.
    pub idle: Duration,
    /// How many a tenant has.
    pub most: u32,
}

/// What is kept if nothing is said of it.
const IDLE: Duration = Duration::from_secs(600);
const MOST: u32 = 8;

/// Reads `tool` of a component.
pub(crate) fn of_component(node: Option<Node<'_>>) -> ComponentTool {
    let Some(node) = nala(node) else { return ComponentTool::default() };
    let Some(table) = node.table("[component.ID.tool.nala]") else { return ComponentTool::default() };
    let tool = ComponentTool {
        renderer: table.get("renderer").and_then(renderer),
        tools: table.get("tools").map(tools).unwrap_or_default(),
        clock: table.get("clock").and_then(clock),
        keyed: table.get("keyed").and_then(keyed),
        telemetry: table.get("telemetry").and_then(Node::boolean).unwrap_or(false),
        limits: limits::read(table.get("limits")),
    };
    table.close();
    tool
}

/// `[application.tool.nala]`
#[derive(Default)]
pub(crate) struct ApplicationTool {
    /// The limits of components that set none.
    pub(crate) limits: Limits,
    pub(crate) mcp: BTreeMap<String, McpServer>,
}

/// Reads `tool` of the application.
pub(crate) fn of_application(node: Option<Node<'_>>, declared: &Declared<'_>, base: &Path) -> ApplicationTool {
    let Some(table) = nala(node).and_then(|node| node.table("[application.tool.nala]")) else {
        return ApplicationTool::default();
    };
    let tool =
        ApplicationTool { limits: limits::read(table.get("limits")), mcp: mcp::read(table.get("mcp"), declared, base) };
    table.close();
    tool
}

/// Ours of the tables; what is in the others is theirs to check.
fn nala(node: Option<Node<'_>>) -> Option<Node<'_>> {
    let mut ours = None;
    for (name, node) in node?.entries() {
        if !node.is_table() {
            node.fail::<()>(format!("`tool.{}` must be a table", name.text()), "write the program's settings into it");
        } else if name.text() == "nala" {
            ours = Some(node);
        }
    }
    ours
}

fn renderer(node: Node<'_>) -> Option<(Renderer, Place)> {
    let text = node.text()?;
    let renderer = match text {
        "nala:chat-template" => Renderer::ChatTemplate,
        id if names::check(id, Style::Kebab).is_ok() => Renderer::Component(id.to_owned()),
        _ => {
            let help = "name a component, or write \"nala:chat-template\" for the host's own";
            return node.fail(format!("there is no renderer `{text}`"), help);
        }
    };
    Some((renderer, node.place()))
}

/// Components whose tools may be called.
fn tools(node: Node<'_>) -> Vec<(String, Place)> {
    let (mut tools, mut known): (Vec<(String, Place)>, BTreeSet<&str>) = Default::default();
    for (id, node) in node.texts().unwrap_or_default() {
        if names::check(id, Style::Kebab).is_err() {
            node.fail::<()>(
                format!("`{id}` cannot be a component"),
                "name components that export nala:tools/provider, or MCP servers",
            );
        } else if !known.insert(id) {
            node.fail::<()>(format!("`{id}` is named twice"), "remove one of them");
        } else {
            tools.push((id.to_owned(), node.place()));
        }
    }
    tools
}

fn keyed(node: Node<'_>) -> Option<Keyed> {
    let table = node.table("`keyed`")?;
    let by = table.need("by", "write `by = \"session\"`: the argument by which an instance is chosen");
    let by = by.and_then(|node| match node.text()? {
        text if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            Some(text.to_owned())
        }
        text => node.fail(format!("`{text}` cannot be an argument"), "use letters, digits and `_`"),
    });
    let idle = table.get("idle").map_or(Some(IDLE), |node| match quantity::duration(node.text()?) {
        Some(idle) if !idle.is_zero() => Some(idle),
        _ => node.fail("`idle` is no time", "write \"10m\""),
    });
    let most = table.get("most").map_or(Some(MOST), |node| match node.integer()?.try_into() {
        Ok(most) if most > 0 => Some(most),
        _ => node.fail("`most` must be 1 or more", "write a number such as 8"),
    });
    table.close();
    Some(Keyed { by: by?, idle: idle?, most: most? })
}

fn clock(node: Node<'_>) -> Option<Clock> {
    match node.text()? {
        "exact" => Some(Clock::Exact),
        "coarse" => Some(Clock::Coarse),
        other => node.fail(format!("there is no clock `{other}`"), "write \"exact\" or \"coarse\""),
    }
}
