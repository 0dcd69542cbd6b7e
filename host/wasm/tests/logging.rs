//! What a guest logs, as it reaches the log.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use common::Bench;
use nala_wasm::{Capabilities, Limits};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps what guests log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?};").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "nala::guest" && *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

// The only test of this program, since there is one log for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn records_reach_the_log_by_level_escaped_and_bounded() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let logged = || std::mem::take(&mut *log.0.lock().unwrap());
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
