//! What a server says by itself, and to whom it is said.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RootsCapabilities,
    SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, Semaphore};

use crate::ask::{Abilities, Hear, Inquiry, Severity};

/// This client's side of a connection.
#[derive(Clone)]
pub(crate) struct Handler {
    abilities: Abilities,
    shared: Arc<Shared>,
}

struct Shared {
    /// Calls that go on, by what their progress is told with.
    calls: Mutex<HashMap<ProgressToken, Arc<dyn Hear>>>,
    /// The one that has the connection to itself.
    alone: Mutex<Option<Arc<dyn Hear>>>,
    /// Told when the server has other tools.
    changed: Arc<Notify>,
    /// How many tools were listed over the connection: rmcp keeps what it knows of each.
    listed: AtomicUsize,
    /// Whether they were.
    knows_tools: AtomicBool,
    /// Held while something is asked: a call is asked one thing at a time.
    asking: tokio::sync::Mutex<()>,
    /// Room for what is asked or waits to be.
    questions: Semaphore,
}

/// How many questions of a server may wait.
const MOST_ASKED: usize = 16;

/// How many tools may be listed over a connection before it is given up.
const MOST_LISTED: usize = 8192;

impl Handler {
    /// Of a connection whose calls can be asked this.
    pub(crate) fn new(abilities: Abilities) -> Self {
        let shared = Shared {
            calls: Mutex::default(),
            alone: Mutex::default(),
            changed: Arc::default(),
            listed: AtomicUsize::new(0),
            knows_tools: AtomicBool::new(false),
            asking: tokio::sync::Mutex::default(),
            questions: Semaphore::new(MOST_ASKED),
        };
        Self { abilities, shared: Arc::new(shared) }
    }

    /// Whether the tools were listed over this connection.
    pub(crate) fn knows_tools(&self) -> bool {
        self.shared.knows_tools.load(Ordering::Acquire)
    }

    /// Notes that a page of them was.
    pub(crate) fn note_tools(&self, count: usize) {
        self.shared.listed.fetch_add(count, Ordering::AcqRel);
        self.shared.knows_tools.store(true, Ordering::Release);
    }

    /// Whether so many were listed over the connection that it should not be used again.
    pub(crate) fn has_heard_enough(&self) -> bool {
        self.shared.listed.load(Ordering::Acquire) > MOST_LISTED
    }

    /// Told when the server has other tools.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.shared.changed)
    }

    /// Has a call hear of its progress until the guard is dropped.
    pub(crate) fn follow(&self, token: ProgressToken, hear: Arc<dyn Hear>) -> Followed {
        lock(&self.shared.calls).insert(token.clone(), hear);
        Followed { shared: Arc::clone(&self.shared), token }
    }

    /// Has a call be asked and hear the log. Only where no other call uses the connection.
    pub(crate) fn give_to(&self, hear: Option<Arc<dyn Hear>>) {
        *lock(&self.shared.alone) = hear;
    }

    /// Asks the call that has the connection to itself.
    async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        inquiry: Inquiry,
        params: &Q,
        context: &RequestContext<RoleClient>,
    ) -> Result<A, ErrorData> {
        let full = |_| ErrorData::invalid_request(format!("{MOST_ASKED} questions wait already"), None);
        let _room = self.shared.questions.try_acquire().map_err(full)?;
        let asking = async {
            let _alone = self.shared.asking.lock().await;
            self.ask_now(inquiry, params).await
        };
        tokio::select! {
            reply = asking => reply,
            () = context.ct.cancelled() => Err(ErrorData::invalid_request("the question was taken back", None)),
        }
    }

    async fn ask_now<Q: Serialize, A: DeserializeOwned>(&self, inquiry: Inquiry, params: &Q) -> Result<A, ErrorData> {
        let nobody = || ErrorData::invalid_request("nobody can be asked", None);
        let hear = lock(&self.shared.alone).clone().ok_or_else(nobody)?;
        let params =
            serde_json::to_value(params).map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        // An object, where there is nothing to be said of it.
        let params = if params.is_null() { serde_json::json!({}) } else { params };
        let reply = hear.ask("asked".to_owned(), inquiry, params).await;
        let reply = reply.map_err(|why| ErrorData::internal_error(why, None))?;
        serde_json::from_value(reply)
            .map_err(|error| ErrorData::internal_error(format!("the reply is none of this question: {error}"), None))
    }
}

fn severity(level: LoggingLevel) -> Severity {
    match level {
        LoggingLevel::Debug => Severity::Debug,
        LoggingLevel::Info => Severity::Info,
        LoggingLevel::Notice => Severity::Notice,
        LoggingLevel::Warning => Severity::Warning,
        LoggingLevel::Error => Severity::Error,
        LoggingLevel::Critical => Severity::Critical,
        LoggingLevel::Alert => Severity::Alert,
        LoggingLevel::Emergency => Severity::Emergency,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While a call hears of its progress.
pub(crate) struct Followed {
    shared: Arc<Shared>,
    token: ProgressToken,
}

impl Drop for Followed {
    fn drop(&mut self) {
        lock(&self.shared.calls).remove(&self.token);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let Abilities { elicit_form, elicit_url, sample, roots, hear_log: _ } = self.abilities;
        let mut capabilities = ClientCapabilities::default();
        if elicit_form || elicit_url {
            let mut elicitation = ElicitationCapability::new();
            if elicit_form {
                elicitation = elicitation.with_form(FormElicitationCapability::new());
            }
            if elicit_url {
                elicitation = elicitation.with_url(UrlElicitationCapability::default());
            }
            capabilities.elicitation = Some(elicitation);
        }
        capabilities.sampling = sample.then(SamplingCapability::default);
        capabilities.roots = roots.then(RootsCapabilities::default);
        let this = Implementation::new("nala", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, this)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.ask(Inquiry::Sampling, &params, &context).await
    }

    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.ask(Inquiry::Roots, &serde_json::json!({}), &context).await
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.ask(Inquiry::Elicitation, &params, &context).await
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let hear = lock(&self.shared.calls).get(&params.progress_token).cloned();
        if let Some(hear) = hear {
            hear.progress(params.progress, params.total, params.message);
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let hear = lock(&self.shared.alone).clone();
        if let Some(hear) = hear {
            hear.log(severity(params.level), params.logger, params.data);
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.shared.changed.notify_one();
    }
}
