//! The life of an instance: one request, from the store to its drop.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use futures::channel::oneshot;
use tokio::task::coop::unconstrained;
use wasmtime::component::Accessor;
use wasmtime::{AsContextMut, Store};
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::handler::{Prepared, Proxy, ProxyPre, Request, Response};

use crate::control::{End, RequestControl};
use crate::error::HandleError;
use crate::metrics::{Alive, RuntimeMetrics};
use crate::outcome::{Outcome, Stopped};
use crate::setback::Setback;
use crate::store::{Blueprint, StoreData};
use crate::threads::Typical;
use crate::turns::Turns;

/// Where the response goes. It is dropped where there is none.
pub(crate) type Answer = oneshot::Sender<wasmtime::Result<Response>>;

/// Makes an instance for each request.
pub(crate) struct Instances {
    pub(crate) blueprint: Blueprint,
    pub(crate) pre: ProxyPre<StoreData>,
    pub(crate) metrics: RuntimeMetrics,
    /// What its requests take.
    pub(crate) typical: Arc<Typical>,
    /// How often it failed lately.
    pub(crate) setback: Setback,
}

impl Instances {
    /// Answers a request with an instance of its own, and goes on until the guest has
    /// nothing more to do, nobody wants the response any more, or time is up.
    pub(crate) async fn work(self: Arc<Self>, control: Arc<RequestControl>, request: Request, answer: Answer) {
        let (begin, outcome) = (Instant::now(), &control.outcome);
        let account = &self.blueprint.account;
        let mut store = self.blueprint.store(account, Some(Arc::clone(&control)), Arc::clone(outcome));
        store.data_mut().seat = control.take_seat();
        let cpu = Arc::clone(&store.data().cpu);
        let turns = Arc::clone(&self.blueprint.models.turns);
        let mut life = Life::new(store, Arc::clone(&control), turns, Arc::clone(&self.typical));
        let Some((store, alive)) = life.parts() else { return };
        let guest = async {
            let proxy = self.pre.instantiate_async(&mut *store).await;
            let proxy = proxy.map_err(|error| NotMade(HandleError::of(&error, outcome)))?;
            self.metrics.instantiate_seconds.observe(begin.elapsed().as_secs_f64());
            *alive = Some(self.metrics.instance());
            store.run_concurrent(async |accessor| serve(accessor, &proxy, request, answer).await).await?
        };
        let result = tokio::select! {
            // First what the guest has done: it may be all.
            biased;
            result = cpu.follow(guest) => result,
            () = over(&control, outcome) => Err(wasmtime::format_err!("it was ended")),
        };
        life.end(&result);
    }
}

/// Has the guest answer, and do what it still does behind its response.
async fn serve(
    accessor: &Accessor<StoreData>,
    proxy: &Proxy,
    request: Request,
    answer: Answer,
) -> wasmtime::Result<()> {
    let prepared =
        accessor.with(|mut access| Prepared::new(access.as_context_mut(), proxy, request, StoreData::http, answer))?;
    // Time is kept outside of the store, where it is seen also while the guest spins or
    // waits in a host call.
    prepared.run(accessor, std::future::pending()).await?;
    poll_fn(|cx| accessor.poll_no_interesting_tasks(cx)).await;
    Ok(())
}

/// Waits until nobody wants the response any more, or the wall time is up.
pub(crate) async fn over(control: &RequestControl, outcome: &Outcome) {
    let over = async {
        tokio::select! {
            () = control.gone.cancelled() => {}
            () = tokio::time::sleep_until(control.deadline.into()) => outcome.stop(Stopped::Wall),
        }
    };
    // Not held up by what the guest uses of the task's budget.
    unconstrained(over).await;
}

/// There is no instance.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotMade(HandleError);

impl End {
    fn of(result: &wasmtime::Result<()>) -> Self {
        let Err(error) = result else { return Self::Returned };
        if let Some(NotMade(error)) = error.downcast_ref() {
            return Self::NotMade(error.clone());
        }
        match error.downcast_ref::<wasmtime::Trap>() {
            Some(trap) => Self::Trapped(trap.to_string()),
            None => Self::Failed(error.root_cause().to_string()),
        }
    }
}

/// An instance with its store, and what is owed when it ends.
pub(crate) struct Life {
    store: Option<Store<StoreData>>,
    control: Arc<RequestControl>,
    turns: Arc<Turns>,
    typical: Arc<Typical>,
    alive: Option<Alive>,
}

impl Life {
    pub(crate) fn new(
        store: Store<StoreData>,
        control: Arc<RequestControl>,
        turns: Arc<Turns>,
        typical: Arc<Typical>,
    ) -> Self {
        Self { store: Some(store), control, turns, typical, alive: None }
    }

    /// The store, until its end, and where to count the instance in it.
    pub(crate) fn parts(&mut self) -> Option<(&mut Store<StoreData>, &mut Option<Alive>)> {
        self.store.as_mut().map(|store| (store, &mut self.alive))
    }

    /// Gives the store back for another request, and notes what this one came to.
    /// None: there is no instance in it.
    pub(crate) fn keep(&mut self) -> Option<(Store<StoreData>, Alive)> {
        let alive = self.alive.take()?;
        let mut store = self.store.take()?;
        self.control.set_end(End::Returned);
        self.settle(store.data_mut());
        // What it holds of the request is for nobody any more.
        store.data_mut().listener = None;
        Some((store, alive))
    }

    /// Notes what was used.
    fn settle(&self, data: &mut StoreData) {
        if self.control.is_an_example() {
            self.typical.note(data.cpu.used());
        }
        data.account.used_cpu(data.cpu.used());
        self.turns.note(&data.account.tenant, data.cpu.fresh());
    }

    /// Drops the store, and notes what it came to.
    pub(crate) fn end(&mut self, result: &wasmtime::Result<()>) {
        let Some(mut store) = self.store.take() else { return };
        if let Err(error) = result {
            tracing::debug!(error = format!("{error:#}"), "an instance ended early");
        }
        self.control.set_end(End::of(result));
        self.settle(store.data_mut());
        let data = store.data_mut();
        let seat = data.seat.take();
        // The place is free when all that the instance held is.
        drop(store);
        drop(seat);
        self.alive = None;
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end(&Err(wasmtime::format_err!("its task was dropped")));
    }
}
