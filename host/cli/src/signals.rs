//! SIGTERM, SIGINT and SIGHUP.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
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
        for mut signal in handled()? {
            let sender = sender.clone();
            tokio::spawn(async move { while signal.recv().await.is_some() && sender.send(()).is_ok() {} });
        }
        Ok(Self(receiver))
    }

    /// Takes the signals over, so that they do nothing, and has something else end the
    /// host.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub(crate) fn instead(end: impl Future<Output = ()> + Send + 'static) -> anyhow::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let handled: Vec<Signal> = handled()?;
        tokio::spawn(async move {
            end.await;
            let _ending = sender.send(());
            drop(handled);
        });
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

/// Handlers for the signals. The system keeps them for as long as the process lives.
fn handled() -> anyhow::Result<Vec<Signal>> {
    ENDING.into_iter().map(|kind| signal(kind()).context("signals cannot be handled")).collect()
}
