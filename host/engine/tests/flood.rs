//! Handles that ask for more than anyone can use.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nala_engine::fake::Fake;
use nala_engine::{Engine, EngineConfig, Error, GenerateOptions, SessionOptions};

/// An engine whose next decode lasts until the switch is turned.
fn held() -> (Engine, Arc<AtomicBool>) {
    let hold = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&hold);
    let fake = Fake {
        before_decode: Arc::new(move |_| {
            while switch.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }),
        ..Fake::default()
    };
    (Engine::start("fake", fake.load(), EngineConfig::default()).unwrap(), hold)
}

#[tokio::test]
async fn runs_that_are_started_and_dropped_do_not_pile_up() {
    let (engine, hold) = held();
    let mut busy = engine.open_session(SessionOptions::default()).unwrap();
    busy.prefill(vec![65; 4]).await.unwrap();
    let mut flood = engine.open_session(SessionOptions::default()).unwrap();
    flood.prefill(vec![65; 4]).await.unwrap();
    hold.store(true, Ordering::Release);
    // The first token needs no batch, the second one hangs in it.
    let run = busy.generate(GenerateOptions::greedy(2)).unwrap();
    while engine.metrics().decode_steps.get() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let accepted = (0..10_000).filter(|_| flood.generate(GenerateOptions::greedy(1)).is_ok()).count();
    assert!((1..=8).contains(&accepted), "{accepted} runs wait unseen");
    assert_eq!(flood.generate(GenerateOptions::greedy(1)).err(), Some(Error::Busy));
    for _ in 0..10_000 {
        run.cancel();
    }
    hold.store(false, Ordering::Release);
    let begin = Instant::now();
    while flood.generate(GenerateOptions::greedy(1)).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(5), "it is served again");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.shutdown().await;
}

#[tokio::test]
async fn sessions_that_are_opened_and_dropped_do_not_pile_up() {
    let (engine, hold) = held();
    let mut busy = engine.open_session(SessionOptions::default()).unwrap();
    hold.store(true, Ordering::Release);
    let prefill = tokio::spawn(async move { busy.prefill(vec![65; 4]).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let most = EngineConfig::default().max_sessions as usize;
    let opened = (0..10 * most).filter(|_| engine.open_session(SessionOptions::default()).is_ok()).count();
    assert!(opened <= most, "{opened} sessions wait to be closed");
    hold.store(false, Ordering::Release);
    prefill.await.unwrap().unwrap();
    let begin = Instant::now();
    while engine.open_session(SessionOptions::default()).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(5), "places are given back");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.shutdown().await;
}
