//! An embedder of wasmtime in few lines: runs a WASI command that computes with
//! `wasi:nn`, on a model file or, without one, on the fake model of the tests.
//!
//! ```sh
//! (cd components && cargo build --release --target wasm32-wasip2 -p ask-nn)
//! cargo run --release -p nala-nn-backend --example embedder -- \
//!     components/target/wasm32-wasip2/release/ask-nn.wasm "What is the capital of France?" MODEL.gguf
//! ```

use std::path::Path;

use nala_engine::{Engine, EngineConfig, fake::Fake};
use nala_llama::LoadOptions;
use nala_nn_backend::{Caller, Models, Nala};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Error, Result, Store};
use wasmtime_wasi::p2::bindings::sync::Command;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView, cli};
use wasmtime_wasi_nn::wit::{WasiNnCtx, WasiNnView};
use wasmtime_wasi_nn::{Backend, Registry};

struct Host {
    table: ResourceTable,
    wasi: WasiCtx,
    nn: WasiNnCtx,
}

impl WasiView for Host {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Runs the command in a store of its own, on this thread.
pub(crate) fn run(wasm: &Path, model: Engine, question: &str, out: impl cli::StdoutStream + 'static) -> Result<()> {
    let engine = wasmtime::Engine::default();
    let mut linker = Linker::<Host>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
    wasmtime_wasi_nn::wit::add_to_linker(&mut linker, |host: &mut Host| {
        WasiNnView::new(&mut host.table, &mut host.nn)
    })?;
    let wasi = WasiCtx::builder().args(&["ask-nn", model.name(), question]).stdout(out).inherit_stderr().build();
    let models = Registry::from(Models::new([model], &Caller::default()));
    let nn = WasiNnCtx::new([Backend::from(Nala)], models);
    let mut store = Store::new(&engine, Host { table: ResourceTable::new(), wasi, nn });
    let command = Command::instantiate(&mut store, &Component::from_file(&engine, wasm)?, &linker)?;
    command.wasi_cli_run().call_run(&mut store)?.map_err(|()| Error::msg("the command failed"))
}

#[allow(dead_code, reason = "a test takes this file as a module")]
fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (wasm, question, model) = match args.as_slice() {
        [wasm, question] => (wasm, question, Fake::default().load()),
        [wasm, question, path] => {
            let loaded = nala_llama::load(Path::new(path), &LoadOptions::default(), |_| {});
            (wasm, question, loaded.map_err(Error::new)?)
        }
        _ => return Err(Error::msg("usage: embedder GUEST.wasm QUESTION [MODEL.gguf]")),
    };
    let model = Engine::start("model", model, EngineConfig::default()).map_err(Error::new)?;
    run(Path::new(wasm), model, question, std::io::stdout())
}
