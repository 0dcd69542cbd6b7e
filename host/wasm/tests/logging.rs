//! What a guest logs, as it reaches the log.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;
#[path = "common/log.rs"]
mod log;

use common::Bench;
use log::Log;
use nala_wasm::{Capabilities, Limits};
use tracing::Level;

// The only test of this program, since there is one log for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn records_reach_the_log_by_level_escaped_and_bounded() {
    let log = Log::of(|metadata| metadata.target() == "nala::guest" && *metadata.level() <= Level::INFO);
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let logged = || log.take();
    let limits = Limits { log_bytes: 1000, ..Limits::default() };
    let bench = Bench::granted_within(limits, Capabilities::default(), "capabilities");
    bench.text("/log?1").await;
    bench.until_empty().await;
    let records = logged();
    let [(Level::INFO, first), (Level::ERROR, second)] = records.as_slice() else { panic!("{records:?}") };
    assert!(first.contains("message=record 0\\nforged line;") && first.contains("context=context;"), "{first}");
    assert!(first.contains("app=\"capabilities\";") && second.contains("message=the last;"), "{records:?}");
    bench.text("/log?10000").await;
    bench.until_empty().await;
    let records = logged();
    assert!((30..40).contains(&records.len()), "{} records", records.len());
    let (_, last) = &records[records.len() - 1];
    assert!(last.contains("the rest of this guest's output is dropped"), "{last}");
}
