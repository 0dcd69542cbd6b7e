//! Guests that want vectors and scores.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::Bench;
use nala_engine::fake::Fake;
use nala_engine::{EmbeddingInfo, LoadedModel};
use nala_wasm::{HandleError, Limits, RuntimeConfig};

fn bench(model: LoadedModel, limits: Limits) -> Bench {
    Bench::with_model(RuntimeConfig::default(), limits, model)
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_become_vectors_and_scores_and_are_counted() {
    let bench = Bench::new(Limits::default());
    let ranking = "Some(Ranking { scores: 1, max-tokens: 60 })";
    // 16 tokens of vectors, 3 alone and 3 by another pooling, 16 of scores.
    let expected = format!("8 64 {ranking} [true, true, true] true true true [1, 1, 1] 38 Ok([])");
    assert_eq!(bench.text("/embeddings").await, expected);
    assert_eq!(bench.engine.metrics().embedded_tokens.get(), 38);
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_embedded_is_a_typed_error() {
    let bench = Bench::new(Limits::default());
    let told = bench.text("/embeddings-refused").await;
    let says =
        ["ContextFull(64)", "input 0 is empty", "outside the vocabulary", "at most 2048 inputs", "ContextFull(60)"];
    assert_eq!(told.lines().count(), says.len(), "{told}");
    for (line, said) in told.lines().zip(says) {
        assert!(line.starts_with("Some(Error::") && line.contains(said), "{said}: {line}");
    }
    let bench = self::bench(Fake { embeddings: None, ..Fake::default() }.load(), Limits::default());
    let told = bench.text("/embeddings-refused").await;
    assert!(told.lines().all(|line| line.starts_with("Some(Error::Unsupported(")), "{told}");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_that_would_not_fit_into_the_components_memory_are_not_computed() {
    let mut fake = Fake::default();
    fake.embeddings = fake.embeddings.map(|info| EmbeddingInfo { width: 100_000, ..info });
    let limits = Limits { memory_bytes: 16 << 20, ..Limits::default() };
    let bench = bench(fake.load(), limits);
    let told = bench.text("/embeddings-many?100").await;
    assert!(told.contains("InvalidArgument") && told.contains("give fewer at once"), "{told}");
    assert_eq!(bench.engine.metrics().embedded_tokens.get(), 0);
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_vectors_ends_with_the_wall_time_and_with_it_the_work() {
    let before_embedding = Arc::new(|_: &[u32]| std::thread::sleep(Duration::from_millis(20)));
    let model = Fake { before_embedding, ..Fake::default() }.load();
    let limits = Limits { wall: Duration::from_millis(300), cpu: Duration::from_millis(250), ..Limits::default() };
    let bench = bench(model, limits);
    let error = bench.get("/embeddings-many?2000").await.err().unwrap();
    assert!(matches!(error, HandleError::WallLimit), "{error:?}");
    bench.until_empty().await;
    for _ in 0..500 {
        if bench.engine.metrics().cancelled.get() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(bench.engine.metrics().cancelled.get(), 1);
    assert!(bench.engine.metrics().embedded_tokens.get() < 2000);
}
