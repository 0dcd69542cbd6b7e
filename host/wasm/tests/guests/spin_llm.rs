//! Components that were written for Spin, with Spin's own SDK.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use crate::common::{Bench, tight};
use nala_engine::fake::Fake;
use nala_wasm::{KvLimit, Limits};

fn bench(limits: Limits) -> Bench {
    Bench::serving(limits, Fake::default().load(), "spin")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_for_spin_infers_unchanged() {
    let bench = bench(Limits::default());
    // The text, the tokens of the prompt, those that were generated.
    assert_eq!(bench.text("/infer?alphabet").await, "defgh 3 5");
    let usage = bench.text("/defaults?alphabet").await;
    assert!(usage.contains("prompt-token-count: 3") && usage.contains("generated-token-count: 100"), "{usage}");
    let told = bench.text("/as-many-as-fit").await;
    assert!(told.ends_with(" 1 1023"), "{told}");
    bench.until_empty().await;
    bench.until_no_session().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_names_no_control_tokens() {
    let bench = bench(Limits::default());
    assert_eq!(bench.text("/control?alphabet").await, "abcde 6 5");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_the_variants_of_spin() {
    let bench = bench(Limits::default());
    for name in ["secret", "llama2-chat"] {
        for path in ["infer", "embed"] {
            let told = bench.text(&format!("/{path}?{name}")).await;
            let says = format!("The component does not have access to use '{name}'");
            assert!(told.contains("InvalidInput(") && told.contains(&says), "{told}");
            assert!(told.contains("ai_models") && told.contains("access to: alphabet"), "{told}");
        }
    }
    let told = bench.text("/wrong").await;
    assert_eq!(told.lines().count(), 4, "{told}");
    for (line, says) in told.lines().zip(["max-tokens", "temperature", "top-p", "repeat-penalty"]) {
        assert!(line.contains("InvalidInput(") && line.contains(says), "{line}");
    }
    let none = Bench::serving(Limits::default(), Fake { embeddings: None, ..Fake::default() }.load(), "spin");
    let told = none.text("/embed?alphabet").await;
    assert!(told.contains("ModelNotSupported"), "{told}");
    let few = self::bench(Limits { kv_cells: KvLimit::Cells(2), ..Limits::default() });
    let told = few.text("/infer?alphabet").await;
    assert!(told.contains("RuntimeError(") && told.contains("KV cells"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_become_vectors() {
    let bench = bench(Limits::default());
    assert_eq!(bench.text("/embed?alphabet").await, "[8, 8] 5");
    let told = bench.text("/embed-many?3000").await;
    assert!(told.contains("InvalidInput(") && told.contains("at most 2048"), "{told}");
    let told = bench.text("/embed-many?3").await;
    assert!(told.contains("InvalidInput(") && told.contains("input 0 is empty"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_prompt_that_cannot_fit_is_refused() {
    let bench = bench(tight());
    for bytes in [10_000_000, 2000] {
        let told = bench.text(&format!("/long?{bytes}")).await;
        assert!(told.contains("InvalidInput("), "{told}");
    }
    assert_eq!(bench.engine.metrics().prompt_tokens.get(), 0);
}
