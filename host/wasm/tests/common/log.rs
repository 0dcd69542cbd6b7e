//! A log that tests read.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps what is logged, each record as its level and one text.
#[derive(Clone)]
pub(crate) struct Log {
    records: Arc<Mutex<Vec<(Level, String)>>>,
    enabled: fn(&Metadata<'_>) -> bool,
}

impl Log {
    /// Keeps those that `enabled` lets through.
    pub(crate) fn of(enabled: fn(&Metadata<'_>) -> bool) -> Self {
        Self { records: Arc::default(), enabled }
    }

    /// What was logged since the last time.
    pub(crate) fn take(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut *self.records.lock().unwrap())
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?};").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        (self.enabled)(metadata)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.records.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
