//! The MCP servers that a manifest names, as tools of its components.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use futures::future::{BoxFuture, join_all};
use http::{HeaderName, HeaderValue};
use nala_egress::AllowList;
use nala_manifest::variables::Values;
use nala_manifest::{Application, McpAccess, McpEndpoint, McpServer};
use nala_mcp::{Access, Asked, Endpoint, Grant, Keeper, Known, Program, Remote, Server, Settings, Tokens, Who};
use nala_wasm::{Answer, Elsewhere, ElsewhereCall, Tool, ToolError};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use url::Url;

use crate::console::{Console, Help};
use crate::credentials::Home;
use crate::program;
use crate::services::Services;

/// How long all servers together have to tell their tools before the host goes on without
/// them.
const PATIENCE: Duration = Duration::from_secs(15);
/// The same for those of an application that was sent: others are served after it.
const PATIENCE_WITH_SENT: Duration = Duration::from_secs(2);

/// The longest message of a server, in bytes; what a component takes of an answer is a limit
/// of its own.
const MESSAGE: usize = 8 << 20;

/// How long a call may take where neither the manifest nor the caller says less.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// The servers of an application that run as programs, and who starts them.
#[derive(Default)]
pub(super) struct Programs {
    keeper: OnceLock<Arc<Keeper>>,
}

/// The hidden verb of the process that starts programs.
///
/// # Errors
/// It was not started by a host.
pub(crate) fn keep() -> anyhow::Result<()> {
    nala_mcp::keep().context("this verb is not for people: the host starts it for the MCP servers of a manifest")
}

impl Programs {
    /// Starts whoever starts the programs of an application, if it has any. Later the right
    /// to do so is gone.
    ///
    /// # Errors
    /// This program cannot be started again.
    pub(super) fn start_keeper(&self, application: &Application, values: &Values) -> anyhow::Result<()> {
        if self.keeper.get().is_none() {
            let known = known(application, values)?;
            if !known.is_empty() {
                let mut command = Command::new(program::path()?);
                command.arg("keep-servers");
                let keeper =
                    Keeper::spawn(command, &known).context("the process that starts MCP servers cannot be started")?;
                let _there = self.keeper.set(Arc::new(keeper));
            }
        }
        Ok(())
    }

    fn keeper(&self, application: &Application, values: &Values) -> anyhow::Result<Arc<Keeper>> {
        self.start_keeper(application, values)?;
        self.keeper.get().cloned().context("nobody starts programs")
    }
}

/// The programs among the servers, in the order of their names.
fn programs(application: &Application) -> impl Iterator<Item = (&String, &McpServer)> {
    application.mcp.iter().filter(|(_, server)| matches!(server.endpoint, McpEndpoint::Program { .. }))
}

fn known(application: &Application, values: &Values) -> anyhow::Result<Vec<Known>> {
    let one = |(name, server): (&String, &McpServer)| {
        let McpEndpoint::Program { command, arguments, environment, folder } = &server.endpoint else {
            return Ok(None);
        };
        let value = |template| Ok(values.resolve(template)?.expose().to_owned());
        let environment = environment.iter().map(|(name, template)| Ok((name.clone(), value(template)?)));
        Ok(Some(Known {
            name: name.clone(),
            command: command.clone(),
            arguments: arguments.iter().map(value).collect::<anyhow::Result<_>>()?,
            environment: environment.collect::<anyhow::Result<_>>()?,
            folder: folder.clone(),
        }))
    };
    let all: anyhow::Result<Vec<Option<Known>>> = programs(application).map(one).collect();
    Ok(all?.into_iter().flatten().collect())
}

/// Whether a server is reached over the network.
pub(super) fn reach_out(application: &Application) -> bool {
    application.mcp.values().any(|server| matches!(server.endpoint, McpEndpoint::Remote { .. }))
}

/// Whether somebody has to log in at a server.
pub(super) fn need_logins(application: &Application) -> bool {
    let is_login = |server: &McpServer| matches!(server.endpoint, McpEndpoint::Remote { access: McpAccess::Login, .. });
    application.mcp.values().any(is_login)
}

/// The most servers of an application that was sent: each has connections that last.
const MOST_SENT: usize = 16;

