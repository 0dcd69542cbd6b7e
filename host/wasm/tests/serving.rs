//! Well-behaved guests, of both versions of the handler interface.

mod common;

use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{Bench, guest, tight};
use http::Request;
use http_body_util::{BodyExt, Full};
use nala_wasm::{CompileCache, Grant, Limits, Runtime, RuntimeConfig, Source};

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_of_wasi_0_2_answers() {
    let bench = Bench::new(Limits::default());
    assert_eq!(bench.text("/hello").await, "hello");
    let body = Full::new(Bytes::from("x".repeat(200_000)));
    let request = Request::post("http://localhost/echo").body(body).unwrap();
    let answer = bench.app.handle(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(answer.len(), 200_000);
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_of_wasi_0_3_answers() {
    let bench = Bench::with(RuntimeConfig::default(), Limits::default(), "service");
    assert_eq!(bench.text("/").await, "part 0\npart 1\npart 2\n");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_arrive_as_they_are_written() {
    for name in ["behaviours", "service"] {
        let bench = Bench::with(RuntimeConfig::default(), Limits::default(), name);
        let begin = Instant::now();
        let mut body = bench.get("/stream").await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let at_first = begin.elapsed();
        assert_eq!(first, "part 0\n");
        while let Some(frame) = body.frame().await {
            frame.unwrap();
        }
        // The parts are 20 ms apart at least.
        assert!(begin.elapsed() - at_first >= Duration::from_millis(35), "{name}: all parts came at once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_has_a_fresh_instance() {
    let bench = Bench::new(Limits::default());
    for _ in 0..5 {
        bench.text("/hello").await;
    }
    assert_eq!(bench.runtime.metrics().instances_created.get(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn compiled_code_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let config = RuntimeConfig { cache: CompileCache::Directory(folder.path().into()), ..RuntimeConfig::default() };
    for (hits, misses) in [(0, 1), (1, 0)] {
        let runtime = Runtime::new(config.clone()).unwrap();
        let service = runtime.compile("service", Source::File(&guest("service"))).unwrap();
        runtime.load(&service, Grant::default()).unwrap();
        assert_eq!(runtime.cache_use(), (hits, misses));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_granted_by_default() {
    let bench = Bench::new(Limits::default());
    let told = bench.text("/environment").await;
    assert!(told.starts_with("variables [] arguments [] root false socket Err("), "{told}");
    assert_eq!(bench.text("/outbound").await, "denied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_used_through_its_interface() {
    let bench = Bench::new(Limits::default());
    assert_eq!(bench.text("/generate").await, "defgh");
    assert_eq!(bench.text("/pollable").await, "def");
    let about = bench.text("/model").await;
    assert!(about.starts_with("alphabet fake 259 "), "{about}");
    assert!(about.contains("no-such-model") && about.contains("available: alphabet"), "{about}");
    assert!(about.contains("Denied") && about.contains("ai_models"), "{about}");
    assert!(about.contains("Caps(REWIND | FORK | SHIFT | SNAPSHOT | EMBEDDINGS | RANKING) 16 "), "{about}");
    assert!(about.ends_with("Ok(\"héllo\") true"), "{about}");
    bench.until_empty().await;
    assert_eq!(bench.engine.metrics().sessions.get(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_fork_rewind_save_park_and_evict() {
    let bench = Bench::new(Limits::default());
    let told = bench.text("/programs").await;
    let said = r#"["def", "def", "cde", "33 ghi", "26 jk"]"#;
    assert!(told.starts_with(said), "{told}");
    // 32 tokens of the session, 28 of the restored one, 30 of the last.
    assert!(told.ends_with("true cached 29 of 30, 90 cells, then 0"), "{told}");
    // What was saved is there for the next instance, and gone with nobody.
    assert!(bench.text("/programs").await.starts_with(said));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_cells_are_bounded_and_metered() {
    let bench = Bench::new(Limits { sessions: 5, ..tight() });
    assert!(bench.text("/sessions").await.starts_with("5 sessions, then"), "sessions");
    // The fake has 4,096 cells, of which an eighth is less than its context of 1,024.
    let kv = bench.text("/kv").await;
    assert!(kv.starts_with("1000 cells, then") && kv.contains("Quota"), "{kv}");
    assert!(kv.ends_with("meter 1000 of 1024"), "{kv}");
}
