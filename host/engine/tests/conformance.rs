//! The fake backend passes the suite that every backend must pass, whatever it
//! says it cannot do.

use std::sync::Arc;
use std::time::Duration;

use nala_engine::conformance;
use nala_engine::fake::Fake;

fn small() -> Fake {
    let mut fake = Fake::default();
    fake.limits.kv_cells = 512;
    fake.limits.sequence_tokens = 256;
    fake.limits.sequences = 8;
    // A machine that is too quick has ended a run before the next one is asked for.
    fake.before_decode = Arc::new(|_| {
        std::thread::sleep(Duration::from_micros(300));
        Ok(())
    });
    fake
}

#[test]
fn fake() {
    let fake = Fake { adapters: vec!["pirate".into(), "lawyer".into()], ..small() };
    conformance::run(&|| fake.load());
}

#[test]
fn fake_with_a_sliding_window() {
    let fake = Fake { window: Some(100), ..small() };
    conformance::run(&|| fake.load());
}

#[test]
fn fake_that_can_only_decode() {
    let fake = Fake { abilities: Default::default(), embeddings: None, ..small() };
    conformance::run(&|| fake.load());
}
