//! Advances the epoch, so that running guests look up now and then.
//!
//! On a thread of its own: a timer on the async runtime would not fire while
//! its workers are busy with guests, which is just when it is needed.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use wasmtime::Engine;

/// The ticking thread, which ends when this is dropped.
pub(crate) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts to advance the engine's epoch every `period`.
    pub(crate) fn start(engine: &Engine, period: Duration) -> io::Result<Self> {
        let engine = engine.weak();
        let (stop, stopped) = channel::<()>();
        let thread = Builder::new().name("wasm epoch".into()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(period) {
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => break,
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread, if any, was reported when it happened.
            let _ = thread.join();
        }
    }
}
