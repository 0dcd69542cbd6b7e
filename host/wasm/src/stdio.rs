//! What a guest prints goes to the log, line by line, up to a number of bytes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};

/// The longest line that is logged whole, in bytes.
const MAX_LINE: usize = 4096;

/// One of a guest's outputs.
#[derive(Clone)]
pub(crate) struct LogStream {
    app: Arc<str>,
    state: Arc<Mutex<State>>,
}

struct State {
    line: Vec<u8>,
    /// Bytes that may still be logged.
    left: usize,
}

impl LogStream {
    pub(crate) fn new(app: Arc<str>, bytes: u32) -> Self {
        Self { app, state: Arc::new(Mutex::new(State { line: Vec::new(), left: bytes as usize })) }
    }

    fn take_in(&self, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.split_inclusive(|&b| b == b'\n') {
            let text = part.strip_suffix(b"\n");
            let wanted = text.unwrap_or(part);
            let room = state.left.min(MAX_LINE.saturating_sub(state.line.len())).min(wanted.len());
            state.line.extend_from_slice(wanted.get(..room).unwrap_or_default());
            state.left -= room;
            if room < wanted.len() && state.left == 0 {
                state.line.extend_from_slice(" [the rest of this guest's output is dropped: limit reached]".as_bytes());
                self.log(&mut state.line);
                return;
            }
            if text.is_some() {
                self.log(&mut state.line);
            }
        }
    }

    fn log(&self, line: &mut Vec<u8>) {
        if !line.is_empty() {
            tracing::info!(target: "nala::guest", app = &*self.app, "{}", String::from_utf8_lossy(line).escape_debug());
            line.clear();
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            tracing::info!(target: "nala::guest", "{}", String::from_utf8_lossy(&self.line).escape_debug());
        }
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
    use super::*;

    #[test]
    fn only_so_many_bytes_are_taken_in() {
        let stream = LogStream::new("app".into(), 10);
        stream.take_in(b"12345\n678");
        assert_eq!(stream.state.lock().unwrap().left, 2);
        stream.take_in(&[b'x'; 100_000]);
        let state = stream.state.lock().unwrap();
        assert_eq!((state.left, state.line.len()), (0, 0));
    }
}
