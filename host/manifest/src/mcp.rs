//! `[application.tool.nala.mcp.NAME]`: MCP servers elsewhere, whose tools components may
//! call like those of components.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use crate::diagnostic::Place;
use crate::names::{self, Style};
use crate::quantity;
use crate::reader::{Node, Table};
use crate::template::Template;
use crate::variables::{self, Declared};

/// A server that components may be given the tools of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Where it is described.
    pub place: Place,
    /// Where it is.
    pub endpoint: McpEndpoint,
    /// The tools that may be used, as the server names them. None: all.
    pub tools: Option<Vec<String>>,
    /// How long a call may take. None: as long as whoever calls has.
    pub timeout: Option<Duration>,
}

/// Where an MCP server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEndpoint {
    /// At a URL.
    Remote {
        /// Its endpoint.
        url: Template,
        /// Where that stands.
        place: Place,
        /// Fields that each request has, by their names.
        headers: BTreeMap<String, Template>,
        /// How the server is told who asks.
        access: McpAccess,
    },
    /// A program of this machine, by its standard input and output.
    Program {
        /// A path, or a name that is looked for in `PATH`.
        command: String,
        /// Its arguments.
        arguments: Vec<Template>,
        /// Its environment.
        environment: BTreeMap<String, Template>,
        /// Where it runs: the manifest's folder.
        folder: PathBuf,
    },
}

/// How a server is told who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpAccess {
    /// It is not.
    None,
    /// `token`
    Token(Template),
    /// `oauth = { client_id, client_secret, … }`
    Client {
        /// The client's identifier.
        client_id: Template,
        /// Its secret.
        client_secret: Template,
        /// What is asked for.
        scopes: Vec<String>,
        /// Where its authorization server may be besides the server's own origin, as
        /// `allowed_outbound_hosts` has it: whoever the server names is sent the secret.
        hosts: Vec<String>,
    },
    /// `oauth = "login"`: somebody logs in, by `nala-host mcp login`.
    Login,
}

/// Reads the servers of an application.
pub(crate) fn read(node: Option<Node<'_>>, declared: &Declared<'_>, base: &Path) -> BTreeMap<String, McpServer> {
    let mut servers = BTreeMap::new();
    for (name, node) in node.map(Node::entries).unwrap_or_default() {
        if let Err(why) = names::check(name.text(), Style::Kebab) {
            let help = "use letters and digits, with `-` between words that begin with a letter";
            name.fail::<()>(format!("`{}` cannot be the name of an MCP server: {why}", name.text()), help);
        } else if let Some(server) = server(name.text(), node, declared, base) {
            servers.insert(name.text().to_owned(), server);
        }
    }
    servers
}

fn server(name: &str, node: Node<'_>, declared: &Declared<'_>, base: &Path) -> Option<McpServer> {
    let table = node.table(format!("MCP server `{name}`"))?;
    let tools = table.get("tools").and_then(Node::texts);
    let tools = tools.map(|tools| tools.into_iter().map(|(tool, _)| tool.to_owned()).collect());
    let timeout = table.get("timeout").and_then(timeout);
    let endpoint = match (table.get("url"), table.get("command")) {
        (Some(url), None) => remote(url, &table, declared),
        (None, Some(command)) => program(command, &table, declared, base),
        (Some(_), Some(command)) => command.fail("a server has a `url` or a `command`, not both", "remove one of them"),
        (None, None) => table.fail(
            format!("the MCP server `{name}` is nowhere"),
            "write `url = \"https://example.com/mcp\"`, or `command = \"program\"` for one of this machine",
        ),
    };
    table.close();
    Some(McpServer { place: node.place(), endpoint: endpoint?, tools, timeout })
}

