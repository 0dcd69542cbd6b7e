//! Guests that misbehave, and neighbours that do not notice.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{Bench, guest, request, tight};
use http_body_util::BodyExt;
use nala_wasm::{Grant, HandleError, Limits, Runtime, RuntimeConfig, Source};

/// The neighbour is served while `path` misbehaves.
async fn misbehave(bench: &Bench, path: &'static str) -> HandleError {
    let app = bench.app.clone();
    let bad = tokio::spawn(async move { app.handle(request(path)).await.map(drop) });
    let begin = Instant::now();
    assert_eq!(bench.text("/hello").await, "hello");
    assert!(begin.elapsed() < Duration::from_secs(2), "{path} held its neighbour up");
    let error = bad.await.unwrap().unwrap_err();
    bench.until_empty().await;
    assert_eq!(bench.text("/hello").await, "hello");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn traps_end_in_an_error_that_names_them() {
    let bench = Bench::new(tight());
    let error = misbehave(&bench, "/trap").await;
    assert!(matches!(&error, HandleError::Trap { reason } if reason.contains("unreachable")), "{error:?}");
    assert!(matches!(misbehave(&bench, "/panic").await, HandleError::Trap { .. }));
    assert!(matches!(misbehave(&bench, "/silent").await, HandleError::NoResponse { .. }));
    assert!(matches!(misbehave(&bench, "/handles").await, HandleError::Trap { .. } | HandleError::NoResponse { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_spinning_guest_is_stopped_after_its_cpu_time() {
    let bench = Bench::new(tight());
    let begin = Instant::now();
    assert_eq!(misbehave(&bench, "/spin").await, HandleError::CpuLimit);
    assert!(begin.elapsed() >= Duration::from_millis(200), "before its time");
    // Work that the host does for it counts as well.
    assert_eq!(misbehave(&bench, "/random").await, HandleError::CpuLimit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_is_bounded_also_when_its_runtime_handle_is_gone() {
    let app = {
        let bench = Bench::new(tight());
        bench.app.clone()
    };
    assert_eq!(app.handle(request("/spin")).await.map(drop), Err(HandleError::CpuLimit));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn waiting_is_no_cpu_time() {
    let bench = Bench::new(tight());
    assert_eq!(bench.text("/sleep?500").await, "slept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn memory_without_end_is_refused() {
    let bench = Bench::new(tight());
    assert_eq!(misbehave(&bench, "/grow").await, HandleError::MemoryLimit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_guest_that_takes_too_long_is_stopped() {
    let bench = Bench::new(Limits { wall: Duration::from_millis(300), ..tight() });
    assert_eq!(misbehave(&bench, "/sleep?60000").await, HandleError::WallLimit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_breaks_off_late_does_not_look_complete() {
    let bench = Bench::new(tight());
    for path in ["/trap-late", "/spin-late"] {
        let mut body = bench.get(path).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "begun");
        let end = body.frame().await;
        assert!(matches!(end, Some(Err(_))), "{path}: {end:?}");
    }
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn handlers_of_wasi_0_3_are_bounded_as_well() {
    let bench = Bench::with(RuntimeConfig::default(), tight(), "service");
    assert!(matches!(bench.get("/trap").await.map(drop), Err(HandleError::Trap { .. })));
    assert_eq!(bench.get("/spin").await.map(drop), Err(HandleError::CpuLimit));
    assert!(matches!(bench.get("/error").await.map(drop), Err(HandleError::NoResponse { .. })));
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_leaves_takes_the_instance_with_it() {
    let bench = Bench::new(Limits { kv_cells: nala_wasm::KvLimit::Cells(1 << 20), ..tight() });
    // In the middle of a response, while the guest waits for its model only.
    let mut body = bench.get("/generate-forever").await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    bench.until_empty().await;
    // The engine's thread closes the session, within a step.
    while bench.engine.metrics().sessions.get() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Before there is a response.
    let waiting = tokio::time::timeout(Duration::from_millis(100), bench.get("/sleep?60000")).await;
    assert!(waiting.is_err());
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn over_the_number_of_instances_requests_are_refused() {
    let config = RuntimeConfig { instances: 2, admission_wait: Duration::from_millis(50), ..RuntimeConfig::default() };
    let bench = Bench::with(config, tight(), "behaviours");
    let sleepers: Vec<_> = (0..2)
        .map(|_| {
            let app = bench.app.clone();
            tokio::spawn(async move { app.handle(request("/sleep?500")).await.map(|r| r.into_body().collect()) })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(bench.get("/hello").await.map(drop), Err(HandleError::AtCapacity));
    for sleeper in sleepers {
        sleeper.await.unwrap().unwrap().await.unwrap();
    }
    assert_eq!(bench.text("/hello").await, "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_does_not_read_keeps_no_instance() {
    let config = RuntimeConfig { instances: 1, ..RuntimeConfig::default() };
    let bench = Bench::with(config, Limits { wall: Duration::from_millis(300), ..tight() }, "behaviours");
    let unread = bench.get("/stream?1000").await.unwrap();
    bench.until_empty().await;
    assert_eq!(bench.text("/hello").await, "hello");
    drop(unread);
}

/// A handler whose core module has `memory` pages and does `start` at its start.
fn starting(memory: u32, start: &str) -> Vec<u8> {
    wat::parse_str(format!(
        r#"(component
            (import "wasi:http/types@0.2.0" (instance $types
                (export "incoming-request" (type (sub resource)))
                (export "response-outparam" (type (sub resource)))))
            (alias export $types "incoming-request" (type $request))
            (alias export $types "response-outparam" (type $response))
            (core module $m
                (memory {memory})
                (func (export "handle") (param i32 i32))
                (func $start {start})
                (start $start))
            (core instance $i (instantiate $m))
            (func $handle (param "request" (own $request)) (param "response-out" (own $response))
                (canon lift (core func $i "handle")))
            (instance $handler (export "handle" (func $handle)))
            (export "wasi:http/incoming-handler@0.2.0" (instance $handler)))"#
    ))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_limit_that_is_reached_at_the_start_is_named() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let short = Limits { wall: Duration::from_millis(200), cpu: Duration::from_secs(1), ..tight() };
    let grow = "(if (i32.eq (memory.grow (i32.const 1000)) (i32.const -1)) (then unreachable))";
    for (limits, memory, start, kind) in [
        (tight(), 1, "", "no_response"),
        (tight(), 1, "unreachable", "trap"),
        (tight(), 1, "(loop (br 0))", "cpu_limit"),
        (short, 1, "(loop (br 0))", "wall_limit"),
        (tight(), 1000, "", "memory_limit"),
        (tight(), 1, grow, "memory_limit"),
    ] {
        let compiled = runtime.compile("starting", Source::Bytes(&starting(memory, start))).unwrap();
        let app = runtime.load(&compiled, Grant { limits, ..Grant::default() }).unwrap();
        let error = app.handle(request("/")).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), kind, "{memory} pages, {start}: {error:?}");
        // The same way where no request waits.
        let alone = app.instantiate_once().await.map(drop).map_err(|e| e.kind());
        let expected = match kind {
            "no_response" => Ok(()),
            // Nobody waits for it, so there is only its CPU time.
            "wall_limit" => Err("cpu_limit"),
            _ => Err(kind),
        };
        assert_eq!(alone, expected, "{memory} pages, {start}");
    }
}

#[test]
fn more_core_instances_than_may_be_are_not_made() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let component = |count: usize| {
        let instances = "(core instance (instantiate $m))".repeat(count);
        wat::parse_str(format!("(component (core module $m) {instances})")).unwrap()
    };
    assert!(runtime.compile("few", Source::Bytes(&component(64))).is_ok());
    let text = runtime.compile("many", Source::Bytes(&component(65))).err().unwrap().to_string();
    assert!(text.contains("cannot be compiled") && text.contains("64"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn printing_is_bounded_and_harms_nobody() {
    let bench = Bench::new(tight());
    assert_eq!(bench.text("/print?1000000").await, "printed");
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let load = |source: Source<'_>| runtime.load(&runtime.compile("app", source)?, Grant::default());
    let refused = |bytes: &[u8]| load(Source::Bytes(bytes)).err().unwrap().to_string();
    let wat = |text: &str| wat::parse_str(text).unwrap();
    assert!(refused(b"#!/bin/sh").contains("not WebAssembly"));
    assert!(refused(b"").contains("not WebAssembly"));
    assert!(refused(b"\0asm").contains("not WebAssembly"));
    assert!(refused(&wat("(module)")).contains("core module"));
    assert!(refused(&wat("(component)")).contains("wasi:http"));
    let mut broken = wat("(component (core module (func (result i32) i32.const 1)))");
    broken.truncate(broken.len() - 2);
    assert!(refused(&broken).contains("cannot be compiled"));
    let rockets = wat(r#"(component (import "acme:rockets/launch@1.0.0" (instance (export "fire" (func)))))"#);
    let text = refused(&rockets);
    assert!(text.contains("acme:rockets/launch@1.0.0") && text.contains("nala:llm@0.1"), "{text}");
    // What is only types needs nobody to answer it: what is missed is an export.
    let types = r#"(instance (type $size (record (field "x" u32))) (export "size" (type (eq $size))))"#;
    let types = wat(&format!(r#"(component (import "acme:rockets/types@1.0.0" {types}))"#));
    assert!(refused(&types).contains("does not export `wasi:http"), "{}", refused(&types));
    let bytes = std::fs::read(guest("behaviours")).unwrap();
    let text = refused(&bytes);
    assert!(text.contains("nala:llm") && text.contains("--model"), "{text}");
    let limits = Limits { memory_bytes: 2 << 30, ..Limits::default() };
    let service = runtime.compile("service", Source::File(&guest("service"))).unwrap();
    let text = runtime.load(&service, Grant { limits: limits.clone(), ..Grant::default() }).err().unwrap().to_string();
    assert!(text.contains("2048 MiB") && text.contains("1024 MiB") && text.contains("lower `memory`"), "{text}");
    let renderer = runtime.compile("renderer", Source::File(&guest("renderer"))).unwrap();
    let text = runtime.load_renderer(&renderer, limits).err().unwrap().to_string();
    assert!(text.contains("[component.renderer.tool.nala]"), "{text}");
    let missing = load(Source::File("/no/such.wasm".as_ref())).err().unwrap();
    assert!(missing.to_string().contains("/no/such.wasm"));
}
