//! A component that is a tool, or several.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use nala_tenant::{Counter, Exceeded, Held, Stock, Tenant, TenantName};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::InstancePre;

use super::bindings::nala::tools::types::{Abilities, Answer, Catalogue, Error, Progress, Tool};
use super::call::{Listener, Next, Running};
use super::exports::Exports;
use super::job::{Job, Said};
use super::keyed::{Kept, Keyed, Resident, Slot};
use super::{call, describe, library, toolbox};
use crate::account::{Account, Holding, Place};
use crate::capabilities::Own;
use crate::control::{MOST_CALLS, RequestControl};
use crate::engine::Runtime;
use crate::error::HandleError;
use crate::limits::Limits;
use crate::llm::Models;
use crate::load::LoadError;
use crate::metrics::RuntimeMetrics;
use crate::outbound::Origin;
use crate::outcome::Outcome;
use crate::store::{Blueprint, StoreData};
use crate::threads::{self, GuestThreads, Typical};
use crate::worker::{self, Life};

/// Gives a component what each tenant has of its own.
pub trait Owning: Send + Sync + 'static {
    /// What this tenant has.
    fn of(&self, tenant: &Arc<Tenant>) -> Own;
}

/// On whose behalf a call is made.
pub(super) struct By {
    pub(super) origin: Origin,
    /// The calls that it may have going on at a time.
    pub(super) calls: Arc<Semaphore>,
    /// When nobody waits for it any more.
    pub(super) deadline: Instant,
}

impl By {
    /// On behalf of somebody who calls by hand, and waits so long. The calling thread is one
    /// of a Tokio runtime.
    pub(super) fn hand(wait: Duration) -> Self {
        let origin = Origin::client(Handle::current());
        Self { origin, deadline: Instant::now() + wait, calls: Arc::new(Semaphore::new(1)) }
    }
}

/// Follows a call to its answer, of whose caller nothing can be asked.
pub(super) async fn follow(running: Running, mut told: impl FnMut(Progress)) -> Result<Answer, Error> {
    loop {
        match running.next().await {
            Next::Progress(progress) => told(progress),
            Next::Answer(Ok(Said::Answer(answer))) => return Ok(answer),
            Next::Answer(Err(error)) => return Err(error),
            // It is asked nothing, having said that it cannot reply.
            Next::Log(_) | Next::Ask(_) => {}
            Next::Nothing | Next::Answer(Ok(_)) => {
                return Err(Error::Failed("the call ended without an answer".into()));
            }
        }
    }
}

/// A component that is a tool, or several, see [`crate::Runtime::load_tools`].
pub struct Provider {
    blueprint: Blueprint,
    exports: Exports,
    metrics: RuntimeMetrics,
    tools: Vec<Tool>,
    /// The schemas of their arguments, as the component has them.
    own_schemas: BTreeMap<String, String>,
    /// Instances that outlive a call.
    kept: Option<Arc<Kept>>,
    catalogue: Catalogue,
    threads: Arc<GuestThreads>,
    /// Places of all calls.
    room: Arc<Semaphore>,
    typical: Arc<Typical>,
    owning: Option<Box<dyn Owning>>,
    /// For tenants whose guests have called it, each as it was declared then.
    of: RwLock<BTreeMap<TenantName, Blueprint>>,
}