/// What an application that was sent may not have: whoever sends one says nothing about the
/// host's machine.
pub(super) fn refuse_of_machine(application: &Application) -> anyhow::Result<()> {
    if let Some(server) = application.mcp.values().nth(MOST_SENT) {
        let what = format!("an application that is sent has at most {MOST_SENT} MCP servers");
        return Err(server.place.error(what, "leave out those that no component uses").into());
    }
    for (name, server) in &application.mcp {
        let (what, help) = match &server.endpoint {
            McpEndpoint::Program { .. } => ("starts no programs", "name a server by its `url`"),
            McpEndpoint::Remote { access: McpAccess::Login, .. } => {
                ("has nobody who logs in", "use a `token`, or `oauth` with the client's identifier and secret")
            }
            McpEndpoint::Remote { .. } => continue,
        };
        let what = format!("the MCP server `{name}` cannot be had: an application that is sent {what}");
        return Err(server.place.error(what, help).into());
    }
    Ok(())
}

/// A server, as tools of an application.
pub(crate) struct Named {
    server: Arc<Server>,
    services: Services,
    /// Where its requests may go; None for a program.
    allowed: Option<AllowList>,
}

/// What servers are made with.
pub(super) struct Making<'m> {
    pub(super) application: &'m Application,
    pub(super) values: &'m Values,
    pub(super) services: &'m Services,
    pub(super) programs: &'m Programs,
    pub(super) home: &'m Home,
    pub(super) console: Console,
}

impl Making<'_> {
    /// Makes those servers that components are given, and asks them for their tools. One that
    /// gives no answer has none until it does.
    ///
    /// # Errors
    /// What the manifest says of one is wrong.
    pub(super) fn all(&self) -> anyhow::Result<BTreeMap<String, Arc<Named>>> {
        let components = self.application.components.values();
        let used: BTreeSet<&String> = components.flat_map(|component| &component.mcp).collect();
        let mut all = BTreeMap::new();
        for (name, server) in self.application.mcp.iter().filter(|(name, _)| used.contains(name)) {
            all.insert(name.clone(), Arc::new(self.one(name, server)?));
        }
        if !all.is_empty() {
            self.begin(&all);
        }
        Ok(all)
    }

    /// Asks all of them at a time.
    fn begin(&self, all: &BTreeMap<String, Arc<Named>>) {
        let patience = match self.home {
            Home::Started => PATIENCE,
            Home::Deployed(_) => PATIENCE_WITH_SENT,
        };
        let starting = all.values().map(|named| async move {
            let started = tokio::time::timeout(patience, named.server.start(named.own())).await;
            let error = match started {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("it gave no answer within {patience:?}"),
            };
            let name = named.server.name();
            self.console.warn(&format!("The MCP server `{name}` has no tools now: {error}. It is tried again."));
        });
        Handle::current().block_on(join_all(starting));
    }

    fn one(&self, name: &str, server: &McpServer) -> anyhow::Result<Named> {
        let (endpoint, allowed) = match &server.endpoint {
            McpEndpoint::Program { .. } => {
                let at = programs(self.application).position(|(of, _)| of == name).unwrap_or_default();
                let keeper = self.programs.keeper(self.application, self.values)?;
                (Endpoint::Program(Program { keeper, index: u8::try_from(at)? }), None)
            }
            McpEndpoint::Remote { url, headers, access, .. } => {
                let value = |template| anyhow::Ok(self.values.resolve(template)?.expose().to_owned());
                let text = value(url)?;
                let url = self.url(server, &text)?;
                let mut fields = Vec::new();
                for (name, template) in headers {
                    fields.push(self.field(server, name, &value(template)?)?);
                }
                let mut hosts = vec![origin(&url)];
                let access = match access {
                    McpAccess::None => Access::None,
                    McpAccess::Token(token) => Access::Token(value(token)?),
                    McpAccess::Client { client_id, client_secret, scopes, hosts: of_server } => {
                        hosts.extend(of_server.iter().cloned());
                        let (client_id, client_secret) = (value(client_id)?, value(client_secret)?);
                        Access::Client(Grant { client_id, client_secret, scopes: scopes.clone() })
                    }
                    McpAccess::Login => {
                        hosts.push("https://*".to_owned());
                        Access::Login(Arc::new(self.services.logins().of(name, &url)))
                    }
                };
                let allowed = AllowList::parse(&hosts).map_err(|error| self.wrong(server, &error.to_string()))?;
                self.services.open_gate()?;
                (Endpoint::Remote(Remote { url, headers: fields, access }), Some(allowed))
            }
        };
        let settings = Settings {
            name: name.to_owned(),
            endpoint,
            tools: server.tools.as_ref().map(|tools| tools.iter().cloned().collect()),
            timeout: server.timeout.unwrap_or(TIMEOUT),
            message_bytes: MESSAGE,
        };
        Ok(Named { server: Server::new(settings), services: self.services.clone(), allowed })
    }

    /// Its value may be a secret, and is not shown.
    fn url(&self, server: &McpServer, text: &str) -> anyhow::Result<Url> {
        nala_manifest::check_server_url(text)
            .map_err(|why| self.wrong(server, &format!("its `url` is no address of a server: {why}")))
    }

    fn field(&self, server: &McpServer, name: &str, value: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
        let wrong = |_| self.wrong(server, &format!("the field {name} cannot be sent as it is"));
        let field: HeaderName = name.parse().map_err(|_| self.wrong(server, &format!("{name} is no field")))?;
        let mut value = HeaderValue::from_str(value).map_err(wrong)?;
        value.set_sensitive(true);
        Ok((field, value))
    }

    fn wrong(&self, server: &McpServer, what: &str) -> anyhow::Error {
        server.place.error(format!("an MCP server cannot be used: {what}"), "see docs/mcp.md").into()
    }
}

