//! What instances cost: making one, and calling the host from one.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use nala_e2e::guests;
use nala_engine::fake::Fake;
use nala_engine::{EngineConfig, ModelPool, ModelSpec, PoolConfig, Residence};
use nala_wasm::{App, Grant, Limits, Runtime, RuntimeConfig, Source};

use crate::report::quantile;

/// Instances made for the figures, after as many again to warm up.
const INSTANCES: usize = 3000;
/// Instances of a block.
const BLOCK: usize = 150;
/// Calls of the host in one request.
const CALLS: usize = 100_000;

pub(crate) fn print() {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(async {
        let runtime = Runtime::new(RuntimeConfig::default()).expect("a runtime");
        let fake = ModelSpec {
            name: "fake".to_owned(),
            bytes: 0,
            residence: Residence::Resident,
            engine: EngineConfig::default(),
            load: Box::new(|| Ok(Fake::default().load())),
        };
        let pool = ModelPool::new(PoolConfig::default(), vec![fake], tokio::runtime::Handle::current());
        let pool = pool.expect("a pool");
        for model in pool.models() {
            model.preload().expect("an engine");
        }
        let compile = |name: &str, path: &Path| runtime.compile(name, Source::File(path)).expect("the guest compiles");
        let templates = compile("chat-template", &guests::guest("components", "chat-template"));
        let renderer = Arc::new(runtime.load_renderer(&templates, Limits::renderer()).expect("the renderer loads"));
        let load = |name: &str, path: &Path| {
            let grant =
                Grant { models: pool.models().collect(), renderer: Some(Arc::clone(&renderer)), ..Grant::default() };
            runtime.load(&compile(name, path), grant).expect("the guest loads")
        };
        println!("\nStore and instance, warm, µs");
        for name in ["ask", "openai"] {
            instantiation(&load(name, &guests::guest("components", name))).await;
        }
        let app = load("behaviours", &guests::guest("host/wasm/guests", "behaviours"));
        instantiation(&app).await;
        host_calls(&app).await;
        pool.shutdown().await;
    });
}

async fn instantiation(app: &App) {
    let mut made = Vec::with_capacity(INSTANCES);
    let mut stores = Vec::with_capacity(INSTANCES);
    let mut dropped = Vec::with_capacity(INSTANCES);
    for n in 0..2 * INSTANCES {
        let took = app.instantiate_once().await.expect("an instance");
        if n >= INSTANCES {
            made.push((took.store + took.instance).as_secs_f64() * 1e6);
            stores.push(took.store.as_secs_f64() * 1e6);
            dropped.push(took.drop.as_secs_f64() * 1e6);
        }
    }
    // The machine's own speed drifts within seconds: the best of short blocks is
    // what an instance costs where nothing else takes the cores.
    let best = made.chunks(BLOCK).map(|block| {
        let mut block = block.to_vec();
        block.sort_by(f64::total_cmp);
        quantile(&block, 0.5)
    });
    let best = best.fold(f64::INFINITY, f64::min);
    made.sort_by(f64::total_cmp);
    stores.sort_by(f64::total_cmp);
    dropped.sort_by(f64::total_cmp);
    println!(
        "{:<12} p50 {:5.1}, p99 {:5.1}, p50 of the best block {best:.1} (the store alone: p50 {:.1}; dropping both: p50 {:.1}, p99 {:.1})",
        app.name(),
        quantile(&made, 0.5),
        quantile(&made, 0.99),
        quantile(&stores, 0.5),
        quantile(&dropped, 0.5),
        quantile(&dropped, 0.99)
    );
}

async fn host_calls(app: &App) {
    let request = http::Request::get(format!("http://localhost/host-calls?{CALLS}"));
    let request = request.body(Full::<Bytes>::default()).expect("a request");
    let response = app.handle(request).await.expect("a response");
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    let (simple, meter) = text.split_once(' ').expect("two figures");
    println!(
        "A call of the host, ns: {simple} (nala:llm/meter.limit), {meter} (nala:llm/meter.used, which reads a clock of the system)"
    );
}
