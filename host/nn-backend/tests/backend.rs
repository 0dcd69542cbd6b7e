//! The engine behind wasmtime-wasi-nn, by its traits and under a real guest.

#![allow(clippy::panic, clippy::unwrap_used, reason = "these are tests")]

#[path = "../examples/embedder.rs"]
mod embedder;

use std::path::{Path, PathBuf};
use std::process::Command;

use nala_engine::fake::Fake;
use nala_engine::{Engine, EngineConfig};
use nala_nn_backend::{Caller, Models, Nala};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi_nn::backend::{BackendError, BackendInner, Id, NamedTensor};
use wasmtime_wasi_nn::wit::{ExecutionTarget, GraphEncoding, TensorType};
use wasmtime_wasi_nn::{ExecutionContext, GraphRegistry, Tensor};

fn engine(fake: &Fake) -> Engine {
    Engine::start("fake", fake.load(), EngineConfig::default()).unwrap()
}

fn context(engine: &Engine, caller: &Caller) -> ExecutionContext {
    let models = Models::new([engine.clone()], caller);
    models.get("fake").unwrap().init_execution_context().unwrap()
}

fn bytes(text: &str) -> Tensor {
    Tensor::new(vec![text.len() as u32], TensorType::U8, text.into())
}

fn inputs(all: &[(&str, &str)]) -> Vec<NamedTensor> {
    all.iter().map(|(name, text)| NamedTensor { name: (*name).into(), tensor: bytes(text) }).collect()
}

fn text(tensor: &Tensor) -> String {
    String::from_utf8(tensor.data.clone()).unwrap()
}

fn refused<T>(result: Result<T, BackendError>) -> String {
    let Err(BackendError::BackendAccess(error)) = result else { panic!("it was not refused by the backend") };
    error.to_string()
}

const GREEDY: &str = r#"{"temp": 0, "n-predict": 5}"#;

#[test]
fn named_tensors_are_computed() {
    let engine = engine(&Fake::default());
    let mut context = context(&engine, &Caller::default());
    for (prompt, said) in [("abc", "defgh"), ("xyz", "abcde")] {
        let outputs = context.compute_with_io(inputs(&[("prompt", prompt), ("options", GREEDY)])).unwrap();
        let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        assert_eq!((names, text(&outputs[0].tensor)), (vec!["text", "usage"], said.to_owned()));
        assert!(text(&outputs[1].tensor).contains("\"input_tokens\":3"));
    }
    let yes = r#"{"temp": 0, "grammar": "root ::= \"yes\""}"#;
    let outputs = context.compute_with_io(inputs(&[("prompt", "a"), ("options", yes)])).unwrap();
    assert_eq!(text(&outputs[0].tensor), "yes");
    let outputs = context.compute_with_io(inputs(&[("prompt", "a"), ("options", r#"{"embedding": true}"#)])).unwrap();
    assert!(text(&outputs[0].tensor).contains("\"n_embedding\":8"));
}

#[test]
fn inputs_of_the_older_interface_are_numbers() {
    let engine = engine(&Fake::default());
    let mut context = context(&engine, &Caller::default());
    context.set_input(Id::Index(0), &bytes("abc")).unwrap();
    context.set_input(Id::Name("options".into()), &bytes(GREEDY)).unwrap();
    context.compute().unwrap();
    assert_eq!(text(&context.get_output(Id::Index(0)).unwrap()), "defgh");
    assert_eq!(context.get_output(Id::Name("text".into())).unwrap(), bytes("defgh"));
    assert!(refused(context.get_output(Id::Index(2))).contains("no such output"));
    // What a guest sets is no place to keep things.
    assert!(refused(context.set_input(Id::Index(7), &bytes("a"))).contains("`7`"));
    assert!(refused(context.compute()).contains("no input is called `prompt`"), "inputs are taken");
}

#[test]
fn nonsense_is_refused_in_words() {
    let engine = engine(&Fake::default());
    let mut context = context(&engine, &Caller::default());
    let mut said = |inputs| refused(context.compute_with_io(inputs));
    assert!(said(inputs(&[("prompt", "a"), ("options", "{\"threads\": 8}")])).contains("unknown field `threads`"));
    assert!(said(inputs(&[("prompt", &"a".repeat(5000))])).contains("context is full"));
    let wrong = Tensor::new(vec![1], TensorType::U8, b"abc".to_vec());
    assert!(said(vec![NamedTensor { name: "prompt".into(), tensor: wrong }]).contains("its data has 3"));
    assert_eq!(Nala.encoding(), GraphEncoding::Ggml);
    assert!(refused(Nala.load(&[b"GGUF"], ExecutionTarget::Cpu)).contains("load-by-name"));
}

#[test]
fn callers_share_beginnings_by_their_scope_only() {
    let engine = engine(&Fake::default());
    let prompt = "a".repeat(64);
    let cached = |scope: &str| {
        let mut context = context(&engine, &Caller { scope: scope.into(), ..Caller::default() });
        let outputs = context.compute_with_io(inputs(&[("prompt", &prompt), ("options", GREEDY)])).unwrap();
        !text(&outputs[1].tensor).contains("\"cached_tokens\":0")
    };
    assert_eq!(["one", "two", "one"].map(cached), [false, false, true]);
}

#[test]
fn threads_compute_in_one_batch() {
    let fake = Fake {
        before_decode: std::sync::Arc::new(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            Ok(())
        }),
        ..Fake::default()
    };
    let engine = engine(&fake);
    std::thread::scope(|scope| {
        for prompt in ["abc", "bcd", "cde"] {
            let mut context = context(&engine, &Caller::default());
            scope.spawn(move || {
                let options = r#"{"temp": 0, "n-predict": 20}"#;
                context.compute_with_io(inputs(&[("prompt", prompt), ("options", options)])).unwrap();
            });
        }
    });
    assert!(fake.fills().contains(&3), "never were all three in a batch: {:?}", fake.fills());
}

/// `components/examples/ask-nn`, built.
fn guest() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../components");
    let target = workspace.join("target");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--quiet", "--target", "wasm32-wasip2", "--package", "ask-nn"]);
    cargo.arg("--manifest-path").arg(workspace.join("Cargo.toml")).arg("--target-dir").arg(&target);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().into_owned();
        // What the outer cargo set for this build must not reach the inner one.
        if text.starts_with("CARGO_") && text != "CARGO_HOME" || text.starts_with("RUSTC") || text == "RUSTFLAGS" {
            cargo.env_remove(&name);
        }
    }
    assert!(cargo.status().unwrap().success(), "the guest does not build; is wasm32-wasip2 installed?");
    target.join("wasm32-wasip2/release/ask-nn.wasm")
}

#[test]
fn a_guest_asks_through_wasmtime() {
    let out = MemoryOutputPipe::new(4096);
    let engine = engine(&Fake::saying("Paris."));
    embedder::run(&guest(), engine, "What is the capital of France?", out.clone()).unwrap();
    assert_eq!(out.contents(), "Paris.\n");
}
