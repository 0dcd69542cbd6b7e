//! Guests that keep a model's output within grammars, or try to.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{Bench, tight};
use nala_engine::fake::Fake;
use nala_engine::{Error, LoadedModel, Token, Tokenizer};
use nala_wasm::{HandleError, Limits, RuntimeConfig};

#[tokio::test(flavor = "multi_thread")]
async fn runs_follow_grammars_of_every_kind() {
    let bench = Bench::new(Limits::default());
    let told = bench.text("/grammars").await;
    assert!(["\"yes, not today", "\"no, not today"].iter().any(|text| told.starts_with(text)), "{told}");
    assert!(told.contains(r#"" true true true true "def" warned 1 0 0 "a"#), "{told}");
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grammars_that_cannot_be_are_typed_errors_that_say_why() {
    let bench = Bench::new(Limits::default());
    let told = bench.text("/grammars-refused").await;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 10, "{told}");
    for line in &lines[..8] {
        assert!(line.starts_with("Some(Error::Constraint(") && line.len() < 800, "{line}");
    }
    assert!(lines[1].contains("wizard"), "{}", lines[1]);
    assert!(lines[7].contains("300000 bytes long, and at most 262144"), "{}", lines[7]);
    assert!(lines[8].contains("InvalidArgument") && lines[8].contains("still goes on"), "{}", lines[8]);
    assert!(lines[9].contains("Constraint"), "{}", lines[9]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bytes_of_grammars_are_bounded_over_handles_and_sessions() {
    let bench = Bench::new(Limits { grammar_bytes: 1 << 20, ..Limits::default() });
    let quota = "Error::Quota(QuotaKind::Memory)";
    assert_eq!(bench.text("/grammars-held").await, format!("true {quota} Some({quota}) true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grammar_of_another_model_is_refused() {
    let bench = Bench::with_two_models();
    let told = bench.text("/grammar-of-another").await;
    assert!(told.contains("InvalidArgument") && told.contains("another model"), "{told}");
}

/// A tokeniser whose vocabulary takes a second to be read, as it is for the first
/// grammar.
struct Slow(Arc<dyn Tokenizer>);

impl Tokenizer for Slow {
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<Token>, Error> {
        self.0.encode(text, parse_special)
    }

    fn piece(&self, token: Token, special: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        std::thread::sleep(Duration::from_millis(4));
        self.0.piece(token, special, out)
    }

    fn vocab(&self) -> u32 {
        self.0.vocab()
    }

    fn bos(&self) -> Option<Token> {
        self.0.bos()
    }

    fn adds_bos(&self) -> bool {
        self.0.adds_bos()
    }

    fn end_tokens(&self) -> &[Token] {
        self.0.end_tokens()
    }
}

fn slow() -> LoadedModel {
    let mut model = Fake::default().load();
    model.tokenizer = Arc::new(Slow(Arc::clone(&model.tokenizer)));
    model
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_grammar_costs_no_cpu_time() {
    let limits = Limits { cpu: Duration::from_millis(500), ..tight() };
    let bench = Bench::with_model(RuntimeConfig::default(), limits, slow());
    let begin = Instant::now();
    let told = bench.text("/compile").await;
    assert!(begin.elapsed() > Duration::from_secs(1), "it took {:?}", begin.elapsed());
    assert!(told.starts_with("Ok") || told.contains("Constraint"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_grammar_ends_with_the_wall_time() {
    let limits = Limits { wall: Duration::from_millis(300), ..tight() };
    let bench = Bench::with_model(RuntimeConfig::default(), limits, slow());
    assert_eq!(bench.get("/compile").await.map(drop), Err(HandleError::WallLimit));
    bench.until_empty().await;
}
