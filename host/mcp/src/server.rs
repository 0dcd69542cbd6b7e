//! A server that a manifest names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use nala_egress::Egress;
use rmcp::model::{CallToolResult, PaginatedRequestParams, SubscriptionFilter, Tool};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ask::{Abilities, Hear};
use crate::call::{Asked, call};
use crate::connect::{Bounds, Way};
use crate::endpoint::Endpoint;
use crate::error::ServerError;
use crate::lines::{Line, Lines};

/// The most tools of a server.
const MOST_TOOLS: usize = 128;
/// The longest that a tool may be, in bytes of its JSON.
const LONGEST_TOOL: usize = 64 << 10;
/// The longest name of a tool, in bytes.
const LONGEST_NAME: usize = 128;
/// Pages of a list: a server can have a next one for ever.
const MOST_PAGES: usize = 64;
/// How long a list may take.
const LISTING: Duration = Duration::from_secs(30);
/// After so long the tools are asked for again, unasked.
const AGAIN: Duration = Duration::from_secs(600);
/// How soon a server is asked again, at first and at the longest: twice as late each time
/// that it fails, ends, or says that its tools are others, before it was quiet for a while.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// How long that is.
const QUIET: Duration = Duration::from_secs(60);
/// How soon a subscription that has ended is asked for again.
const RESUBSCRIBE: Duration = Duration::from_secs(30);
/// How often it is looked whether a connection is still there.
const LOOK: Duration = Duration::from_secs(2);

/// What a manifest says of a server.
#[derive(Debug)]
pub struct Settings {
    /// Its name in the manifest.
    pub name: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// The tools that may be used, as the server names them. None: all.
    pub tools: Option<BTreeSet<String>>,
    /// How long a call may take.
    pub timeout: Duration,
    /// The longest message of it, in bytes.
    pub message_bytes: usize,
}

/// On whose behalf a server is asked.
#[derive(Debug, Clone)]
pub struct Who {
    /// Whose connections are used.
    pub tenant: Arc<str>,
    /// The way to servers outside.
    pub egress: Option<Egress>,
}

/// A server that a manifest names.
pub struct Server {
    name: String,
    endpoint: Arc<Endpoint>,
    allowed: Option<BTreeSet<String>>,
    timeout: Duration,
    bounds: Bounds,
    lines: Arc<Lines>,
    tools: RwLock<Arc<BTreeMap<String, Tool>>>,
    /// Ends what follows it.
    ended: CancellationToken,
    _end: DropGuard,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("name", &self.name).field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Server {
    /// A server that was not asked yet.
    #[must_use]
    pub fn new(settings: Settings) -> Arc<Self> {
        let ended = CancellationToken::new();
        Arc::new(Self {
            name: settings.name,
            endpoint: Arc::new(settings.endpoint),
            allowed: settings.tools,
            timeout: settings.timeout,
            bounds: Bounds { message: settings.message_bytes },
            lines: Arc::default(),
            tools: RwLock::default(),
            _end: ended.clone().drop_guard(),
            ended,
        })
    }

    /// Its name in the manifest.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long a call may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The tools that it had when it was asked last, by their names there.
    #[must_use]
    pub fn tools(&self) -> Arc<BTreeMap<String, Tool>> {
        Arc::clone(&self.tools.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks it for its tools, and goes on to do so whenever they may have changed, until
    /// this server is dropped. Nobody need wait for it: it goes on when the future is
    /// dropped.
    ///
    /// # Errors
    /// They cannot be had now. It is tried again.
    pub async fn start(self: &Arc<Self>, who: Who) -> Result<(), ServerError> {
        let (told, first) = oneshot::channel();
        // Begun before it is waited for, by somebody who may have less patience than the
        // server takes to start.
        tokio::spawn(follow(Arc::downgrade(self), self.ended.clone(), who, told));
        first.await.unwrap_or_else(|_| Err(ServerError::Unreachable("it is not asked any more".to_owned())))
    }

    /// Calls a tool. `hear` is told how far it has got, and asked what it may be asked.
    /// Dropping the future ends the call.
    ///
    /// # Errors
    /// There is no answer, or a refusal.
    pub async fn call(
        &self,
        who: &Who,
        asked: Asked,
        abilities: Abilities,
        hear: Arc<dyn Hear>,
    ) -> Result<CallToolResult, ServerError> {
        let asked = Asked { within: asked.within.min(self.timeout), ..asked };
        let within = asked.within;
        let way = self.way(who);
        let taking = self.lines.take(&who.tenant, &way, abilities, &hear);
        let line = tokio::time::timeout(within, taking).await.unwrap_or(Err(ServerError::Late(within)))?;
        // The header fields of a call follow from its tool's schema, which a connection
        // knows once it has listed the tools.
        self.know_tools(&line).await?;
        let result = call(&line, asked, hear).await;
        match &result {
            // What is still at a call is not for another one that has it to itself.
            Err(ServerError::Late(_)) => line.give_back_late(),
            Err(error) if error.ends_connection() => line.end(),
            _ => line.give_back(),
        }
        result
    }

    async fn know_tools(&self, line: &crate::connect::Service) -> Result<(), ServerError> {
        if line.service().knows_tools() {
            return Ok(());
        }
        self.listed(line).await.map(drop)
    }

    async fn list(&self, who: &Who) -> Result<Arc<Line>, ServerError> {
        let line = self.lines.shared(&who.tenant, &self.way(who)).await?;
        self.renew(&line).await?;
        Ok(line)
    }

    /// Asks for the tools over a connection.
    async fn renew(&self, line: &Line) -> Result<(), ServerError> {
        let listed = self.listed(line).await?;
        for (tool, fault) in &listed.left_out {
            tracing::warn!(server = self.name, tool, "a tool is left out: {fault}");
        }
        if listed.is_cut {
            tracing::warn!(server = self.name, "only the first {MOST_TOOLS} tools are used");
        }
        let tools = listed.tools;
        for missing in self.allowed.iter().flatten().filter(|name| !tools.contains_key(*name)) {
            tracing::warn!(server = self.name, tool = missing, "the server has no such tool");
        }
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools);
        Ok(())
    }

    /// Asks for all tools over a connection. No more is held of a list than what can be
    /// offered, however long a server makes it.
    async fn listed(&self, service: &crate::connect::Service) -> Result<Listed, ServerError> {
        let is_allowed = |tool: &Tool| self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&*tool.name));
        let listing = async {
            let (mut listed, mut cursor) = (Listed::default(), None);
            for _ in 0..MOST_PAGES {
                let page = PaginatedRequestParams::default().with_cursor(cursor);
                let page = service.list_tools(Some(page)).await.map_err(ServerError::of_request)?;
                service.service().note_tools(page.tools.len());
                page.tools.into_iter().filter(is_allowed).for_each(|tool| listed.add(tool));
                match page.next_cursor {
                    Some(next) if !listed.is_cut => cursor = Some(next),
                    _ => return Ok(listed),
                }
            }
            listed.is_cut = true;
            Ok(listed)
        };
        tokio::time::timeout(LISTING, listing).await.unwrap_or(Err(ServerError::Late(LISTING)))
    }

