//! What a store holds, and how one is set up.

use std::sync::Arc;

use nala_tenant::Tenant;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::account::Account;
use crate::capabilities::{Granted, Own};
use crate::chat::renderer::Renderer;
use crate::clocks::GuestClock;
use crate::control::RequestControl;
use crate::cpu::CpuClock;
use crate::handler::Seat;
use crate::key_value::Budget;
use crate::limits::Limits;
use crate::llm::LlmState;
use crate::memory::MemoryLimiter;
use crate::nn::NnState;
use crate::outbound::Sender;
use crate::outcome::Outcome;
use crate::relay::{Relay, Scope};
use crate::stdio::LogStream;
use crate::telemetry::Access;
use crate::tick::Ticker;
use crate::tools::call::Reporter;
use crate::tools::toolbox::Toolbox;

/// Ticks that a guest runs before it looks up and lets others run.
const SLICE_TICKS: u64 = 1;

/// Bytes of randomness that a guest may ask for in one call.
const MAX_RANDOM: u64 = 64 << 10;

/// The data of a store.
pub(crate) struct StoreData {
    pub(crate) table: ResourceTable,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    outbound: Sender,
    pub(crate) memory: MemoryLimiter,
    pub(crate) cpu: Arc<CpuClock>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) llm: LlmState,
    pub(crate) nn: NnState,
    pub(crate) renderer: Option<Arc<Renderer>>,
    /// What it may call.
    pub(crate) tools: Arc<Toolbox>,
    /// Who is told how far it has got, if it answers a call.
    pub(crate) listener: Option<Reporter>,
    pub(crate) relay: Arc<Relay>,
    /// What it may read of the machine.
    pub(crate) telemetry: Access,
    /// Whose instances it may talk to.
    pub(crate) scope: Scope,
    /// What it is granted beside models.
    pub(crate) granted: Arc<Granted>,
    pub(crate) clock: GuestClock,
    pub(crate) key_value: Budget,
    /// What it prints and logs.
    pub(crate) log: LogStream,
    /// The request that the store works for, if it does for one.
    pub(crate) request: Option<Arc<RequestControl>>,
    /// Its place among the instances, once it works for a request.
    pub(crate) seat: Option<Seat>,
    /// Whom it works for.
    pub(crate) account: Arc<Account>,
}

/// What all stores of a component have in common.
#[derive(Clone)]
pub(crate) struct Blueprint {
    pub(crate) engine: Engine,
    /// Ticks for as long as there is a component to be interrupted: without it a
    /// guest that spins would never look up.
    pub(crate) _ticker: Arc<Ticker>,
    pub(crate) app: Arc<str>,
    /// Whom its stores work for.
    pub(crate) account: Arc<Account>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) models: crate::llm::Models,
    pub(crate) renderer: Option<Arc<Renderer>>,
    pub(crate) tools: Arc<Toolbox>,
    pub(crate) relay: Arc<Relay>,
    pub(crate) telemetry: Access,
    /// The application that it is a part of.
    pub(crate) application: Arc<str>,
    pub(crate) granted: Arc<Granted>,
}

impl Blueprint {
    /// The same for another tenant, with what that has of its own.
    pub(crate) fn of(&self, tenant: Arc<Tenant>, own: Own) -> Self {
        let account = Arc::new(Account::new(tenant, Arc::clone(&self.account.component), &self.app));
        Self { account, granted: Arc::new(self.granted.with(own)), ..self.clone() }
    }

