//! What guests learn about the machine, and who does.

#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use nala_engine::fake::{BeforeDecode, Fake};
use nala_engine::{EngineConfig, ModelPool, ModelSpec, PoolConfig, PooledModel, Residence};
use nala_tenant::{Declared, Directory, Roster, SystemClock, Tenant, Totals};
use nala_wasm::{App, Grant, Limits, Own, Runtime, RuntimeConfig, Source, Telemetry};
use tokio::runtime::Handle;

use crate::common::{guest, request};

/// A model that takes its time.
fn slow() -> Fake {
    let before_decode: BeforeDecode = Arc::new(|_| {
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    });
    Fake { before_decode, ..Fake::default() }
}

/// Two models, neither of them loaded.
fn models() -> Vec<PooledModel> {
    let spec = |name: &str| ModelSpec {
        name: name.to_owned(),
        bytes: 10,
        residence: Residence::OnDemand,
        engine: EngineConfig::default(),
        load: Box::new(|| Ok(slow().load())),
    };
    let pool = ModelPool::new(PoolConfig::default(), vec![spec("one"), spec("two")], Handle::current()).unwrap();
    pool.models().collect()
}

fn app(telemetry: Telemetry, models: Vec<PooledModel>) -> (Runtime, App) {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let compiled = runtime.compile("behaviours", Source::File(&guest("behaviours"))).unwrap();
    let grant = Grant { models, telemetry, limits: Limits::default(), ..Grant::default() };
    let app = runtime.load(&compiled, grant).unwrap();
    (runtime, app)
}

/// A tenant that the operator has declared.
fn tenant(name: &str, reads_machine: bool, models: Option<&str>) -> Arc<Tenant> {
    let mut roster = Roster::new();
    let declared = Declared::new(name.parse().unwrap());
    let models = models.map(|model| [model.to_owned()].into());
    roster.add(Declared { reads_machine, models, weight: NonZeroU32::MIN, ..declared }).unwrap();
    Directory::new(roster, &Totals::default(), Arc::new(SystemClock::new())).tenant(name).unwrap()
}

async fn text(app: &App, path: &str) -> String {
    let body = app.handle(request(path)).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// A number behind a name in what a guest prints of a record.
fn number(text: &str, name: &str) -> u64 {
    let rest = text.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("no {name} in {text}")).1;
    let rest = rest.strip_prefix("Some(").unwrap_or(rest);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{name} is no number in {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_granted_it_is_told_what_to_write() {
    let (_runtime, app) = app(Telemetry::default(), models());
    for path in ["/machine", "/load", "/models"] {
        let told = text(&app, path).await;
        assert!(told.contains("Error::Denied") && told.contains("telemetry = true"), "{path}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_the_machine_is_told_what_it_is_and_does() {
    let models = models();
    let (_runtime, app) = app(Telemetry::Operator(models.clone()), models);
    let told = text(&app, "/machine").await;
    let machine = nala_machine::Machine::probe();
    // Behind those of the nodes, which can be less: memory that was added later is of none.
    let whole = &told[told.rfind(" memory-bytes").unwrap()..];
    assert_eq!(number(whole, "memory-bytes"), machine.memory.total_bytes.unwrap(), "{told}");
    assert_eq!(number(&told, "logical-cpus"), machine.topology.logical_cpus.unwrap() as u64);
    for feature in &machine.cpu.features {
        assert!(told.contains(&format!("{feature:?}")), "{feature} is not in {told}");
    }
    let told = text(&app, "/load").await;
    assert!(told.contains("busy: ") && number(&told, "over-ms") >= 200, "{told}");
    assert!(number(&told, "used-bytes") < number(&told, "total-bytes"), "{told}");
    // The kernel's own words for it, a moment apart.
    let averages = nala_machine::Load::now().averages.unwrap();
    let fifteen = told.split_once("fifteen-minutes: ").unwrap().1.split([' ', ',', '}']).next().unwrap();
    assert!((fifteen.parse::<f64>().unwrap() - averages.fifteen_minutes).abs() < 1.0, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_opened_and_runs_is_seen_to() {
    let models = models();
    let (_runtime, app) = app(Telemetry::Operator(models.clone()), models);
    assert_eq!(text(&app, "/models").await, "one ModelState::Unloaded 0 0\ntwo ModelState::Unloaded 0 0");
    let mut body = app.handle(request("/generate-forever")).await.unwrap().into_body();
    assert!(body.frame().await.is_some(), "it writes");
    let mut told = String::new();
    for _ in 0..100 {
        told = text(&app, "/models").await;
        if told.starts_with("one ModelState::Loaded 1 4096\n") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(told, "one ModelState::Loaded 1 4096\ntwo ModelState::Unloaded 0 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_again_and_again_shows_nothing_more() {
    let (_runtime, app) = app(Telemetry::Operator(Vec::new()), models());
    let told = text(&app, "/loads?500").await;
    let (readings, asked) = told.split_once(' ').unwrap();
    let (readings, asked): (u32, u32) = (readings.parse().unwrap(), asked.parse().unwrap());
    assert!((2..=7).contains(&readings), "one in a tenth of a second: {told}");
    assert!(asked >= readings, "{told}");
    let of_tenant = app.of(tenant("acme", false, None), Own::default());
    let told = text(&of_tenant, "/loads?500").await;
    assert!(told.starts_with("1 ") || told.starts_with("2 "), "one in a second: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_told_in_round_figures_of_what_they_may_use() {
    let models = models();
    let (_runtime, app) = app(Telemetry::Operator(models.clone()), models);
    let acme = app.of(tenant("acme", false, Some("two")), Own::default());
    assert_eq!(text(&acme, "/models").await, "two ModelState::Unloaded 0 0");
    let told = text(&acme, "/load").await;
    assert_eq!(number(&told, "used-bytes") % (64 << 20), 0, "{told}");
    assert_eq!(number(&told, "busy-us") % 100_000, 0, "{told}");
    let own = text(&app, "/load").await;
    assert_ne!((number(&own, "used-bytes") % (64 << 20), number(&own, "busy-us") % 100_000), (0, 0), "{own}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_has_deployed_is_told_where_the_operator_lets_it() {
    let models = models();
    let (_runtime, app) = app(Telemetry::Deployed(models.clone()), models);
    let refused = app.of(tenant("acme", false, None), Own::default());
    for path in ["/machine", "/load", "/models"] {
        let told = text(&refused, path).await;
        assert!(told.contains("Error::Denied") && told.contains("nala.toml"), "{path}: {told}");
    }
    // The operator's file was read again.
    let allowed = app.of(tenant("acme", true, None), Own::default());
    assert!(text(&allowed, "/models").await.starts_with("one ModelState::Unloaded"));
    let told = text(&allowed, "/load").await;
    assert_eq!(number(&told, "used-bytes") % (64 << 20), 0, "{told}");
}
