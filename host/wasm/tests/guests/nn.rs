//! Guests that compute with `wasi:nn`, rightly and wrongly.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, guest, request, tight};
use http_body_util::BodyExt;
use nala_engine::fake::Fake;
use nala_wasm::{Grant, HandleError, KvLimit, Limits, LoadError, Runtime, RuntimeConfig, Source};

fn bench(limits: Limits) -> Bench {
    Bench::serving(limits, Fake::default().load(), "tensors")
}

/// A text, and what it took.
fn answered(text: &str, [input, output, cached]: [u32; 3], ending: &str) -> String {
    format!(
        "text: {text}\nusage: {{\"input_tokens\":{input},\"output_tokens\":{output},\"cached_tokens\":{cached},\
         \"finish_reason\":\"{ending}\"}}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_becomes_text_and_usage() {
    let bench = bench(Limits::default());
    assert_eq!(bench.text("/ask?abc").await, answered("defgh", [3, 5, 0], "length"));
    assert_eq!(bench.text("/numbers?xyz").await, answered("abcde", [3, 5, 0], "length"));
    assert_eq!(bench.text("/grammar").await, answered("yes", [1, 3, 0], "grammar"));
    // The guest has dropped the graph by then.
    assert_eq!(bench.text("/dropped").await, answered("bcdef", [1, 5, 0], "length"));
    let vector = bench.text("/embed?abc").await;
    assert!(vector.starts_with("text: {\"n_embedding\":8,\"embedding\":["), "{vector}");
    assert!(vector.contains("\"input_tokens\":3"), "{vector}");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_a_guest_calls_a_template_names_control_tokens() {
    let bench = bench(Limits::default());
    // One token, and six for the same characters from outside.
    assert_eq!(bench.text("/pieces").await, answered("abcde", [7, 5, 0], "length"));
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_had_by_name_and_not_by_their_bytes() {
    let bench = bench(Limits::default());
    assert_eq!(bench.text("/open?alphabet").await, "opened");
    assert_eq!(bench.text("/open?default").await, "opened");
    let told = bench.text("/open?secret").await;
    assert!(told.starts_with("ErrorCode::Security: ") && told.contains("ai_models"), "{told}");
    let told = bench.text("/open?other").await;
    assert!(told.starts_with("ErrorCode::NotFound: ") && told.contains("available: alphabet"), "{told}");
    let told = bench.text("/load").await;
    assert!(told.starts_with("ErrorCode::Security: ") && told.contains("load-by-name"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_inputs_are_typed_errors_and_the_context_stays_of_use() {
    let bench = bench(Limits::default());
    let told = bench.text("/refused").await;
    let says = [
        ("InvalidArgument", "no input is called `prompt`"),
        ("InvalidArgument", "`image`"),
        ("InvalidArgument", "FP32"),
        ("InvalidArgument", "its data has 3"),
        ("InvalidArgument", "more bytes than can be counted"),
        ("InvalidArgument", "1000 dimensions"),
        ("InvalidEncoding", "not UTF-8"),
        ("InvalidEncoding", "not JSON"),
        ("InvalidArgument", "give an object"),
        ("InvalidEncoding", "recursion limit"),
        ("TooLarge", "1048576 bytes"),
        ("InvalidArgument", "unknown field `n-gpu-layers`"),
        ("InvalidArgument", "top-p must be from 0 to 1, and is 7"),
        ("InvalidArgument", "ctx-size must be"),
        ("InvalidArgument", "GBNF"),
        ("InvalidArgument", "the prompt is empty"),
    ];
    let mut lines = told.lines();
    for (code, said) in says {
        let line = lines.next().unwrap();
        assert!(line.starts_with(&format!("ErrorCode::{code}: ")) && line.contains(said), "{said}: {line}");
    }
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), answered("bcdef", [1, 5, 0], "length"));
    bench.until_empty().await;
    bench.until_no_session().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tensors_are_bounded_together_and_given_back() {
    let bench = bench(Limits { tensor_bytes: 4 << 20, ..Limits::default() });
    // Five of 1 MiB: the last one holds nothing, and says why when it is used.
    let told = bench.text("/tensors?5").await;
    assert!(told.starts_with("4 held, ErrorCode::TooLarge: ") && told.contains("of 4 MiB"), "{told}");
    assert!(told.ends_with(&answered("bcdef", [1, 5, 0], "length")), "{told}");
    let told = bench.text("/tensors?4").await;
    assert!(told.starts_with("3 held, ErrorCode::TooLarge: ") && told.contains("262144 are the most"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tensor_larger_than_a_call_may_be_is_refused_before_it_is_copied() {
    let bench = bench(Limits::default());
    assert_eq!(bench.text("/bomb?10000000").await, "10000000");
    let error = bench.get("/bomb?20000000").await.map(drop).unwrap_err();
    assert!(
        matches!(&error, HandleError::Trap { reason } | HandleError::NoResponse { reason } if reason.contains("too much data")),
        "{error:?}"
    );
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_prompt_that_cannot_fit_is_refused_before_any_work() {
    let bench = bench(tight());
    let told = bench.text("/prompt?10000000").await;
    assert!(told.starts_with("ErrorCode::TooLarge: the prompt has 10000000 bytes"), "{told}");
    // It may fit by its bytes, and does not by its tokens.
    let told = bench.text("/prompt?2000").await;
    assert!(told.starts_with("ErrorCode::TooLarge: "), "{told}");
    assert_eq!(bench.engine.metrics().prompt_tokens.get(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_count_as_sessions() {
    let bench = bench(Limits::default());
    let told = bench.text("/contexts?5000").await;
    assert!(told.starts_with("16 contexts, ErrorCode::TooLarge: ") && told.ends_with("then true"), "{told}");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_ends_with_the_context_or_with_the_guests_cells() {
    let full = bench(Limits::default());
    let told = full.text("/as-many-as-fit").await;
    assert!(told.contains("\"context-full\"") && told.contains("\"output_tokens\":1023"), "{told}");
    let few = bench(Limits { kv_cells: KvLimit::Cells(100), ..Limits::default() });
    let told = few.text("/as-many-as-fit").await;
    assert!(told.contains("\"quota\"") && told.contains("\"output_tokens\":99"), "{told}");
    let none = bench(Limits { kv_cells: KvLimit::Cells(1), ..Limits::default() });
    let told = none.text("/ask?abc").await;
    assert!(told.starts_with("ErrorCode::TooLarge: the component may hold no more KV cells"), "{told}");
}

/// A model whose batches take a while.
fn slow() -> Fake {
    Fake {
        before_decode: Arc::new(|_| {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        }),
        ..Fake::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn computing_is_no_cpu_time_and_ends_with_its_client() {
    let bench = Bench::serving(tight(), slow().load(), "tensors");
    let mut body = bench.get("/forever").await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    // Longer than the CPU time of 200 ms.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(bench.engine.metrics().sessions.get(), 1);
    drop(body);
    bench.until_empty().await;
    while bench.engine.metrics().sessions.get() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn guests_compute_in_one_batch() {
    let fake = slow();
    let bench = Bench::serving(Limits::default(), fake.load(), "tensors");
    let all: Vec<_> = ["/ask?abc", "/ask?bcd", "/ask?cde"]
        .map(|path| {
            let app = bench.app.clone();
            tokio::spawn(async move { app.handle(request(path)).await.map(|response| response.status()) })
        })
        .into();
    for one in all {
        assert_eq!(one.await.unwrap().unwrap(), 200);
    }
    assert!(fake.fills().contains(&3), "never were all three in a batch: {:?}", fake.fills());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_imports_it_needs_a_model() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    for name in ["tensors", "spin"] {
        let compiled = runtime.compile(name, Source::File(&guest(name))).unwrap();
        assert!(compiled.imports_models(), "{name}");
        let refused = runtime.load(&compiled, Grant::default()).err().unwrap();
        assert!(matches!(&refused, LoadError::NotGranted { fix, .. } if fix.contains("ai_models")), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beginning_that_was_there_is_not_computed_again() {
    let bench = bench(Limits::default());
    let path = format!("/ask?{}", "a".repeat(64));
    let told = bench.text(&path).await;
    assert!(told.contains("\"cached_tokens\":0"), "{told}");
    let told = bench.text(&path).await;
    assert!(!told.contains("\"cached_tokens\":0"), "{told}");
}
