//! What a store holds, and how one is set up.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::chat::renderer::Renderer;
use crate::control::Slot;
use crate::cpu::CpuClock;
use crate::limits::Limits;
use crate::llm::LlmState;
use crate::memory::MemoryLimiter;
use crate::nn::NnState;
use crate::outbound::DenyOutbound;
use crate::outcome::Outcome;
use crate::stdio::LogStream;
use crate::tick::Ticker;

/// Ticks that a guest runs before it looks up and lets others run.
const SLICE_TICKS: u64 = 1;

/// Bytes of randomness that a guest may ask for in one call.
const MAX_RANDOM: u64 = 64 << 10;

/// The data of a store.
pub(crate) struct StoreData {
    pub(crate) table: ResourceTable,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    outbound: DenyOutbound,
    pub(crate) memory: MemoryLimiter,
    pub(crate) cpu: Arc<CpuClock>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) llm: LlmState,
    pub(crate) nn: NnState,
    pub(crate) renderer: Option<Arc<Renderer>>,
    /// The request that the store works for.
    pub(crate) slot: Slot,
    /// Its place among the instances, once it works for a request.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// What stopped the store, if something did.
    pub(crate) outcome: Arc<Outcome>,
}

/// What all stores of a component have in common.
#[derive(Clone)]
pub(crate) struct Blueprint {
    pub(crate) engine: Engine,
    /// Ticks for as long as there is a component to be interrupted: without it a
    /// guest that spins would never look up.
    pub(crate) _ticker: Arc<Ticker>,
    pub(crate) app: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) models: crate::llm::Models,
    pub(crate) renderer: Option<Arc<Renderer>>,
}

impl Blueprint {
    /// A store with its limits armed. `outcome` is where it says that a limit
    /// stopped it.
    pub(crate) fn store(&self, slot: Slot, outcome: Arc<Outcome>) -> Store<StoreData> {
        let limits = &self.limits;
        let cpu = Arc::new(CpuClock::new(limits.cpu, Arc::clone(&outcome)));
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles as usize);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(limits.header_bytes as usize);
        let data = StoreData {
            table,
            wasi: self.wasi(),
            http,
            outbound: DenyOutbound,
            memory: MemoryLimiter::new(limits, Arc::clone(&outcome)),
            cpu: Arc::clone(&cpu),
            limits: Arc::clone(limits),
            llm: LlmState::new(self.models.clone(), Arc::clone(&self.app), limits),
            nn: NnState::default(),
            renderer: self.renderer.clone(),
            slot,
            permit: None,
            outcome,
        };
        let mut store = Store::new(&self.engine, data);
        store.limiter(|data| &mut data.memory);
        store.set_hostcall_fuel(limits.call_bytes as usize);
        store.set_max_component_handles(limits.handles as usize);
        let clock = Arc::clone(&cpu);
        store.call_hook(move |_, hook| {
            clock.cross(hook);
            Ok(())
        });
        store.set_epoch_deadline(SLICE_TICKS);
        store.epoch_deadline_callback(move |_| {
            cpu.check()?;
            // Tokio's own yield puts the task behind all others that are ready;
            // wasmtime's plain one may be polled again at once.
            cpu.stop();
            let cpu = Arc::clone(&cpu);
            let rest = async move {
                tokio::task::yield_now().await;
                cpu.start();
            };
            Ok(UpdateDeadline::YieldCustom(SLICE_TICKS, Box::pin(rest)))
        });
        store
    }

    /// WASI with nothing granted: no files, no environment, no arguments, no
    /// network; what is printed goes to the log.
    fn wasi(&self) -> WasiCtx {
        let output = LogStream::new(Arc::clone(&self.app), self.limits.log_bytes);
        WasiCtx::builder()
            .stdout(output.clone())
            .stderr(output)
            .allow_tcp(false)
            .allow_udp(false)
            .max_random_size(MAX_RANDOM)
            .build()
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
