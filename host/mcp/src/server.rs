//! A server that a manifest names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use nala_egress::Egress;
use rmcp::model::{CallToolResult, PaginatedRequestParams, SubscriptionFilter, Tool};
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
/// How soon after a failure a server is tried again, at first and at the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
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
    /// this server is dropped.
    ///
    /// # Errors
    /// They cannot be had now. It is tried again.
    pub async fn start(self: &Arc<Self>, who: Who) -> Result<(), ServerError> {
        let (line, result) = match self.list(&who).await {
            Ok(line) => (Some(line), Ok(())),
            Err(error) => (None, Err(error)),
        };
        tokio::spawn(follow(Arc::downgrade(self), self.ended.clone(), who, line));
        result
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
        // What is still at a call, or broken, is not for another one.
        let is_usable = match &result {
            Ok(_) => true,
            Err(ServerError::Late(_)) => abilities.is_empty(),
            Err(error) => !error.ends_connection(),
        };
        if is_usable {
            line.give_back();
        }
        result
    }

    async fn know_tools(&self, line: &crate::connect::Service) -> Result<(), ServerError> {
        if line.service().knows_tools() {
            return Ok(());
        }
        list(line).await?;
        line.service().note_tools();
        Ok(())
    }

    async fn list(&self, who: &Who) -> Result<Arc<Line>, ServerError> {
        let line = self.lines.shared(&who.tenant, &self.way(who)).await?;
        self.renew(&line).await?;
        Ok(line)
    }

    /// Asks for the tools over a connection.
    async fn renew(&self, line: &Line) -> Result<(), ServerError> {
        let found = list(line).await?;
        line.service().note_tools();
        let mut tools = BTreeMap::new();
        for tool in found {
            if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(&*tool.name)) {
                continue;
            }
            match fault(&tool) {
                Some(fault) => {
                    tracing::warn!(server = self.name, tool = %shortened(&tool.name), "a tool is left out: {fault}");
                }
                None if tools.len() >= MOST_TOOLS => {
                    tracing::warn!(server = self.name, "only the first {MOST_TOOLS} tools are used");
                    break;
                }
                None => drop(tools.insert(tool.name.to_string(), tool)),
            }
        }
        for missing in self.allowed.iter().flatten().filter(|name| !tools.contains_key(*name)) {
            tracing::warn!(server = self.name, tool = missing, "the server has no such tool");
        }
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools);
        Ok(())
    }

    fn way(&self, who: &Who) -> Way {
        Way { endpoint: Arc::clone(&self.endpoint), egress: who.egress.clone(), bounds: self.bounds }
    }
}

/// All tools of a server.
async fn list(service: &crate::connect::Service) -> Result<Vec<Tool>, ServerError> {
    let listing = async {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = service.list_tools(Some(page)).await.map_err(ServerError::of_request)?;
            tools.extend(page.tools);
            match page.next_cursor {
                Some(next) if tools.len() <= MOST_TOOLS => cursor = Some(next),
                _ => return Ok(tools),
            }
        }
        Ok(tools)
    };
    tokio::time::timeout(LISTING, listing).await.unwrap_or(Err(ServerError::Late(LISTING)))
}

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
async fn follow(server: Weak<Server>, ended: CancellationToken, who: Who, mut line: Option<Arc<Line>>) {
    let mut pause = RETRY.0;
    loop {
        if let Some(line) = line.take() {
            pause = RETRY.0;
            tokio::select! {
                () = changed(&line) => {}
                () = ended.cancelled() => return,
            }
        } else {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = ended.cancelled() => return,
            }
            pause = (pause * 2).min(RETRY.1);
        }
        let Some(server) = server.upgrade() else { return };
        match server.list(&who).await {
            Ok(listed) => line = Some(listed),
            Err(error) => tracing::warn!(server = server.name, %error, "the tools of an MCP server cannot be had"),
        }
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
    if is_told
        && let Ok(mut subscription) = line.listen(filter).await
        && let Ok(Some(_)) = subscription.next().await
    {
        return;
    }
    std::future::pending().await
}