impl Provider {
    pub(crate) fn new(
        runtime: &Runtime,
        blueprint: Blueprint,
        pre: InstancePre<StoreData>,
        keyed: Option<Keyed>,
        owning: Option<Box<dyn Owning>>,
    ) -> Result<Self, LoadError> {
        let exports = Exports::of(pre).ok_or_else(|| no_provider(&blueprint.app))?;
        let name = blueprint.app.to_string();
        let wrong = |reason: String| LoadError::Tools { name: name.clone(), reason };
        let told = ask(&blueprint, &exports).map_err(|error| wrong(format!("it does not tell its tools: {error}")))?;
        let (mut tools, catalogue) = told;
        if exports.has_tools() {
            describe::check(&tools).map_err(wrong)?;
        }
        library::check(&catalogue).map_err(wrong)?;
        let own_schemas = tools.iter().map(|tool| (tool.name.clone(), tool.input_schema.clone())).collect();
        let kept = keyed.map(|keyed| Arc::new(Kept::new(keyed)));
        if let Some(kept) = &kept {
            if !exports.can_be_kept() {
                return Err(wrong("instances are kept of components that export nala:tools/provider alone".into()));
            }
            kept.describe(&mut tools).map_err(wrong)?;
        }
        Ok(Self {
            blueprint,
            exports,
            metrics: runtime.metrics.clone(),
            tools,
            own_schemas,
            kept,
            catalogue,
            threads: Arc::clone(&runtime.threads),
            room: Arc::clone(&runtime.tool_room),
            typical: Arc::default(),
            owning,
            of: RwLock::default(),
        })
    }

    /// Refuses a component that has no tools.
    pub(crate) fn refuse_other(name: &str, pre: &InstancePre<StoreData>) -> Result<(), LoadError> {
        Exports::of(pre.clone()).map(drop).ok_or_else(|| no_provider(name))
    }

    /// The component's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.blueprint.app
    }

    /// What it says of its tools.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// What it says of its resources and prompts.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Calls a tool for the owner of the machine, and tells how far it has got. The calling
    /// thread is one of a Tokio runtime.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: String,
        told: impl FnMut(Progress),
    ) -> Result<Answer, Error> {
        toolbox::check_arguments(&arguments)?;
        let by = By::hand(self.blueprint.limits.wall);
        let job = Job::Call { tool: tool.to_owned(), arguments };
        follow(self.start(job, Abilities::empty(), by, &self.blueprint.account.tenant)?, told).await
    }

    /// Begins what is asked on the account of a tenant.
    pub(super) fn start(
        self: &Arc<Self>,
        job: Job,
        abilities: Abilities,
        By { origin, deadline, calls }: By,
        tenant: &Arc<Tenant>,
    ) -> Result<Running, Error> {
        let blueprint = self.of(tenant);
        let account = Arc::clone(&blueprint.account);
        let busy = |error: Exceeded| Error::Busy(format!("`{}` has no room: {error}", self.name()));
        account.may_begin().map_err(busy)?;
        let Ok(of_request) = calls.try_acquire_owned() else {
            return Err(Error::Busy(format!("a request may have {MOST_CALLS} calls going on at a time")));
        };
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return Err(Error::Busy("too many calls are going on; try again later".into()));
        };
        let (job, slot) = self.slot(job, tenant)?;
        let bytes = (job.bytes() as u64).saturating_add(self.exports.lowered(blueprint.limits.call_bytes));
        let seat = Seat {
            place: match slot {
                // It may be there, and has its place then.
                Some(_) => None,
                None => Some(account.place(blueprint.limits.handles).map_err(busy)?),
            },
            _of_component: account.component.hold(Stock::Requests, 1).map_err(busy)?,
            _arguments: account.hold(Stock::HostBytes, bytes).map_err(busy)?,
            _of_request: of_request,
            _room: room,
        };
        account.meter.add(Counter::Requests, 1);
        let deadline = Instant::now() + left_over(deadline).min(blueprint.limits.wall);
        let control = Arc::new(RequestControl::of_call(deadline, origin));
        let talk = account.hold(Stock::HostBytes, call::MOST_SAID).map_err(busy)?;
        let (running, listener) = Running::begin(Arc::clone(&control), abilities, Some(talk));
        let call = Call { provider: Arc::clone(self), blueprint, control: Arc::clone(&control), seat, slot };
        let task = Box::pin(call.work(job, listener));
        let place = threads::Place {
            control,
            typical: Arc::clone(&self.typical),
            tenant: Arc::clone(tenant),
            turns: Arc::clone(&self.blueprint.models.turns),
            guest: self.threads.entrance(),
        };
        place.begin(task);
        Ok(running)
    }

    /// Where the instance is that a call shares with others, and what it is asked then.
    fn slot(&self, job: Job, tenant: &Tenant) -> Result<(Job, Option<Slot>), Error> {
        let (Some(kept), Job::Call { tool, arguments }) = (&self.kept, &job) else { return Ok((job, None)) };
        let own = self.own_schemas.get(tool).map_or("", String::as_str);
        let Some((key, arguments)) = kept.key(own, arguments)? else { return Ok((job, None)) };
        let slot = kept.slot(tenant.name(), key)?;
        Ok((Job::Call { tool: tool.clone(), arguments }, Some(slot)))
    }

    /// Notes that a call came to nothing, in as many words as the tenant may log.
    fn failed(&self, account: &Account, tool: &str, why: &HandleError) {
        account.meter.add(Counter::Errors, 1);
        self.metrics.ended(why.kind());
        if account.may_log(NOTE) {
            tracing::warn!(tool, app = self.name(), error = %why, "a call of a tool came to nothing");
        }
    }

    /// What its stores have in common where they work for a tenant.
    fn of(&self, tenant: &Arc<Tenant>) -> Blueprint {
        let is_current = |blueprint: &&Blueprint| Arc::ptr_eq(&blueprint.account.tenant, tenant);
        let known = self.of.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(blueprint) = known.get(tenant.name()).filter(is_current) {
            return blueprint.clone();
        }
        drop(known);
        let own = self.owning.as_ref().map(|owning| owning.of(tenant)).unwrap_or_default();
        let blueprint = self.blueprint.of(Arc::clone(tenant), own);
        let mut known = self.of.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(tenant.name().clone(), blueprint.clone());
        blueprint
    }
}

