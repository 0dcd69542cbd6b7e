//! A renderer that misbehaves, and handlers that ask it for prompts.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::time::{Duration, Instant};

use crate::common::{Bench, request, tight};
use http_body_util::BodyExt;
use nala_wasm::{Limits, RuntimeConfig};

fn tight_renderer() -> Limits {
    Limits {
        cpu: Duration::from_millis(100),
        wall: Duration::from_millis(1500),
        memory_bytes: 8 << 20,
        ..Limits::renderer()
    }
}

/// What the caller is told of `template`, while a neighbour has a prompt rendered.
async fn told(bench: &Bench, template: &str) -> String {
    let app = bench.app.clone();
    let path = format!("/render?{template}");
    let bad = tokio::spawn(async move { app.handle(request(&path)).await.unwrap().into_body().collect().await });
    let begin = Instant::now();
    assert!(bench.text("/render?hello").await.contains("hello"));
    assert!(begin.elapsed() < Duration::from_secs(2), "{template} held its neighbour up");
    let told = bad.await.unwrap().unwrap().to_bytes();
    bench.until_empty().await;
    String::from_utf8(told.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_fault_is_a_typed_error_for_the_caller() {
    let bench = Bench::rendering(RuntimeConfig::default(), tight(), tight_renderer());
    for (template, kind, text) in [
        ("hello", "Ok([Piece", "hello"),
        ("refuse", "Err(Error::Refused(", "as asked"),
        ("trap", "Err(Error::Failed(", "`renderer`, which renders prompts, trapped: wasm trap: wasm `unreachable`"),
        ("spin", "Err(Error::Failed(", "raise its `cpu` limit"),
        ("grow", "Err(Error::Failed(", "raise its `memory` limit"),
        ("sleep+60000", "Err(Error::Failed(", "raise its `wall` limit"),
    ] {
        let told = told(&bench, template).await;
        assert!(told.starts_with(kind) && told.contains(text), "{template}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn renderers_count_among_the_instances() {
    let bench = Bench::rendering(RuntimeConfig::default(), tight(), tight_renderer());
    let app = bench.app.clone();
    let sleeper = tokio::spawn(async move { app.handle(request("/render?sleep+300")).await.map(drop) });
    let begin = Instant::now();
    while bench.runtime.metrics().instances.get() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(5), "the renderer is not counted");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sleeper.await.unwrap().unwrap();
    bench.until_empty().await;
    assert_eq!(bench.runtime.metrics().instances_created.get(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn rendering_is_the_callers_cpu_time_once() {
    let limits = Limits { cpu: Duration::from_secs(10), ..tight() };
    // In many turns, and in a single one.
    for tick in [Duration::from_millis(5), Duration::from_secs(10)] {
        let config = RuntimeConfig { tick, ..RuntimeConfig::default() };
        let bench =
            Bench::rendering(config, limits.clone(), Limits { wall: Duration::from_secs(20), ..limits.clone() });
        // The best of several rounds, since a busy machine slows single ones.
        let (mut own, mut rendered) = (f64::MAX, f64::MAX);
        for _ in 0..8 {
            let answer = bench.text("/compare?10000000").await;
            let (here, there) = answer.split_once(' ').unwrap();
            own = own.min(here.parse().unwrap());
            rendered = rendered.min(there.parse().unwrap());
        }
        let part = rendered / own;
        assert!((0.6..1.6).contains(&part), "every {tick:?}: {own} µs here, {rendered} µs there");
    }
}