fn remote(node: Node<'_>, table: &Table<'_>, declared: &Declared<'_>) -> Option<McpEndpoint> {
    let url = variables::template(node, declared)?;
    if let Some(text) = url.literal()
        && let Err(why) = check_url(text)
    {
        return node.fail(format!("`{text}` is no address of a server: {why}"), "write \"https://example.com/mcp\"");
    }
    let mut headers = BTreeMap::new();
    for (name, node) in table.get("headers").map(Node::entries).unwrap_or_default() {
        // Those that the protocol has, and those that are about the message itself.
        let known = name.text().to_ascii_lowercase();
        let is_taken = known.starts_with("mcp-")
            || ["accept", "content-length", "content-type", "host", "last-event-id", "transfer-encoding"]
                .contains(&known.as_str());
        let is_field = !known.is_empty()
            && known.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        if !is_field || is_taken {
            name.fail::<()>(format!("`{}` cannot be set", name.text()), "name a field such as X-Api-Key");
        } else if let Some(value) = variables::template(node, declared) {
            headers.insert(name.text().to_owned(), value);
        }
    }
    let access = match (table.get("token"), table.get("oauth")) {
        (None, None) => McpAccess::None,
        (Some(token), None) => McpAccess::Token(variables::template(token, declared)?),
        (None, Some(oauth)) => oauth_of(oauth, declared)?,
        (Some(_), Some(oauth)) => {
            return oauth.fail("a server has a `token` or `oauth`, not both", "remove one of them");
        }
    };
    Some(McpEndpoint::Remote { url, place: node.place(), headers, access })
}

/// Reads the address of a server.
///
/// # Errors
/// Why it is none.
pub fn check_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" if url.username().is_empty() && url.password().is_none() => {}
        "http" | "https" => return Err("a name and a password in it would be seen by everyone".to_owned()),
        scheme => return Err(format!("`{scheme}` is neither http nor https")),
    }
    if url.fragment().is_some() {
        return Err("it has a fragment".to_owned());
    }
    Ok(url)
}

fn oauth_of(node: Node<'_>, declared: &Declared<'_>) -> Option<McpAccess> {
    const HELP: &str = "write \"login\", or { client_id = \"…\", client_secret = \"{{ secret }}\" }";
    if node.is_text() {
        return match node.text()? {
            "login" => Some(McpAccess::Login),
            other => node.fail(format!("`{other}` is no way to be authorized"), HELP),
        };
    }
    let table = node.table("`oauth`")?;
    let client_id = table.need("client_id", HELP).and_then(|node| variables::template(node, declared));
    let client_secret = table.need("client_secret", HELP).and_then(|node| variables::template(node, declared));
    let owned = |texts: Vec<(&str, Node<'_>)>| texts.into_iter().map(|(text, _)| text.to_owned()).collect();
    let scopes = table.get("scopes").and_then(Node::texts).map(owned).unwrap_or_default();
    let hosts = table.get("hosts").and_then(Node::texts).map(owned).unwrap_or_default();
    table.close();
    Some(McpAccess::Client { client_id: client_id?, client_secret: client_secret?, scopes, hosts })
}

fn program(node: Node<'_>, table: &Table<'_>, declared: &Declared<'_>, base: &Path) -> Option<McpEndpoint> {
    let command = node.text()?;
    if command.trim().is_empty() || command.contains('\0') {
        return node.fail("a command cannot be empty", "write the name of a program, or its path");
    }
    // What has a slash is a path from the manifest's folder, as sources are.
    let command = if command.contains('/') { base.join(command).display().to_string() } else { command.to_owned() };
    let arguments = table.get("args").and_then(Node::list).unwrap_or_default();
    let arguments = arguments.into_iter().filter_map(|node| variables::template(node, declared)).collect();
    let mut environment = BTreeMap::new();
    for (name, node) in table.get("environment").map(Node::entries).unwrap_or_default() {
        if name.text().is_empty() || name.text().contains(['=', '\0']) {
            name.fail::<()>(format!("`{}` is no name of a variable", name.text()), "write a name such as API_KEY");
        } else if let Some(value) = variables::template(node, declared) {
            environment.insert(name.text().to_owned(), value);
        }
    }
    let folder = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base.to_owned() };
    Some(McpEndpoint::Program { command, arguments, environment, folder })
}

fn timeout(node: Node<'_>) -> Option<Duration> {
    match quantity::duration(node.text()?) {
        Some(timeout) if !timeout.is_zero() => Some(timeout),
        _ => node.fail("`timeout` is no time", "write \"30s\""),
    }
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