/// What a caller keeps of its time, or a tenth of it where it has little.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// What is left for a call until a deadline of whoever asks, who is to have some time left
/// to say what came of it.
pub(super) fn left_over(deadline: Instant) -> Duration {
    let left = deadline.saturating_duration_since(Instant::now());
    left.saturating_sub(LEFT_OVER.min(left / 10))
}

/// What a note of a failed call takes of what may be logged, in bytes.
const NOTE: u64 = 256;

/// The most CPU time, and time, that a component has to tell its tools, whatever it may
/// have else: whoever loads it waits meanwhile.
const ASKED: Duration = Duration::from_secs(1);

/// Has a component tell its tools, in an instance of its own, on nobody's account and
/// without models and tools.
fn ask(blueprint: &Blueprint, exports: &Exports) -> Result<(Vec<Tool>, Catalogue), HandleError> {
    let (cpu, wall) = (blueprint.limits.cpu.min(ASKED), blueprint.limits.wall.min(ASKED));
    let nobody = || Tenant::within(nala_tenant::Limits::default());
    let blueprint = &Blueprint {
        account: Arc::new(Account::new(nobody(), nobody(), &blueprint.app)),
        limits: Arc::new(Limits { cpu, wall, ..(*blueprint.limits).clone() }),
        models: Models::new(Vec::new(), Vec::new(), Arc::clone(&blueprint.models.turns)),
        tools: Arc::default(),
        ..blueprint.clone()
    };
    let outcome = Arc::new(Outcome::default());
    let work = async {
        let mut store = blueprint.store(&blueprint.account, None, Arc::clone(&outcome));
        let cpu = Arc::clone(&store.data().cpu);
        let work = exports.describe(&mut store);
        let told = tokio::time::timeout(blueprint.limits.wall, cpu.follow(work)).await;
        told.map_or(Err(HandleError::WallLimit), |told| told.map_err(|error| HandleError::of(&error, &outcome)))
    };
    // Whoever loads may be within a runtime, or not.
    let ask = || Builder::new_current_thread().enable_all().build().map(|runtime| runtime.block_on(work));
    let told = std::thread::scope(|scope| scope.spawn(ask).join());
    let failed = |reason: String| HandleError::NoResponse { reason };
    match told {
        Ok(Ok(told)) => told,
        Ok(Err(error)) => Err(failed(format!("no thread can be had for it: {error}"))),
        Err(_panic) => Err(failed("asking it failed".into())),
    }
}