    /// A store with its limits armed, on the account of `account`. `outcome` is where
    /// it says that a limit stopped it.
    pub(crate) fn store(
        &self,
        account: &Arc<Account>,
        request: Option<Arc<RequestControl>>,
        outcome: Arc<Outcome>,
    ) -> Store<StoreData> {
        let limits = &self.limits;
        let cpu = Arc::new(CpuClock::new(limits.cpu, Arc::clone(&outcome), request.clone()));
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles as usize);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(limits.header_bytes as usize);
        let clock = GuestClock::start(self.granted.clocks);
        let log = LogStream::new(Arc::clone(&self.app), limits.log_bytes, Arc::clone(account));
        let data = StoreData {
            table,
            wasi: self.wasi(clock, &log),
            http,
            outbound: self.sender(account, request.as_deref()),
            memory: MemoryLimiter::new(limits, account, outcome),
            cpu: Arc::clone(&cpu),
            limits: Arc::clone(limits),
            llm: LlmState::new(self.models.clone(), Arc::clone(account), limits),
            nn: NnState::default(),
            renderer: self.renderer.clone(),
            tools: Arc::clone(&self.tools),
            listener: None,
            relay: Arc::clone(&self.relay),
            telemetry: self.telemetry.clone(),
            scope: Scope {
                application: Arc::clone(&self.application),
                app: Arc::clone(&self.app),
                tenant: account.tenant.name().clone(),
            },
            granted: Arc::clone(&self.granted),
            clock,
            key_value: Budget::new(limits),
            log,
            request,
            seat: None,
            account: Arc::clone(account),
        };
        let mut store = Store::new(&self.engine, data);
        store.limiter(|data| &mut data.memory);
        store.set_hostcall_fuel(limits.call_bytes as usize);
        store.set_max_component_handles(limits.handles as usize);
        self.arm(&mut store, cpu);
        store
    }

    /// Has a store work for another request, with its limits armed anew. What it holds stays
    /// on the account that it was made for.
    pub(crate) fn rearm(&self, store: &mut Store<StoreData>, request: Arc<RequestControl>) {
        let (limits, outcome) = (&self.limits, Arc::clone(&request.outcome));
        let cpu = Arc::new(CpuClock::new(limits.cpu, Arc::clone(&outcome), Some(Arc::clone(&request))));
        let data = store.data_mut();
        data.outbound = self.sender(&data.account, Some(&request));
        data.memory.tell(outcome);
        data.cpu = Arc::clone(&cpu);
        data.key_value = Budget::new(limits);
        data.log.renew(limits.log_bytes);
        data.request = Some(request);
        data.listener = None;
        self.arm(store, cpu);
    }

    fn sender(&self, account: &Arc<Account>, request: Option<&RequestControl>) -> Sender {
        Sender::new(
            Arc::clone(&self.app),
            self.granted.outbound.clone(),
            &self.limits,
            request.map(|request| request.origin.clone()),
            Arc::clone(account),
        )
    }

    /// Has a store be interrupted when its time is up, and take turns with others.
    fn arm(&self, store: &mut Store<StoreData>, cpu: Arc<CpuClock>) {
        let account = &store.data().account;
        let (turns, tenant) = (Arc::clone(&self.models.turns), Arc::clone(&account.tenant));
        store.epoch_deadline_callback(move |store| {
            cpu.check()?;
            cpu.stop();
            let used = cpu.used();
            if let Some(request) = &store.data().request {
                request.note_computing();
            }
            let waits = !turns.may_go_on(&tenant, cpu.fresh());
            let (cpu, turns, tenant) = (Arc::clone(&cpu), Arc::clone(&turns), Arc::clone(&tenant));
            let rest = async move {
                // Tokio's own yield puts the task behind all others that are ready;
                // wasmtime's plain one may be polled again at once.
                tokio::task::yield_now().await;
                if waits {
                    cpu.take_turn(turns.cpu.take(&tenant, used).await);
                }
                cpu.start();
            };
            Ok(UpdateDeadline::YieldCustom(SLICE_TICKS, Box::pin(rest)))
        });
        store.set_epoch_deadline(SLICE_TICKS);
    }

    /// WASI with the environment and the files that are granted, and without
    /// arguments and network; what is printed goes to the log.
    fn wasi(&self, clock: GuestClock, log: &LogStream) -> WasiCtx {
        let mut wasi = WasiCtx::builder();
        wasi.stdout(log.clone())
            .stderr(log.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .max_random_size(MAX_RANDOM)
            .wall_clock(clock);
        for (name, value) in &*self.granted.environment {
            wasi.env(name, value.expose());
        }
        let mut wasi = wasi.build();
        wasi.filesystem().clone_from(&self.granted.files.filesystem);
        wasi
    }
}

impl WasiView for StoreData {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for StoreData {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.outbound, table: &mut self.table, ctx: &mut self.http }
    }
}
