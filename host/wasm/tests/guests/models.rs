//! Several models for one guest, loaded when it opens them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Bench, request, tight};
use http_body_util::BodyExt;
use nala_engine::fake::Fake;
use nala_engine::{EngineConfig, ModelPool, ModelSpec, PoolConfig, Residence};
use nala_wasm::{App, HandleError, Limits};
use tokio::runtime::Handle;

/// What the loaders do, and have done.
#[derive(Default)]
struct Loads {
    count: AtomicUsize,
    held: AtomicBool,
    failing: AtomicBool,
}

/// Room for one of two models, which say their names.
fn pool(loads: &Arc<Loads>, max_wait: Duration) -> ModelPool {
    let spec = |name: &'static str| {
        let loads = Arc::clone(loads);
        ModelSpec {
            name: name.to_owned(),
            bytes: 10,
            residence: Residence::OnDemand,
            engine: EngineConfig::default(),
            load: Box::new(move || {
                loads.count.fetch_add(1, Ordering::SeqCst);
                while loads.held.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                match loads.failing.load(Ordering::SeqCst) {
                    true => Err("/secret/path is damaged".into()),
                    false => Ok(Fake::saying(name).load()),
                }
            }),
        }
    };
    let config = PoolConfig { budget: 10, max_wait, ..PoolConfig::default() };
    ModelPool::new(config, vec![spec("one"), spec("two")], Handle::current()).unwrap()
}

async fn text(app: &App, path: &str) -> Result<String, HandleError> {
    let body = app.handle(request(path)).await?.into_body().collect().await.unwrap().to_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_opens_any_model_it_is_granted() {
    let loads = Arc::default();
    let (_runtime, app) = Bench::pooled(Limits::default(), &pool(&loads, Duration::from_secs(60)));
    for name in ["two", "one", "two"] {
        let told = text(&app, &format!("/open?{name}")).await.unwrap();
        assert_eq!(told, format!(r#"{name} says {name} with 1024 cells of ["one", "two"]"#));
    }
    assert_eq!(loads.count.load(Ordering::SeqCst), 3, "each makes room for the other");
    let told = text(&app, "/open?three").await.unwrap();
    assert!(told.contains("NotFound") && told.contains("available: one, two"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_load_is_no_cpu_time_but_wall_time() {
    let loads: Arc<Loads> = Arc::default();
    loads.held.store(true, Ordering::SeqCst);
    let models = pool(&loads, Duration::from_secs(60));
    let (_runtime, app) = Bench::pooled(tight(), &models);
    let waits = tokio::spawn({
        let app = app.clone();
        async move { text(&app, "/open?one").await }
    });
    // Longer than the CPU time of 200 ms.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(!waits.is_finished());
    let (_runtime, hasty) = Bench::pooled(Limits { wall: Duration::from_millis(200), ..Limits::default() }, &models);
    assert_eq!(text(&hasty, "/open?one").await, Err(HandleError::WallLimit));
    loads.held.store(false, Ordering::SeqCst);
    assert!(waits.await.unwrap().unwrap().starts_with("one says one"));
    assert_eq!(loads.count.load(Ordering::SeqCst), 1, "both waited for the same load");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_alone_keeps_its_model_and_others_are_told_busy() {
    let loads = Arc::default();
    let models = pool(&loads, Duration::from_millis(100));
    let (_runtime, app) = Bench::pooled(Limits::default(), &models);
    let mut holds = app.handle(request("/hold?one")).await.unwrap().into_body();
    assert_eq!(holds.frame().await.unwrap().unwrap().into_data().unwrap(), "begun");
    assert!(text(&app, "/open?two").await.unwrap().contains("Error::Busy"));
    assert!(text(&app, "/open?one").await.unwrap().starts_with("one says one"));
    drop(holds);
    let mut told = text(&app, "/open?two").await.unwrap();
    for _ in 0..50 {
        if !told.contains("Error::Busy") {
            break;
        }
        told = text(&app, "/open?two").await.unwrap();
    }
    assert!(told.starts_with("two says two"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_fails_is_told_without_paths() {
    let loads: Arc<Loads> = Arc::default();
    loads.failing.store(true, Ordering::SeqCst);
    let (_runtime, app) = Bench::pooled(Limits::default(), &pool(&loads, Duration::from_secs(60)));
    let told = text(&app, "/open?one").await.unwrap();
    assert!(told.contains("Backend") && told.contains("model one") && !told.contains("secret"), "{told}");
}
