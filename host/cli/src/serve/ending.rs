//! How the host ends: in good order when it is asked to, and by force when that
//! takes longer than it may.

use std::time::Duration;

use nala_engine::ModelPool;
use nala_http::Shutdown;
use tokio::time::{sleep, timeout};

use crate::args::HttpArgs;
use crate::classes::{self, Classes};
use crate::console::Console;
use crate::signals::Signals;

/// How long the host may take to end once no response runs any more. An engine
/// that computes a step needs some time to notice; one that hangs never does.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// How long the system's own end of the process may take.
const EXIT: Duration = Duration::from_secs(1);

/// How long a drain may take, as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For responses that run, in seconds.
    pub(super) responses: u64,
    /// Until the process must be gone.
    pub(super) all: Duration,
}

impl Patience {
    pub(super) fn of(args: &HttpArgs, classes: &Classes) -> Self {
        let responses = args.drain_deadline;
        let others = if classes.is_empty() { Duration::ZERO } else { classes::GRACE };
        let drain = Duration::from_secs(responses.saturating_add(args.lame_duck));
        Self { responses, all: drain.saturating_add(GRACE).saturating_add(others) }
    }
}

/// Waits for a signal and drains; a second signal cuts, a third one ends the
/// process at once. `give_up` is called when the process should be gone and is
/// not.
pub(super) async fn end(
    mut signals: Signals,
    shutdown: Shutdown,
    console: Console,
    patience: Patience,
    give_up: impl FnOnce(),
) {
    signals.next().await;
    console.say(&format!(
        "Stopping: running responses may take {} s more; the same signal again cuts them off.",
        patience.responses
    ));
    shutdown.drain();
    tokio::select! {
        () = sleep(patience.all) => {}
        () = signals.next() => {
            console.say("Cutting off what still runs.");
            shutdown.cut();
            let _again = timeout(GRACE, signals.next()).await;
        }
    }
    give_up();
}

/// Ends the process outright, whatever still runs or hangs in it.
pub(super) fn by_force(console: Console) {
    console.warn("Something in this process hangs, most likely an engine; it is ended by force.");
    // Ending runs code of libraries, which may wait for the very thread that
    // hangs.
    let _too_late = std::thread::Builder::new().spawn(|| {
        std::thread::sleep(EXIT);
        std::process::abort();
    });
    std::process::exit(1);
}

/// Ends the engines. One that hangs is left behind, and ends with the process.
pub(super) async fn models(models: &ModelPool, console: Console, grace: Duration) {
    if timeout(grace, models.shutdown()).await.is_err() {
        console.warn(&format!("An engine does not end within {} s; it is left behind.", grace.as_secs_f32()));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    const PATIENCE: Patience = Patience { responses: 30, all: Duration::from_secs(35) };

    /// Signals sent by hand, the server's side of the shutdown, and whether the
    /// process was given up.
    fn ending() -> (mpsc::UnboundedSender<()>, Shutdown, oneshot::Receiver<()>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (given, up) = oneshot::channel();
        let shutdown = Shutdown::new();
        let give_up = move || given.send(()).unwrap();
        tokio::spawn(end(Signals::from_channel(receiver), shutdown.clone(), Console::Plain, PATIENCE, give_up));
        (sender, shutdown, up)
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_is_given_up_after_the_drain_deadline() {
        let (signals, shutdown, mut up) = ending();
        signals.send(()).unwrap();
        shutdown.signal().draining().await;
        assert!(timeout(PATIENCE.all - Duration::from_secs(1), &mut up).await.is_err(), "too early");
        timeout(Duration::from_secs(2), up).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_gives_up_soon_and_a_third_at_once() {
        let (signals, _shutdown, mut up) = ending();
        signals.send(()).unwrap();
        signals.send(()).unwrap();
        assert!(timeout(GRACE - Duration::from_secs(1), &mut up).await.is_err(), "too early");
        timeout(Duration::from_secs(2), up).await.unwrap().unwrap();

        let (signals, _shutdown, up) = ending();
        for _ in 0..3 {
            signals.send(()).unwrap();
        }
        timeout(Duration::from_millis(100), up).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_signal_nothing_ends() {
        let (_signals, _shutdown, up) = ending();
        assert!(timeout(Duration::from_secs(3600), up).await.is_err());
    }
}
