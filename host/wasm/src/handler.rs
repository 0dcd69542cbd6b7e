//! Answering requests with fresh instances.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use wasmtime::component::GuestTaskId;
use wasmtime::{Store, StoreContextMut};
use wasmtime_wasi_http::handler::{HandlerState, Instance, ProxyHandler, ProxyPre, ShouldAccept, WorkerState};
use wasmtime_wasi_http::{Error as WireError, WasiHttpView};

use crate::body::{GoneGuard, ResponseBody};
use crate::control::{End, Expiration, RequestControl, Slot};
use crate::engine::Runtime;
use crate::error::HandleError;
use crate::load::LoadError;
use crate::metrics::{Alive, RuntimeMetrics};
use crate::outbound::Depth;
use crate::outcome::Outcome;
use crate::store::{Blueprint, StoreData};

/// A handler, ready to answer requests. A cheap handle: clones share it.
#[derive(Clone)]
pub struct App {
    proxy: ProxyHandler<Instances>,
    room: Arc<Semaphore>,
    admission_wait: Duration,
}

/// What making an instance took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instantiation {
    /// The store with its limits.
    pub store: Duration,
    /// The instance in it.
    pub instance: Duration,
    /// Dropping both.
    pub drop: Duration,
}

impl App {
    pub(crate) fn new(runtime: &Runtime, blueprint: Blueprint, pre: ProxyPre<StoreData>) -> Result<Self, LoadError> {
        let metrics = runtime.metrics.clone();
        let proxy = ProxyHandler::new(Instances { blueprint, pre, metrics });
        let room = Arc::clone(&runtime.room);
        Ok(Self { proxy, room, admission_wait: runtime.config.admission_wait })
    }

    /// The component's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.proxy.state().blueprint.app
    }

    /// Answers a request with an instance of its own.
    ///
    /// Dropping the future, or the response's body before its end, ends the
    /// instance and frees all it holds, even while the guest spins or waits.
    ///
    /// # Errors
    /// See [`HandleError`].
    pub async fn handle<B>(&self, request: Request<B>) -> Result<Response<ResponseBody>, HandleError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let result = self.answer(request).await;
        let state = self.proxy.state();
        match &result {
            Ok(_) => state.metrics.ended("response"),
            Err(error) => {
                tracing::warn!(app = &*state.blueprint.app, %error, "a request got no response");
                state.metrics.ended(error.kind());
            }
        }
        result
    }

    async fn answer<B>(&self, request: Request<B>) -> Result<Response<ResponseBody>, HandleError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let arrived = Instant::now();
        let admitted = tokio::time::timeout(self.admission_wait, Arc::clone(&self.room).acquire_owned()).await;
        let Ok(Ok(permit)) = admitted else { return Err(HandleError::AtCapacity) };
        let blueprint = &self.proxy.state().blueprint;
        let control = Arc::new(RequestControl::new(arrived + blueprint.limits.wall, Depth::of(&request), permit));
        let guard = GoneGuard::new(Arc::clone(&control));
        // A body that breaks off in transfer is the client's fault, or a limit.
        let request =
            request.map(|body| body.map_err(|e| WireError::InternalError(Some(e.to_string()))).boxed_unsync());
        match self.proxy.handle(Arc::clone(&control), request).await {
            Ok(response) => {
                let app = Arc::clone(&blueprint.app);
                Ok(response.map(|body| ResponseBody::new(body, guard, app)))
            }
            Err(error) => Err(HandleError::classify(&error, &control).await),
        }
    }

    /// Makes a store and an instance and drops them: what a request costs before
    /// the guest does anything.
    ///
    /// # Errors
    /// [`HandleError::AtCapacity`] and what the guest's start does wrong.
    pub async fn instantiate_once(&self) -> Result<Instantiation, HandleError> {
        let state = self.proxy.state();
        let outcome = Arc::new(Outcome::default());
        let begin = Instant::now();
        let mut store = state.blueprint.store(Slot::default(), Arc::clone(&outcome));
        let made = begin.elapsed();
        let cpu = Arc::clone(&store.data().cpu);
        let instance = cpu.follow(state.pre.instantiate_async(&mut store)).await;
        let instantiated = begin.elapsed();
        instance.map_err(|e| HandleError::of(&e, &outcome))?;
        drop(store);
        let dropped = begin.elapsed();
        Ok(Instantiation { store: made, instance: instantiated - made, drop: dropped - instantiated })
    }
}

/// Makes an instance for each request.
struct Instances {
    blueprint: Blueprint,
    pre: ProxyPre<StoreData>,
    metrics: RuntimeMetrics,
}

impl HandlerState for Instances {
    type StoreData = StoreData;
    type WorkerExpiration = Expiration;
    type WorkerState = OneRequest;

    async fn instantiate(&self) -> wasmtime::Result<Instance<StoreData, Expiration, OneRequest>> {
        let begin = Instant::now();
        let slot = Slot::default();
        let outcome = Arc::new(Outcome::default());
        let mut store = self.blueprint.store(slot.clone(), Arc::clone(&outcome));
        let cpu = Arc::clone(&store.data().cpu);
        let instantiate = cpu.follow(self.pre.instantiate_async(&mut store));
        let Ok(proxy) = tokio::time::timeout(self.blueprint.limits.wall, instantiate).await else {
            return Err(HandleError::WallLimit.into());
        };
        // Read here, since the request does not know this store yet.
        let proxy = proxy.map_err(|e| HandleError::of(&e, &outcome))?;
        self.metrics.instantiate_seconds.observe(begin.elapsed().as_secs_f64());
        Ok(Instance {
            store,
            proxy,
            view: StoreData::http,
            expiration: Expiration::new(slot, cpu),
            state: OneRequest { _alive: self.metrics.instance() },
        })
    }
}

/// The life of an instance: one request.
struct OneRequest {
    _alive: Alive,
}

impl WorkerState for OneRequest {
    type StoreData = StoreData;
    type RequestData = Arc<RequestControl>;

    fn should_accept_request(&self, _concurrent: usize, total: usize) -> ShouldAccept {
        if total == 0 { ShouldAccept::Yes } else { ShouldAccept::Never }
    }

    fn on_request_start(
        &self,
        mut store: StoreContextMut<'_, StoreData>,
        control: Arc<RequestControl>,
        _task: GuestTaskId,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
        let data = store.data_mut();
        data.permit = control.take_permit();
        data.slot.attach(control, Arc::clone(&data.outcome));
        // Time is kept by `Expiration`, from outside of the store.
        Box::pin(std::future::pending())
    }

    fn drop(&self, mut store: Store<StoreData>, result: Result<(), wasmtime::Error>) {
        if let Err(error) = &result {
            tracing::debug!(error = format!("{error:#}"), "an instance ended early");
        }
        if let Some(control) = store.data().slot.get() {
            control.set_end(End::of(&result));
        }
        let permit = store.data_mut().permit.take();
        // The place is free when all that the instance held is.
        drop(store);
        drop(permit);
    }
}
