//! What a guest prints and logs goes to the log, line by line and record by
//! record, together up to a number of bytes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tracing::Level;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};

use crate::account::Account;

/// The longest line that is logged whole, in bytes.
const MAX_LINE: usize = 4096;

/// Stands at the end of a line that is not logged whole.
const CUT: &str = " [the rest of this line is dropped: it is longer than 4096 bytes]";
/// Stands where the tenant has logged what it may in a minute.
const TENANT_FULL: &str = "[what guests of this tenant log is dropped: the limit log_bytes_per_minute is reached]";
/// Stands at the end of what is logged.
const FULL: &str = " [the rest of this guest's output is dropped: limit reached]";

/// A guest's outputs: standard output, standard error and its log records, with
/// one number of bytes for all.
#[derive(Clone)]
pub(crate) struct LogStream {
    state: Arc<Mutex<State>>,
}

struct State {
    app: Arc<str>,
    /// Whose limit for a minute it counts against as well.
    account: Arc<Account>,
    line: Vec<u8>,
    /// What the end of the line that is being gathered is to say.
    note: &'static str,
    /// Bytes that may still be logged.
    left: usize,
    /// Whether all that comes is dropped, which the log says already.
    full: bool,
}

impl LogStream {
    pub(crate) fn new(app: Arc<str>, bytes: u32, account: Arc<Account>) -> Self {
        let state = State { app, account, line: Vec::new(), note: "", left: bytes as usize, full: false };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// So many bytes may be logged from now on.
    pub(crate) fn renew(&self, bytes: u32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.left, state.full) = (bytes as usize, false);
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

    /// Logs a record of `wasi:logging`. It is no part of a line that is being
    /// printed.
    pub(crate) fn record(&self, level: Level, context: &str, message: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.full {
            state.record(level, context, message);
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

    fn record(&mut self, level: Level, context: &str, message: &str) {
        // The level of an event is a constant.
        macro_rules! event {
            ($level:expr) => {
                // What is not logged anyhow costs nothing.
                if tracing::enabled!(target: "nala::guest", $level) {
                    let (context, message, note) = self.afford(context, message);
                    if !self.may_log(context.len() + message.len()) {
                        return;
                    }
                    let (app, context, message) = (&*self.app, context.escape_debug(), message.escape_debug());
                    tracing::event!(target: "nala::guest", $level, app, %context, "{message}{note}");
                }
            };
        }
        match level {
            Level::ERROR => event!(Level::ERROR),
            Level::WARN => event!(Level::WARN),
            Level::INFO => event!(Level::INFO),
            Level::DEBUG => event!(Level::DEBUG),
            Level::TRACE => event!(Level::TRACE),
        }
    }

    /// As much of a record as may be logged, and what is to be said of the rest.
    /// A record takes a byte more than its texts, so that empty ones end as well.
    fn afford<'a>(&mut self, context: &'a str, message: &'a str) -> (&'a str, &'a str, &'static str) {
        self.full |= self.left == 0;
        self.left = self.left.saturating_sub(1);
        let mut note = "";
        let [context, message] = [context, message].map(|text| {
            let end = text.floor_char_boundary(self.left.min(MAX_LINE));
            if end < text.len() {
                self.full |= self.left < MAX_LINE;
                note = CUT;
            }
            self.left -= end;
            text.get(..end).unwrap_or_default()
        });
        (context, message, if self.full { FULL } else { note })
    }

    fn log(&mut self) {
        let note = std::mem::take(&mut self.note);
        if (!self.line.is_empty() || !note.is_empty()) && self.may_log(self.line.len()) {
            let line = String::from_utf8_lossy(&self.line);
            tracing::info!(target: "nala::guest", app = &*self.app, "{}{note}", line.escape_debug());
        }
        self.line.clear();
    }

    /// Whether the tenant may log so many bytes. The first time that it may not is told,
    /// and ends what this guest logs.
    fn may_log(&mut self, bytes: usize) -> bool {
        let may = self.account.may_log(bytes as u64);
        if !may && !self.full {
            self.full = true;
            tracing::warn!(target: "nala::guest", app = &*self.app, "{TENANT_FULL}");
        }
        may
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
#[path = "../tests/common/log.rs"]
mod log;

#[cfg(test)]
mod tests {
    use super::log::Log;
    use super::*;

    fn account() -> Arc<Account> {
        Arc::new(Account::sole())
    }

    /// The texts of all that is logged while `log` runs.
    fn texts(log: impl FnOnce()) -> Vec<String> {
        let kept = Log::of(|_| true);
        tracing::subscriber::with_default(kept.clone(), log);
        kept.take().into_iter().map(|(_, text)| text).collect()
    }

    /// What is logged of `writes`, up to `bytes`.
    fn logged(bytes: u32, writes: &[&[u8]]) -> Vec<String> {
        texts(|| {
            let stream = LogStream::new("app".into(), bytes, account());
            for part in writes {
                stream.take_in(part);
            }
        })
    }

    #[test]
    fn only_so_many_bytes_are_taken_in() {
        let stream = LogStream::new("app".into(), 10, account());
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

    /// The records of `wasi:logging` that are logged, up to `bytes`.
    fn recorded(bytes: u32, records: &[(Level, &str, &str)]) -> Vec<String> {
        texts(|| {
            let stream = LogStream::new("app".into(), bytes, account());
            stream.take_in(b"un");
            for (level, context, message) in records {
                stream.record(*level, context, message);
            }
            stream.take_in(b"broken\n");
        })
    }

    #[test]
    fn records_are_one_line_each_and_leave_printed_lines_whole() {
        let records = recorded(100, &[(Level::WARN, "a\nb", "one\n2026 ERROR two\u{1b}[31m")]);
        assert_eq!(records.len(), 2, "{records:?}");
        let text = "message=one\\n2026 ERROR two\\u{1b}[31m;";
        assert!(records[0].contains(text) && records[0].contains("context=a\\nb;"), "{records:?}");
        assert!(records[0].contains("app=\"app\";") && records[1].contains("message=unbroken;"), "{records:?}");
    }

    #[test]
    fn records_and_lines_share_their_bytes() {
        let records = recorded(10, &[(Level::INFO, "", "123"), (Level::ERROR, "", "45678"), (Level::ERROR, "", "no")]);
        // Two are printed, four are the first record's, and one begins the second.
        assert_eq!(records.len(), 3, "{records:?}");
        assert!(records[1].contains("message=456 [the rest of this guest's output is dropped"), "{records:?}");
        assert!(records[2].contains("message=un;"), "nothing more is taken in: {records:?}");
        let empty = recorded(10, &[(Level::INFO, "", ""); 1000]);
        assert!(empty.len() <= 10, "{} records", empty.len());
    }

    #[test]
    fn a_long_record_is_cut_at_a_character() {
        let long = "é".repeat(3000);
        let records = recorded(100_000, &[(Level::INFO, &long, "x")]);
        assert!(records[0].contains("message=x [the rest of this line is dropped"), "{records:?}");
        assert!(records[0].contains(&format!("context={};", "é".repeat(2048))), "{records:?}");
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let records = logged(100, &[b"first\n", b"la", b"st"]);
        assert_eq!(records.len(), 2, "{records:?}");
        assert!(records[1].contains("message=last;") && records[1].contains("app=\"app\";"), "{records:?}");
    }
}
