//! Guests that choose the tokens themselves, over many sessions at once.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::Bench;
use nala_engine::fake::{Fake, USER};
use nala_engine::{BatchEntry, LoadedModel};
use nala_wasm::{Limits, RuntimeConfig};

/// A model whose batches take a while.
fn slow(time: Duration) -> LoadedModel {
    let before_decode = Arc::new(move |_: &[_]| {
        std::thread::sleep(time);
        Ok(())
    });
    Fake { before_decode, ..Fake::default() }.load()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_reads_what_was_asked_of_each_session() {
    let bench = Bench::new(Limits::default());
    // Behind m comes n, behind x y; neither is added.
    assert_eq!(bench.text("/steps").await, "110 121 true true true [4, 4, 3] 11 no");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_computed_with_the_adapter_they_name() {
    let model = Fake { adapters: vec!["one".into(), "two".into()], ..Fake::default() }.load();
    let bench = Bench::with_model(RuntimeConfig::default(), Limits::default(), model);
    let told = bench.text("/adapters").await;
    let (said, wrong) = told.split_once('\n').unwrap();
    let said: Vec<&str> = said.split('"').skip(1).step_by(2).collect();
    assert!(said[0] == "def" && said[1] != said[0] && said[2] != said[1], "{told}");
    assert!(wrong.contains("InvalidArgument") && wrong.contains("one, two"), "{told}");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_shows_the_control_tokens_it_is_told_and_says_which_text_ended_it() {
    let said = [u32::from(b'a'), USER, u32::from(b'b'), u32::from(b'c')];
    let script = move |tokens: &[u32]| said[(tokens.len() - 1) % said.len()];
    let model = Fake { script: Arc::new(script), ..Fake::default() }.load();
    let bench = Bench::with_model(RuntimeConfig::default(), Limits::default(), model);
    let told = bench.text("/stops").await;
    let ends = "Some(Finish::StopText(1))";
    assert!(told.starts_with(&format!("ab {ends}, a<user>b {ends} Some(Error::InvalidArgument(")), "{told}");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_that_cannot_be_begin_nothing() {
    let bench = Bench::with_two_models();
    let told = bench.text("/steps-refused").await;
    let lines: Vec<&str> = told.lines().collect();
    let says = [
        "over no sessions",
        "session of step 2 stands in the list before",
        "of one model",
        "outside the vocabulary",
        "at most 20",
        "at most 16 readouts",
        "Quota(QuotaKind::Kv)",
        "run still goes on",
        "step still goes on",
    ];
    for (line, said) in lines.iter().zip(says) {
        assert!(line.starts_with("Err(") && line.contains(said), "{said}: {line}");
    }
    assert_eq!(lines[9], "[true, true, true, true, true, true, true] true");
    // 3 tokens in each of three sessions; then one of a step and 9 of a run more.
    assert_eq!(lines[10..], ["[Ok([])] 9 19"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_steps_take_in_counts_like_prefills() {
    let bench = Bench::new(Limits::default());
    assert_eq!(bench.text("/steps-counted").await, "[9, 39, 16, 16] true true 39");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_steps_are_undone() {
    let bench = Bench::with_model(RuntimeConfig::default(), Limits::default(), slow(Duration::from_millis(2)));
    for times in [1, 2, 50] {
        assert_eq!(bench.text(&format!("/steps-dropped?{times}")).await, "true [2, 2] 4", "{times} times");
    }
    bench.until_empty().await;
    assert!(bench.engine.metrics().cancelled.get() >= 50, "{}", bench.engine.metrics().cancelled.get());
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_lists_harm_only_who_sends_them() {
    let bench = Bench::new(Limits::default());
    let quota = "Err(Error::Quota(QuotaKind::Kv))";
    assert_eq!(bench.text("/steps-huge?100000").await, format!("{quota} {quota} Some(Finish::Length)"));
    let told = bench.text("/steps-many?900").await;
    assert!(told.contains("session of step 1 stands"), "{told}");
    // More bytes than a call may hand over, and more handles than there may be.
    assert!(bench.get("/steps-huge?4500000").await.is_err());
    assert!(bench.get("/steps-many?10000").await.is_err());
    assert_eq!(bench.text("/hello").await, "hello");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_behind_tokens_that_are_added() {
    let bench = Bench::with_model(RuntimeConfig::default(), Limits::default(), slow(Duration::from_millis(20)));
    let told = bench.text("/inject").await;
    assert!(told.starts_with("23 26 26 20 true 26 Some(Error::InvalidArgument("), "{told}");
    assert!(told.contains("the run has ended"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_get_no_answer_do_not_pile_up() {
    // Batches with the token 200 last until the switch is turned.
    let hold = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&hold);
    let before_decode = Arc::new(move |batch: &[BatchEntry]| {
        while batch.iter().any(|entry| entry.token == 200) && switch.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let model = Fake { before_decode, ..Fake::default() }.load();
    let bench = Bench::with_model(RuntimeConfig::default(), Limits::default(), model);
    assert_eq!(bench.text("/priorities?4").await, "4 times");
    hold.store(true, Ordering::Release);
    // More than the engine takes in at once before it goes to its batch.
    let app = bench.app.clone();
    let mut many =
        tokio::spawn(async move { app.handle(crate::common::request("/priorities?3000")).await.map(|r| r.status()) });
    let early = tokio::time::timeout(Duration::from_millis(700), &mut many).await;
    assert!(early.is_err(), "6000 calls went to an engine that hears none: {early:?}");
    hold.store(false, Ordering::Release);
    assert_eq!(many.await.unwrap().unwrap(), 200);
    bench.until_empty().await;
}
