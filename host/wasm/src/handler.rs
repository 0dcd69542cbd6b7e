//! Answering requests with fresh instances.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use nala_tenant::{Admission, Counter, Exceeded, Limit, Stock, Tenant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime_wasi_http::Error as WireError;
use wasmtime_wasi_http::handler::{ProxyPre, Request as WasiRequest, Response as WasiResponse};

use crate::account::Place;
use crate::body::{GoneGuard, ResponseBody, counted};
use crate::capabilities::Own;
use crate::control::RequestControl;
use crate::engine::Runtime;
use crate::error::{HandleError, RETRY};
use crate::load::LoadError;
use crate::outbound::Origin;
use crate::outcome::Outcome;
use crate::setback::Setback;
use crate::store::{Blueprint, StoreData};
use crate::threads::{self, GuestThreads};
use crate::worker::Instances;

/// A handler, ready to answer requests. A cheap handle: clones share it.
#[derive(Clone)]
pub struct App {
    instances: Arc<Instances>,
    room: Arc<Semaphore>,
    threads: Arc<GuestThreads>,
    admission_wait: Duration,
}

/// A request's place among all instances and among those of its tenant. Free again
/// when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    _room: OwnedSemaphorePermit,
    _place: Place,
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
        let (typical, setback) = (Arc::default(), Setback::default());
        let instances = Arc::new(Instances { blueprint, pre, metrics, typical, setback });
        let (room, threads) = (Arc::clone(&runtime.room), Arc::clone(&runtime.threads));
        Ok(Self { instances, room, threads, admission_wait: runtime.config.admission_wait })
    }

    /// The component's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.instances.blueprint.app
    }

    /// The same handler for another tenant: requests are on its account, and share
    /// beginnings of texts and saved sessions with its other ones only. `own` takes the
    /// place of what was granted of its kind.
    #[must_use]
    pub fn of(&self, tenant: Arc<Tenant>, own: Own) -> Self {
        let Instances { blueprint, pre, metrics, .. } = &*self.instances;
        let blueprint = blueprint.of(tenant, own);
        let (typical, setback) = (Arc::default(), Setback::default());
        let instances = Arc::new(Instances { blueprint, pre: again(pre), metrics: metrics.clone(), typical, setback });
        Self { instances, ..self.clone() }
    }

    /// Whose requests it answers.
    #[must_use]
    pub fn tenant(&self) -> &Arc<Tenant> {
        &self.instances.blueprint.account.tenant
    }

    /// Answers a request with an instance of its own.
    ///
    /// Dropping the future, or the response's body before its end, ends the
    /// instance and frees all it holds, even while the guest spins or waits.
    /// Faults of the guest that come too fast after each other are told later.
    ///
    /// # Errors
    /// See [`HandleError`].
    pub async fn handle<B>(&self, request: Request<B>) -> Result<Response<ResponseBody>, HandleError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let result = self.answer(request).await;
        let state = &self.instances;
        match &result {
            Ok(_) => state.metrics.ended("response"),
            Err(error) => {
                tracing::warn!(app = &*state.blueprint.app, %error, "a request got no response");
                state.metrics.ended(error.kind());
                state.blueprint.account.meter.add(Counter::Errors, 1);
                if error.is_fault() {
                    tokio::time::sleep(state.setback.failed(Instant::now())).await;
                }
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
        let blueprint = &self.instances.blueprint;
        let account = &blueprint.account;
        account.may_begin().map_err(HandleError::Tenant)?;
        let admissions = [self.admit(&account.tenant).await?, self.admit(&account.component).await?];
        account.meter.add(Counter::Requests, 1);
        // Its own limit first: a tenant that has used up its instances waits for none of
        // those that are everybody's.
        let place = account.place(blueprint.limits.handles).map_err(HandleError::Tenant)?;
        let room = tokio::time::timeout(self.admission_wait, Arc::clone(&self.room).acquire_owned()).await;
        let Ok(Ok(room)) = room else { return Err(HandleError::AtCapacity) };
        let seat = Seat { _room: room, _place: place };
        let control = Arc::new(RequestControl::new(arrived + blueprint.limits.wall, Origin::of(&request), seat));
        let guard = GoneGuard::new(Arc::clone(&control));
        // A body that breaks off in transfer is the client's fault, or a limit.
        let meter = Arc::clone(&account.meter);
        let request = request.map(|body| {
            let counted = counted(body, meter, Counter::BytesIn);
            counted.map_err(|e| WireError::InternalError(Some(e.to_string()))).boxed_unsync()
        });
        match self.begin(Arc::clone(&control), request).await {
            Ok(response) => {
                let (app, account) = (Arc::clone(&blueprint.app), Arc::clone(account));
                Ok(response.map(|body| ResponseBody::new(body, guard, app, account, admissions)))
            }
            Err(error) => Err(HandleError::classify(&error, &control).await),
        }
    }

    /// Has an instance answer: here, or on the guest threads where it may keep others
    /// waiting.
    async fn begin(&self, control: Arc<RequestControl>, request: WasiRequest) -> wasmtime::Result<WasiResponse> {
        let (answer, response) = futures::channel::oneshot::channel();
        let Blueprint { account, models, .. } = &self.instances.blueprint;
        let task = Box::pin(Arc::clone(&self.instances).work(Arc::clone(&control), request, answer));
        let place = threads::Place {
            control,
            typical: Arc::clone(&self.instances.typical),
            tenant: Arc::clone(&account.tenant),
            turns: Arc::clone(&models.turns),
            guest: self.threads.entrance(),
        };
        place.begin(task);
        response.await.unwrap_or_else(|_| Err(wasmtime::format_err!("the instance ended without a response")))
    }

    /// Lets a request in, after those of the same owner that came before.
    async fn admit(&self, owner: &Arc<Tenant>) -> Result<Admission, HandleError> {
        match tokio::time::timeout(self.admission_wait, owner.admit_or_wait()).await {
            Ok(admitted) => admitted.map_err(HandleError::Tenant),
            Err(_late) => {
                let (limit, value) = (Limit::Stock(Stock::Requests), owner.quota(Stock::Requests).limit());
                Err(HandleError::Tenant(Exceeded { limit, value, retry_after: Some(RETRY) }))
            }
        }
    }

    /// Makes a store and an instance and drops them: what a request costs before
    /// the guest does anything.
    ///
    /// # Errors
    /// [`HandleError::AtCapacity`] and what the guest's start does wrong.
    pub async fn instantiate_once(&self) -> Result<Instantiation, HandleError> {
        let state = &self.instances;
        let outcome = Arc::new(Outcome::default());
        let begin = Instant::now();
        let mut store = state.blueprint.store(&state.blueprint.account, None, Arc::clone(&outcome));
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

/// The same for another owner. Both share the code.
fn again(pre: &ProxyPre<StoreData>) -> ProxyPre<StoreData> {
    match pre {
        ProxyPre::P2(pre) => ProxyPre::P2(pre.clone()),
        ProxyPre::P3(pre) => ProxyPre::P3(pre.clone()),
    }
}
