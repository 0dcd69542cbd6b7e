//! Tools that are no component's: those of servers elsewhere, to which the embedder has
//! the way.
//!
//! Such a call has no instance. It is charged to whoever makes it: its bytes, a place among
//! the outgoing connections, and the time that is left of the request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use nala_tenant::{Counter, Exceeded, Stock, Tenant};
use tokio::sync::OwnedSemaphorePermit;

use super::bindings::nala::tools::types::{
    Abilities, Answer, Entry, Error, Inquiry, Progress, Question, Severity, Tool,
};
use super::call::{self, Listener, Reporter, Running};
use super::job::Said;
use super::provider::{By, follow, keep, left_over};
use super::toolbox;
use crate::account::{Account, Holding};
use crate::control::{MOST_CALLS, RequestControl};
use crate::limits::Limits;

/// Tools that are no component's.
pub trait Elsewhere: Send + Sync + 'static {
    /// What they are known by in the application, for messages.
    fn name(&self) -> &str;

    /// Those that there are now.
    fn tools(&self) -> Vec<Tool>;

    /// The tool of a name, if there is one now.
    fn tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    /// Calls one. Dropping the future ends the call.
    fn call(&self, call: ElsewhereCall) -> BoxFuture<'static, Result<Answer, Error>>;
}

/// A call of a tool that is no component's.
pub struct ElsewhereCall {
    /// On whose behalf.
    pub tenant: Arc<Tenant>,
    /// The tool's name, as it was listed.
    pub tool: String,
    /// A JSON object.
    pub arguments: String,
    /// What whoever calls can be asked.
    pub abilities: Abilities,
    /// How long the caller waits.
    pub within: Duration,
    /// Where what is said meanwhile goes.
    pub teller: Teller,
}

/// Whoever waits for a call. Clones are the same.
#[derive(Clone)]
pub struct Teller(Reporter);

impl Teller {
    /// Tells how far the call has got.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        self.0.report(Progress { done, total, message });
    }

    /// Tells what goes on. `data` is JSON.
    pub fn log(&self, severity: Severity, logger: Option<String>, data: String) {
        self.0.log(Entry { severity, logger, data });
    }

    /// Asks, with the protocol's `params` as JSON, and waits for its `result`.
    ///
    /// # Errors
    /// Why there is no reply.
    pub async fn ask(&self, key: String, kind: Inquiry, parameters: String) -> Result<String, String> {
        use super::bindings::nala::tools::types::Refusal;

        match self.0.ask(vec![Question { key, kind, parameters }]).await {
            Ok(replies) => replies.into_iter().next().ok_or_else(|| "there is no reply".to_owned()),
            Err(Refusal::Unable(_)) => Err("whoever calls cannot be asked this".to_owned()),
            Err(Refusal::Invalid(why) | Refusal::Failed(why)) => Err(why),
        }
    }
}

/// Calls a tool for the owner of the machine, who waits for so long, and tells how far it
/// has got. The calling thread is one of a Tokio runtime.
///
/// # Errors
/// There is no such tool, or it gives no answer.
pub async fn call_elsewhere(
    elsewhere: &Arc<dyn Elsewhere>,
    tool: &str,
    arguments: String,
    wait: Duration,
    told: impl FnMut(Progress),
) -> Result<Answer, Error> {
    toolbox::check_arguments(&arguments)?;
    let nobody = || Tenant::within(nala_tenant::Limits::default());
    let account = Arc::new(Account::new(nobody(), nobody(), elsewhere.name()));
    let no_such = || Error::UnknownTool(format!("`{}` has no tool {tool:?}", elsewhere.name()));
    let tool = elsewhere.tool(tool).ok_or_else(no_such)?;
    let by = By::hand(wait);
    let call_bytes = Limits::tool().call_bytes;
    follow(start(elsewhere, (tool, arguments), Abilities::empty(), by, &account, call_bytes)?, told).await
}

/// What a call takes of what there is, until it is over.
struct Seat {
    _arguments: Holding,
    _connection: Holding,
    _of_request: OwnedSemaphorePermit,
}

/// Begins a call on an account.
pub(super) fn start(
    elsewhere: &Arc<dyn Elsewhere>,
    (tool, arguments): (Tool, String),
    abilities: Abilities,
    By { origin, deadline, calls }: By,
    account: &Arc<Account>,
    call_bytes: u32,
) -> Result<Running, Error> {
    let busy = |error: Exceeded| Error::Busy(format!("`{}` has no room: {error}", elsewhere.name()));
    account.may_begin().map_err(busy)?;
    let Ok(of_request) = calls.try_acquire_owned() else {
        return Err(Error::Busy(format!("a request may have {MOST_CALLS} calls going on at a time")));
    };
    let bytes = (tool.name.len() as u64).saturating_add(arguments.len() as u64);
    let seat = Seat {
        // Read into a value of its own, and written again.
        _arguments: account.hold(Stock::HostBytes, bytes.saturating_mul(3)).map_err(busy)?,
        _connection: account.hold(Stock::OutboundConnections, 1).map_err(busy)?,
        _of_request: of_request,
    };
    account.meter.add(Counter::OutboundBytes, bytes);
    let here = origin.here.clone();
    let deadline = Instant::now() + left_over(deadline);
    let control = Arc::new(RequestControl::of_call(deadline, origin));
    let talk = account.hold(Stock::HostBytes, call::MOST_SAID).map_err(busy)?;
    let (running, listener) = Running::begin(Arc::clone(&control), abilities, Some(talk));
    let call = ElsewhereCall {
        tenant: Arc::clone(&account.tenant),
        tool: tool.name.clone(),
        arguments,
        abilities,
        within: deadline.saturating_duration_since(Instant::now()),
        teller: Teller(listener.again()),
    };
    let answer = elsewhere.call(call);
    let work = Work { control, account: Arc::clone(account), tool, call_bytes, seat };
    here.spawn(work.run(answer, listener));
    Ok(running)
}

/// A call that goes on.
struct Work {
    control: Arc<RequestControl>,
    account: Arc<Account>,
    tool: Tool,
    call_bytes: u32,
    seat: Seat,
}

impl Work {
    async fn run(self, answer: BoxFuture<'static, Result<Answer, Error>>, listener: Listener) {
        let Self { control, account, tool, call_bytes, seat } = self;
        let name = toolbox::shortened(&tool.name);
        let within = control.deadline.saturating_duration_since(Instant::now());
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(within, answer) => outcome,
            () = control.gone.cancelled() => return,
        };
        let late = || Error::Limit(format!("`{name}` gave no answer in the time that was left ({within:.1?})"));
        let outcome = outcome
            .unwrap_or_else(|_| Err(late()))
            .and_then(|answer| Said::Answer(answer).checked(std::slice::from_ref(&tool), &name, call_bytes));
        drop(seat);
        if let Ok(said) = &outcome {
            account.meter.add(Counter::OutboundBytes, said.bytes() as u64);
        }
        match keep(&account, outcome) {
            Ok((answer, held)) => listener.answer(Ok(answer), Some(held)),
            Err(error) => listener.answer(Err(error), None),
        }
    }
}
