//! What the tests of this crate share.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part of this module")]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use nala_engine::fake::Fake;
use nala_engine::{Engine, EngineConfig, LoadedModel, ModelPool, ModelSpec, PoolConfig, PooledModel, Residence};
use nala_wasm::{
    App, Capabilities, Compiled, Grant, HandleError, Limits, ResponseBody, Runtime, RuntimeConfig, Source,
};
use tokio::runtime::Handle;

/// The guests, built once a run.
static GUESTS: LazyLock<PathBuf> = LazyLock::new(|| {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests");
    let target = workspace.join("target");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--quiet", "--target", "wasm32-wasip2", "--manifest-path"]);
    cargo.arg(workspace.join("Cargo.toml")).arg("--target-dir").arg(&target);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().into_owned();
        // What the outer cargo set for this build must not reach the inner one.
        if text.starts_with("CARGO_") && text != "CARGO_HOME" || text.starts_with("RUSTC") || text == "RUSTFLAGS" {
            cargo.env_remove(&name);
        }
    }
    assert!(cargo.status().expect("cargo runs").success(), "the guests do not build; is wasm32-wasip2 installed?");
    target.join("wasm32-wasip2/release")
});

pub fn guest(name: &str) -> PathBuf {
    GUESTS.join(format!("{name}.wasm"))
}

/// A runtime, a model that says the alphabet, and the guest that misbehaves.
pub struct Bench {
    pub runtime: Runtime,
    pub engine: Engine,
    pub app: App,
}

/// A model that stays loaded.
fn loaded(name: &str, model: LoadedModel) -> PooledModel {
    let model = Mutex::new(Some(model));
    let spec = ModelSpec {
        name: name.to_owned(),
        bytes: 0,
        residence: Residence::Resident,
        engine: EngineConfig::default(),
        load: Box::new(move || Ok(model.lock().unwrap().take().unwrap())),
    };
    let pool = ModelPool::new(PoolConfig::default(), vec![spec], Handle::current()).unwrap();
    let model = pool.models().next().unwrap();
    model.preload().unwrap();
    model
}

/// Limits that are reached soon.
pub fn tight() -> Limits {
    Limits {
        cpu: std::time::Duration::from_millis(200),
        wall: std::time::Duration::from_secs(20),
        memory_bytes: 32 << 20,
        ..Limits::default()
    }
}

impl Bench {
    pub fn new(limits: Limits) -> Self {
        Self::with(RuntimeConfig::default(), limits, "behaviours")
    }

    pub fn with(config: RuntimeConfig, limits: Limits, name: &str) -> Self {
        Self::load(config, Fake::default().load(), Grant { limits, ..Grant::default() }, name)
    }

    /// With another model, for the guest that misbehaves.
    pub fn with_model(config: RuntimeConfig, limits: Limits, model: LoadedModel) -> Self {
        Self::load(config, model, Grant { limits, ..Grant::default() }, "behaviours")
    }

    /// With another model, for any guest.
    pub fn serving(limits: Limits, model: LoadedModel, name: &str) -> Self {
        Self::load(RuntimeConfig::default(), model, Grant { limits, ..Grant::default() }, name)
    }

    /// The guest that misbehaves, with a second model, `other`.
    pub fn with_two_models() -> Self {
        let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
        let other = loaded("other", Fake::default().load());
        let grant = Grant { models: vec![other], ..Grant::default() };
        Self::load_in(runtime, Fake::default().load(), grant, "behaviours")
    }

    /// A guest that has prompts rendered, and a renderer that misbehaves.
    pub fn rendering(config: RuntimeConfig, limits: Limits, renderer: Limits) -> Self {
        let runtime = Runtime::new(config).unwrap();
        let compiled = runtime.compile("renderer", Source::File(&guest("renderer"))).unwrap();
        let renderer = Some(runtime.load_renderer(&compiled, renderer).unwrap().into());
        Self::load_in(runtime, Fake::default().load(), Grant { limits, renderer, ..Grant::default() }, "prompts")
    }

    /// The guest that tries what it is granted.
    pub fn granted(capabilities: Capabilities) -> Self {
        Self::granted_within(Limits::default(), capabilities, "capabilities")
    }

    /// One that tries what it is granted, within limits.
    pub fn granted_within(limits: Limits, capabilities: Capabilities, name: &str) -> Self {
        let grant = Grant { limits, capabilities, ..Grant::default() };
        Self::load(RuntimeConfig::default(), Fake::default().load(), grant, name)
    }

    /// A guest with all that it is granted.
    pub fn granting(runtime: Runtime, grant: Grant, name: &str) -> Self {
        Self::load_in(runtime, Fake::default().load(), grant, name)
    }

    fn load(config: RuntimeConfig, model: LoadedModel, grant: Grant, name: &str) -> Self {
        Self::load_in(Runtime::new(config).unwrap(), model, grant, name)
    }

    /// A component that is no guest of a file, with what it is granted.
    pub fn of(capabilities: Capabilities, component: &[u8]) -> Self {
        let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
        let compiled = runtime.compile("composed", Source::Bytes(component)).unwrap();
        let grant = Grant { capabilities, ..Grant::default() };
        Self::serve(runtime, Fake::default().load(), grant, &compiled)
    }

    fn load_in(runtime: Runtime, model: LoadedModel, grant: Grant, name: &str) -> Self {
        let compiled = runtime.compile(name, Source::File(&guest(name))).unwrap();
        Self::serve(runtime, model, grant, &compiled)
    }

    fn serve(runtime: Runtime, model: LoadedModel, grant: Grant, compiled: &Compiled) -> Self {
        let model = loaded("alphabet", model);
        let engine = model.loaded().unwrap().engine().clone();
        let models = [vec![model], grant.models].concat();
        let grant = Grant { models, withheld: vec!["secret".into()], ..grant };
        let app = runtime.load(compiled, grant).unwrap();
        Self { runtime, engine, app }
    }

    /// The guest that misbehaves, with the models of a pool, in their order.
    pub fn pooled(limits: Limits, pool: &ModelPool) -> (Runtime, App) {
        let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
        let grant = Grant { models: pool.models().collect(), limits, ..Grant::default() };
        let guest = runtime.compile("behaviours", Source::File(&guest("behaviours"))).unwrap();
        let app = runtime.load(&guest, grant).unwrap();
        (runtime, app)
    }

    pub async fn get(&self, path: &str) -> Result<Response<ResponseBody>, HandleError> {
        self.app.handle(request(path)).await
    }

    pub async fn text(&self, path: &str) -> String {
        let response = self.get(path).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    /// Waits until no instance is alive.
    pub async fn until_empty(&self) {
        for _ in 0..500 {
            if self.runtime.metrics().instances.get() == 0 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{} instances are still alive", self.runtime.metrics().instances.get());
    }

    /// Waits until the engine has seen the end of every session, which it is told.
    pub async fn until_no_session(&self) {
        for _ in 0..500 {
            if self.engine.metrics().sessions.get() == 0 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{} sessions are still open", self.engine.metrics().sessions.get());
    }
}

pub fn request(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("http://localhost{path}")).body(Full::default()).unwrap()
}
