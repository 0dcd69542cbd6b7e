//! Guests that want more of a model than they may have.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Bench, request, tight};
use nala_engine::fake::Fake;
use nala_engine::{Error, LoadedModel, Token, Tokenizer};
use nala_wasm::{HandleError, Limits, RuntimeConfig};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_aside_for_a_run_stays_until_its_end() {
    let bench = Bench::new(Limits::default());
    // A prompt of 3 tokens and runs of 500 or 200. Neither a prefill …
    assert_eq!(bench.text("/kv-busy").await, "503 503 503 refused true true");
    // … nor the handle of an earlier run, which failed, gives back a run's cells.
    assert_eq!(bench.text("/kv-failed").await, "100 0 503 503 error true");
    // What was generated counts also where nobody took it.
    assert_eq!(bench.text("/kv-unread").await, "203 203 204 0");
}

/// A tokeniser that works on long texts for 20 ms, on a thread of its own.
struct Slow {
    inner: Arc<dyn Tokenizer>,
    working: AtomicUsize,
    most: AtomicUsize,
}

fn work() -> Duration {
    while nala_machine::worked() < Duration::from_millis(20) {}
    nala_machine::worked()
}

impl Tokenizer for Slow {
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<Token>, Error> {
        if text.len() > 1024 {
            let working = self.working.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(working, Ordering::SeqCst);
            nala_machine::note_lent(std::thread::spawn(work).join().unwrap());
            self.working.fetch_sub(1, Ordering::SeqCst);
        }
        self.inner.encode(text, parse_special)
    }

    fn piece(&self, token: Token, special: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        self.inner.piece(token, special, out)
    }

    fn vocab(&self) -> u32 {
        self.inner.vocab()
    }

    fn bos(&self) -> Option<Token> {
        self.inner.bos()
    }

    fn adds_bos(&self) -> bool {
        self.inner.adds_bos()
    }

    fn end_tokens(&self) -> &[Token] {
        self.inner.end_tokens()
    }
}

fn slow() -> (Arc<Slow>, LoadedModel) {
    let mut model = Fake::default().load();
    let inner = Arc::clone(&model.tokenizer);
    let slow = Arc::new(Slow { inner, working: AtomicUsize::new(0), most: AtomicUsize::new(0) });
    model.tokenizer = slow.clone();
    (slow, model)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn text_that_cannot_fit_is_refused_before_any_work() {
    let (slow, model) = slow();
    let bench = Bench::with_model(RuntimeConfig::default(), Limits::default(), model);
    // 128 bytes a token of the context, which has 1,024.
    let told = bench.text("/encode?131073").await;
    assert!(told.contains("InvalidArgument") && told.contains("131073 bytes") && told.contains("131072"), "{told}");
    assert_eq!(slow.most.load(Ordering::SeqCst), 0);
    assert_eq!(bench.text("/encode?131072").await, "131072 tokens");
    assert_eq!(slow.most.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tokenising_is_the_guests_cpu_time() {
    let (_, model) = slow();
    let bench = Bench::with_model(RuntimeConfig::default(), tight(), model);
    assert_eq!(bench.get("/encode-forever?2000").await.map(drop), Err(HandleError::CpuLimit));
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn long_texts_are_tokenised_a_few_at_a_time() {
    let (slow, model) = slow();
    let config = RuntimeConfig { tokenisers: 2, ..RuntimeConfig::default() };
    let bench = Bench::with_model(config, Limits::default(), model);
    let all: Vec<_> = (0..6)
        .map(|_| {
            let app = bench.app.clone();
            tokio::spawn(async move { app.handle(request("/encode?2000")).await.map(|r| r.status()) })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap().unwrap(), 200);
    }
    assert_eq!(slow.most.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_text_of_tokens_is_no_larger_than_the_guest() {
    let bench = Bench::new(Limits { memory_bytes: 8 << 20, ..Limits::default() });
    assert_eq!(bench.text("/decode?1000").await, "6000 bytes");
    let told = bench.text("/decode?1500000").await;
    assert!(told.contains("InvalidArgument") && told.contains("8 MiB"), "{told}");
}