/// What a call takes of what there is, until it is over.
struct Seat {
    /// Of its instance. None: that outlives it.
    place: Option<Place>,
    /// Of those that the component may answer at a time.
    _of_component: Held,
    /// The bytes of its arguments.
    _arguments: Holding,
    _of_request: OwnedSemaphorePermit,
    _room: OwnedSemaphorePermit,
}

/// A call, on the tool's side.
struct Call {
    provider: Arc<Provider>,
    blueprint: Blueprint,
    control: Arc<RequestControl>,
    seat: Seat,
    /// Where its instance is, if that outlives it.
    slot: Option<Slot>,
}

impl Call {
    /// Makes an instance, has it answer, and drops it.
    async fn work(self, job: Job, listener: Listener) {
        let Self { provider, blueprint, control, mut seat, slot } = self;
        let outcome = Arc::clone(&control.outcome);
        let name = toolbox::shortened(job.name());
        // The instance that calls with this key share, once they have all had it.
        let mut resident = match &slot {
            None => None,
            Some(slot) => tokio::select! {
                biased;
                resident = slot.take() => Some(resident),
                () = worker::over(&control, &outcome) => {
                    let why = format!("the calls of `{name}` before this one have taken all its time");
                    return listener.answer(Err(Error::Busy(why)), None);
                }
            },
        };
        let there = resident.as_mut().and_then(|resident| resident.take());
        let (mut store, mut instance, mut alive_before) = match there {
            Some(Resident { mut store, instance, place, alive }) => {
                blueprint.rearm(&mut store, Arc::clone(&control));
                seat.place = Some(place);
                (store, Some(instance), Some(alive))
            }
            None => {
                if resident.is_some() {
                    match blueprint.account.place(blueprint.limits.handles) {
                        Ok(place) => seat.place = Some(place),
                        Err(error) => {
                            let why = format!("`{}` has no room: {error}", provider.name());
                            return listener.answer(Err(Error::Busy(why)), None);
                        }
                    }
                }
                let control = Some(Arc::clone(&control));
                (blueprint.store(&blueprint.account, control, Arc::clone(&outcome)), None, None)
            }
        };
        store.data_mut().listener = Some(listener.again());
        let cpu = Arc::clone(&store.data().cpu);
        let turns = Arc::clone(&blueprint.models.turns);
        let mut life = Life::new(store, Arc::clone(&control), turns, Arc::clone(&provider.typical));
        let Some((store, alive)) = life.parts() else { return };
        let is_kept = resident.is_some();
        let guest = async {
            let Job::Call { tool, arguments } = &job else {
                return provider.exports.work(store, &job, || *alive = Some(provider.metrics.instance())).await;
            };
            if !is_kept {
                return provider.exports.work(store, &job, || *alive = Some(provider.metrics.instance())).await;
            }
            *alive = Some(alive_before.take().unwrap_or_else(|| provider.metrics.instance()));
            let instance = match &mut instance {
                Some(instance) => instance,
                None => instance.insert(provider.exports.instance(store).await?),
            };
            instance.call(store, tool, arguments).await
        };
        let result = tokio::select! {
            // First what the guest has done: it may be all.
            biased;
            result = cpu.follow(guest) => result,
            () = worker::over(&control, &outcome) => Err(wasmtime::format_err!("it was ended")),
        };
        let outcome = match result {
            Ok(answer) => {
                if let (Some(resident), Some(instance), Some(place)) = (&mut resident, instance, seat.place.take()) {
                    **resident = life.keep().map(|(store, alive)| Resident { store, instance, place, alive });
                } else {
                    life.end(&Ok(()));
                }
                answer.and_then(|said| said.checked(&provider.tools, &name, blueprint.limits.call_bytes))
            }
            Err(error) => {
                let why = HandleError::of(&error, &outcome);
                life.end(&Err(error));
                // That its caller has dropped it is no fault of its own.
                if outcome.stopped().is_some() || !control.gone.is_cancelled() {
                    provider.failed(&blueprint.account, &name, &why);
                }
                Err(failure(&name, &why, &blueprint.limits))
            }
        };
        if let (Some(kept), Some(slot)) = (&provider.kept, &slot) {
            kept.used(slot, &control.origin.here);
        }
        // Room is there again before the answer is.
        drop(life);
        drop(seat);
        drop((resident, slot));
        match keep(&blueprint.account, outcome) {
            Ok((answer, held)) => listener.answer(Ok(answer), Some(held)),
            Err(error) => listener.answer(Err(error), None),
        }
    }
}

