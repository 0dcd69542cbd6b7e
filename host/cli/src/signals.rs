//! SIGTERM, SIGINT and SIGHUP.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The signals that end the host. SIGHUP is one of them: it comes when the
/// terminal or the connection that the host was started from goes away, and
/// there is no configuration that could be read anew.
const ENDING: [fn() -> SignalKind; 3] = [SignalKind::terminate, SignalKind::interrupt, SignalKind::hangup];

/// The signals that end the host, as they come.
pub(crate) struct Signals(mpsc::UnboundedReceiver<()>);

impl Signals {
    /// Takes the signals over, so that they no longer end the process at once.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub(crate) fn take() -> anyhow::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        for kind in ENDING {
            let mut signal = signal(kind()).context("signals cannot be handled")?;
            let sender = sender.clone();
            tokio::spawn(async move { while signal.recv().await.is_some() && sender.send(()).is_ok() {} });
        }
        Ok(Self(receiver))
    }

    /// Signals that come from a channel, for tests.
    #[cfg(test)]
    pub(crate) fn from_channel(receiver: mpsc::UnboundedReceiver<()>) -> Self {
        Self(receiver)
    }

    /// Waits for the next of any.
    pub(crate) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // The runtime is ending, and with it whoever waits here.
            std::future::pending().await
        }
    }
}