/// Where a URL leads, as an entry of `allowed_outbound_hosts`.
pub(crate) fn origin(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or_default())
}

impl Named {
    /// The host itself, which asks for tools.
    fn own(&self) -> Who {
        let egress =
            self.allowed.clone().and_then(|allowed| self.services.bare_egress("", self.server.name(), allowed));
        Who { tenant: OWN.into(), egress }
    }
}

/// Whose the connections are by which the host asks for tools. No tenant has this name.
const OWN: &str = "(host)";

impl Elsewhere for Named {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn tools(&self) -> Vec<Tool> {
        self.server.tools().values().map(|tool| words::tool(self.server.name(), tool)).collect()
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        let theirs = words::theirs(self.server.name(), name)?;
        self.server.tools().get(theirs).map(|tool| words::tool(self.server.name(), tool))
    }

    fn call(&self, call: ElsewhereCall) -> BoxFuture<'static, Result<Answer, ToolError>> {
        let ElsewhereCall { tenant, tool, arguments, abilities, within, teller } = call;
        let server = Arc::clone(&self.server);
        let allowed = self.allowed.clone();
        let egress =
            allowed.and_then(|allowed| self.services.bare_egress(tenant.name().as_str(), server.name(), allowed));
        Box::pin(async move {
            let unknown = || ToolError::UnknownTool(format!("there is no tool {tool:?}"));
            let theirs = words::theirs(server.name(), &tool).ok_or_else(unknown)?.to_owned();
            let arguments = serde_json::from_str(&arguments)
                .map_err(|error| ToolError::InvalidArguments(format!("the arguments are no JSON object: {error}")))?;
            let who = Who { tenant: tenant.name().as_str().into(), egress };
            let asked = Asked { tool: theirs, arguments, within };
            let hear = Arc::new(words::Heard(teller));
            let result = server.call(&who, asked, words::abilities(abilities), hear).await;
            result.map_err(|error| words::error(server.name(), &error)).and_then(words::answer)
        })
    }
}

/// Where the tokens are that somebody has got by logging in.
#[derive(Debug, Clone)]
pub(crate) struct Logins(pub(crate) std::path::PathBuf);

impl Logins {
    /// Next to what else the host keeps, or else the user's own.
    pub(crate) fn beside(state: Option<&std::path::Path>) -> Self {
        let own = || directories::ProjectDirs::from("", "", "nala").map(|dirs| dirs.data_local_dir().to_owned());
        Self(state.map(std::path::Path::to_owned).or_else(own).unwrap_or_default().join("mcp"))
    }

    /// Those of a server at an address: another application's of the same name, or one that
    /// was moved, is somebody else.
    pub(crate) fn of(&self, server: &str, url: &Url) -> Tokens {
        let digest = Sha256::digest(url.as_str());
        let digest = hex::encode(digest.get(..8).unwrap_or_default());
        Tokens::new(self.0.join(format!("{server}-{digest}.json")))
    }
}

/// The server of a manifest at which somebody wants to log in.
///
/// # Errors
/// There is none of this name, or nobody logs in there.
pub(crate) fn to_log_in<'a>(application: &'a Application, name: &str) -> anyhow::Result<&'a McpEndpoint> {
    let Some(server) = application.mcp.get(name) else {
        let names: Vec<&str> = application.mcp.keys().map(String::as_str).collect();
        let help = match names.as_slice() {
            [] => "the manifest names none under [application.tool.nala.mcp]".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        return Err(Help { what: format!("there is no MCP server {name:?}"), help }.into());
    };
    match &server.endpoint {
        endpoint @ McpEndpoint::Remote { access: McpAccess::Login, .. } => Ok(endpoint),
        _ => {
            let what = format!("nobody logs in at the MCP server `{name}`");
            Err(server.place.error(what, "write `oauth = \"login\"` if its users do").into())
        }
    }
}
