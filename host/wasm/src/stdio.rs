//! What a guest prints goes to the log, line by line, up to a number of bytes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};

/// The longest line that is logged whole, in bytes.
const MAX_LINE: usize = 4096;

/// Stands at the end of a line that is not logged whole.
const CUT: &str = " [the rest of this line is dropped: it is longer than 4096 bytes]";
/// Stands at the end of what is logged.
const FULL: &str = " [the rest of this guest's output is dropped: limit reached]";

/// One of a guest's outputs.
#[derive(Clone)]
pub(crate) struct LogStream {
    state: Arc<Mutex<State>>,
}

struct State {
    app: Arc<str>,
    line: Vec<u8>,
    /// What the end of the line that is being gathered is to say.
    note: &'static str,
    /// Bytes that may still be logged.
    left: usize,
    /// Whether all that comes is dropped, which the log says already.
    full: bool,
}

impl LogStream {
    pub(crate) fn new(app: Arc<str>, bytes: u32) -> Self {
        let state = State { app, line: Vec::new(), note: "", left: bytes as usize, full: false };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn take_in(&self, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.split_inclusive(|&b| b == b'\n') {
            if state.full {
                return;
            }
            state.take_in(part);
        }
    }
}

impl State {
    /// Takes in a line, or a part of one.
    fn take_in(&mut self, part: &[u8]) {
        let text = part.strip_suffix(b"\n");
        let wanted = text.unwrap_or(part);
        let room = self.left.min(MAX_LINE.saturating_sub(self.line.len())).min(wanted.len());
        self.line.extend_from_slice(wanted.get(..room).unwrap_or_default());
        self.left -= room;
        if room < wanted.len() {
            self.full = self.left == 0;
            self.note = if self.full { FULL } else { CUT };
        }
        if text.is_some() || self.full {
            self.log();
        }
    }

    fn log(&mut self) {
        let note = std::mem::take(&mut self.note);
        if !self.line.is_empty() || !note.is_empty() {
            let line = String::from_utf8_lossy(&self.line);
            tracing::info!(target: "nala::guest", app = &*self.app, "{}{note}", line.escape_debug());
            self.line.clear();
        }
    }
}

impl Drop for State {
    /// The last line may have no end.
    fn drop(&mut self) {
        self.log();
    }
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for LogStream {
    fn poll_write(self: Pin<&mut Self>, _cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.take_in(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Write};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Keeps what is logged, each record as one text.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    struct Text(String);

    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            write!(self.0, "{field}={value:?};").unwrap();
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// What is logged of `writes`, up to `bytes`.
    fn logged(bytes: u32, writes: &[&[u8]]) -> Vec<String> {
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || {
            let stream = LogStream::new("app".into(), bytes);
            for part in writes {
                stream.take_in(part);
            }
        });
        let records = log.0.lock().unwrap();
        records.clone()
    }

    #[test]
    fn only_so_many_bytes_are_taken_in() {
        let stream = LogStream::new("app".into(), 10);
        stream.take_in(b"12345\n678");
        assert_eq!(stream.state.lock().unwrap().left, 2);
        stream.take_in(&[b'x'; 100_000]);
        let state = stream.state.lock().unwrap();
        assert_eq!((state.left, state.line.len()), (0, 0));
    }

    #[test]
    fn what_is_dropped_is_said_once() {
        let mut writes: Vec<&[u8]> = vec![b"12345678\n"];
        writes.resize(1000, b"again\n");
        let records = logged(10, &writes);
        assert_eq!(records.len(), 2, "{records:?}");
        assert!(records[1].contains("ag [the rest of this guest's output is dropped"), "{records:?}");
    }

    #[test]
    fn a_line_that_is_cut_says_so() {
        let long = [b'x'; 5000];
        let records = logged(100_000, &[&long, b"\nshort\n"]);
        assert_eq!(records.len(), 2, "{records:?}");
        assert!(records[0].contains("x [the rest of this line is dropped"), "{records:?}");
        assert!(records[1].contains("message=short;"), "{records:?}");
        assert!(CUT.contains(&MAX_LINE.to_string()));
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let records = logged(100, &[b"first\n", b"la", b"st"]);
        assert_eq!(records.len(), 2, "{records:?}");
        assert!(records[1].contains("message=last;") && records[1].contains("app=\"app\";"), "{records:?}");
    }
}