    fn way(&self, who: &Who) -> Way {
        Way { endpoint: Arc::clone(&self.endpoint), egress: who.egress.clone(), bounds: self.bounds }
    }
}

/// The tools of a server that can be offered.
#[derive(Default)]
struct Listed {
    /// By their names there.
    tools: BTreeMap<String, Tool>,
    /// Some that cannot, and why not.
    left_out: Vec<(String, String)>,
    /// Whether there are more than are used.
    is_cut: bool,
}

impl Listed {
    fn add(&mut self, tool: Tool) {
        match fault(&tool) {
            Some(fault) if self.left_out.len() < MOST_TOLD => {
                self.left_out.push((shortened(&tool.name), fault));
            }
            Some(_) => {}
            None if self.tools.len() >= MOST_TOOLS => self.is_cut = true,
            None => drop(self.tools.insert(tool.name.to_string(), tool)),
        }
    }
}

/// How many tools that are left out are named in the log.
const MOST_TOLD: usize = 8;

/// Why a tool cannot be offered.
fn fault(tool: &Tool) -> Option<String> {
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if tool.name.is_empty() || tool.name.len() > LONGEST_NAME || !is_name(&tool.name) {
        return Some(format!("a name has 1 to {LONGEST_NAME} letters, digits, `_`, `-` and `.`"));
    }
    let length = serde_json::to_vec(tool).map_or(usize::MAX, |json| json.len());
    (length > LONGEST_TOOL).then(|| format!("what it says of itself is longer than {LONGEST_TOOL} bytes"))
}

fn shortened(name: &str) -> String {
    name.chars().filter(|sign| !sign.is_control()).take(LONGEST_NAME).collect()
}

/// Asks a server for its tools whenever they may have changed, as long as it is there.
/// `told` hears what came of it at first.
async fn follow(
    server: Weak<Server>,
    ended: CancellationToken,
    who: Who,
    told: oneshot::Sender<Result<(), ServerError>>,
) {
    let mut told = Some(told);
    let mut pause = RETRY.0;
    loop {
        let begun = Instant::now();
        let listed = match server.upgrade() {
            Some(server) => server.list(&who).await,
            None => return,
        };
        match listed {
            Ok(line) => {
                let _unheard = told.take().map(|told| told.send(Ok(())));
                tokio::select! {
                    () = changed(&line) => {}
                    () = ended.cancelled() => return,
                }
            }
            Err(error) => {
                let unheard = match told.take() {
                    Some(told) => told.send(Err(error)).err().and_then(Result::err),
                    None => Some(error),
                };
                if let (Some(error), Some(server)) = (unheard, server.upgrade()) {
                    tracing::warn!(server = server.name, %error, "the tools of an MCP server cannot be had");
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = ended.cancelled() => return,
        }
        pause = if begun.elapsed() >= QUIET + pause { RETRY.0 } else { (pause * 2).min(RETRY.1) };
    }
}

/// Waits until the tools of a server may have changed: it says so, it is gone, or it was
/// asked long ago.
async fn changed(line: &Line) {
    let said = line.service().changed();
    let gone = async {
        while !line.is_closed() && !line.peer().is_transport_closed() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        () = said.notified() => {}
        () = subscribed(line) => {}
        () = gone => {}
        () = tokio::time::sleep(AGAIN) => {}
    }
}

/// Waits for a change by a subscription, where the protocol has those.
async fn subscribed(line: &Line) {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let is_told = line.peer_info().is_some_and(|info| {
        info.protocol_version >= rmcp::model::ProtocolVersion::V_2026_07_28
            && info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
    });
    if !is_told {
        return std::future::pending().await;
    }
    loop {
        if let Ok(mut subscription) = line.listen(filter.clone()).await
            && let Ok(Some(_)) = subscription.next().await
        {
            return;
        }
        // Whoever is between here and the server ends what is silent for long.
        tokio::time::sleep(RESUBSCRIBE).await;
    }
}