/// Takes room for an answer until it is told.
pub(super) fn keep(account: &Account, outcome: Result<Said, Error>) -> Result<(Said, Holding), Error> {
    let said = outcome.map_err(shorter)?;
    let busy = |error: Exceeded| Error::Busy(format!("there is no room for the answer: {error}"));
    let held = account.hold(Stock::HostBytes, said.bytes() as u64).map_err(busy)?;
    Ok((said, held))
}

/// The longest text of an error, in bytes: nobody is charged for it.
const LONGEST_ERROR: usize = 4096;

/// The same error in no more words than that.
fn shorter(error: Error) -> Error {
    let cut = |mut why: String| {
        why.truncate(why.floor_char_boundary(LONGEST_ERROR));
        why
    };
    match error {
        Error::UnknownTool(why) => Error::UnknownTool(cut(why)),
        Error::InvalidArguments(why) => Error::InvalidArguments(cut(why)),
        Error::Failed(why) => Error::Failed(cut(why)),
        Error::Limit(why) => Error::Limit(cut(why)),
        Error::Busy(why) => Error::Busy(cut(why)),
        Error::Needs(abilities) => Error::Needs(abilities),
    }
}

/// In what wasmtime says of a guest that hands over more than it may at once. The error has
/// no public type; a test of a tool that answers too much sees whether this is still so.
const TOO_MUCH: &str = "fuel allocated for hostcalls has been exhausted";

/// What befell a tool, for whoever called it.
fn failure(tool: &str, error: &HandleError, limits: &Limits) -> Error {
    let Limits { cpu, wall, call_bytes, .. } = limits;
    match error {
        HandleError::Trap { reason } if reason.contains(TOO_MUCH) => {
            Error::Limit(format!("`{tool}` answered more than {call_bytes} bytes (`call_bytes`)"))
        }
        HandleError::CpuLimit => Error::Limit(format!("`{tool}` used up its CPU time ({cpu:?})")),
        HandleError::WallLimit => {
            Error::Limit(format!("`{tool}` did not finish within its time ({wall:?} at the most)"))
        }
        HandleError::MemoryLimit => Error::Limit(format!("`{tool}` ran out of memory")),
        HandleError::Tenant(exceeded) => Error::Limit(format!("`{tool}` was stopped: {exceeded}")),
        HandleError::AtCapacity => Error::Busy(format!("there is no room for `{tool}`; try again later")),
        HandleError::Trap { reason } => Error::Failed(format!("`{tool}` trapped: {reason}")),
        HandleError::NoResponse { reason } => Error::Failed(format!("`{tool}` gave no answer: {reason}")),
    }
}

fn no_provider(name: &str) -> LoadError {
    LoadError::MissingExport {
        name: name.to_owned(),
        wanted: "`nala:tools/provider@0.1.0`, `nala:tools/library@0.1.0` or a function of values",
        fix: "a tool implements the world `nala:tools/tool`, and what is read `nala:tools/source`",
    }
}
