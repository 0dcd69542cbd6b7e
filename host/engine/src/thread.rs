//! The engine thread: one a model, and the only one that touches its backend.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};

use crate::affinity::Affinity;
use crate::backend::{Abilities, Backend, BackendLimits};
use crate::clock::SystemClock;
use crate::command::Command;
use crate::config::EngineConfig;
use crate::metrics::EngineMetrics;
use crate::scheduler::{Progress, Scheduler};
use crate::tokenizer::Tokenizer;

/// Makes a backend on the thread that is to own it.
pub(crate) type MakeBackend = Box<dyn FnOnce() -> Result<Box<dyn Backend>, String> + Send>;

pub(crate) struct Setup {
    pub(crate) backend: MakeBackend,
    /// Makes the backend of the draft model, where there is one.
    pub(crate) draft: Option<MakeBackend>,
    pub(crate) tokenizer: Arc<dyn Tokenizer>,
    pub(crate) config: EngineConfig,
    pub(crate) metrics: EngineMetrics,
    pub(crate) steps: Arc<AtomicU64>,
    pub(crate) commands: Receiver<Command>,
}

/// Makes the backend, says through `ready` whether that worked, and serves until
/// the engine is shut down or every handle is gone.
///
/// Should the backend panic, the sequences are dropped with it, which tells
/// every reader that the engine is gone.
pub(crate) fn main(setup: Setup, ready: impl FnOnce(Result<(BackendLimits, Abilities), String>)) {
    // Before the backend may keep this thread to one CPU.
    let affinity = Affinity::of_this_thread();
    let Setup { backend, draft, tokenizer, config, metrics, steps, commands } = setup;
    let backend = match backend() {
        Ok(backend) => backend,
        Err(error) => return ready(Err(error)),
    };
    let draft = match draft.map(|make| make()).transpose() {
        Ok(draft) => draft,
        Err(error) => return ready(Err(format!("the draft model: {error}"))),
    };
    ready(Ok((backend.limits(), backend.abilities())));
    let serve = AssertUnwindSafe(move || {
        let mut scheduler = Scheduler::new(backend, tokenizer, config, metrics, steps, SystemClock::new(), affinity);
        if let Some(draft) = draft {
            scheduler = scheduler.with_draft(draft);
        }
        serve(scheduler, &commands);
    });
    if std::panic::catch_unwind(serve).is_err() {
        tracing::error!("the engine thread panicked; the model can no longer be used");
    }
}

/// The most commands that are taken in before a step, so that nobody's commands
/// can keep the others' tokens from coming.
const COMMANDS_A_STEP: usize = 1024;

fn serve(mut scheduler: Scheduler<SystemClock>, commands: &Receiver<Command>) {
    loop {
        // What was asked for before the step is taken in before it.
        for _ in 0..COMMANDS_A_STEP {
            match commands.try_recv() {
                Ok(Command::Shutdown) | Err(TryRecvError::Disconnected) => return scheduler.shut_down(),
                Ok(command) => scheduler.handle(command),
                Err(TryRecvError::Empty) => break,
            }
        }
        let command = match scheduler.step() {
            Progress::Worked => continue,
            Progress::Idle => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Progress::Waiting(time) => commands.recv_timeout(time),
        };
        match command {
            Ok(Command::Shutdown) | Err(RecvTimeoutError::Disconnected) => return scheduler.shut_down(),
            Ok(command) => scheduler.handle(command),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
