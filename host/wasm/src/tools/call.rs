//! A call that goes on, between the tool and whoever waits for it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::bindings::nala::tools::types::{Answer, Error, Progress};
use crate::body::GoneGuard;
use crate::control::RequestControl;

/// What a call came to.
pub(crate) type Outcome = Result<Answer, Error>;

/// What is to be told next.
pub(super) enum Next {
    Progress(Progress),
    Answer(Outcome),
    /// All has been told.
    Nothing,
}

/// What both sides share.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The latest that was not told yet.
    progress: Option<Progress>,
    answer: Option<Outcome>,
    is_told: bool,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.changed.notify_waiters();
    }

    /// Waits until `look` finds something.
    async fn wait<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let changed = self.0.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // What comes after the look is not missed.
            changed.as_mut().enable();
            let found = look(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
            match found {
                Some(found) => return found,
                None => changed.await,
            }
        }
    }

    /// Waits until there is something to be told.
    pub(super) async fn ready(&self) {
        let is_ready = |state: &mut State| state.is_told || state.progress.is_some() || state.answer.is_some();
        self.wait(|state| is_ready(state).then_some(())).await;
    }
}

/// A call, for whoever waits for it. It ends when this is dropped.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct Running {
    shared: Shared,
    _guard: GoneGuard,
}

impl Running {
    /// A call, and where the tool's side of it tells what comes of it.
    pub(super) fn begin(control: Arc<RequestControl>) -> (Self, Listener) {
        let shared = Shared::default();
        (Self { shared: shared.clone(), _guard: GoneGuard::new(control) }, Listener(shared))
    }

    pub(super) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// Waits for what is to be told next.
    pub(super) async fn next(&self) -> Next {
        self.shared
            .wait(|state| {
                if let Some(progress) = state.progress.take() {
                    return Some(Next::Progress(progress));
                }
                if let Some(answer) = state.answer.take() {
                    state.is_told = true;
                    return Some(Next::Answer(answer));
                }
                state.is_told.then_some(Next::Nothing)
            })
            .await
    }
}

/// Where a tool tells what comes of a call.
pub(crate) struct Listener(Shared);

impl Listener {
    /// Another way to tell the same one how far the call has got.
    pub(super) fn again(&self) -> Reporter {
        Reporter(self.0.clone())
    }

    /// Ends the call.
    pub(super) fn answer(self, outcome: Outcome) {
        self.0.change(|state| state.answer = Some(outcome));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.change(|state| {
            let is_over = state.is_told || state.answer.is_some();
            if !is_over {
                state.answer = Some(Err(Error::Failed("the call was given up".into())));
            }
        });
    }
}

/// Where a tool tells how far a call has got.
pub(crate) struct Reporter(Shared);

impl Reporter {
    pub(super) fn report(&self, progress: Progress) {
        self.0.change(|state| {
            if state.answer.is_none() && !state.is_told {
                state.progress = Some(progress);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tokio::runtime::Handle;

    use super::*;
    use crate::outbound::Origin;

    fn begin() -> (Running, Listener, Arc<RequestControl>) {
        let control = Arc::new(RequestControl::of_call(
            Instant::now() + Duration::from_secs(60),
            Origin::client(Handle::current()),
        ));
        let (running, listener) = Running::begin(Arc::clone(&control));
        (running, listener, control)
    }

    fn progress(done: f64) -> Progress {
        Progress { done, total: None, message: None }
    }

    #[tokio::test]
    async fn the_latest_progress_is_told_before_the_answer_and_then_nothing() {
        let (running, listener, _) = begin();
        let reporter = listener.again();
        reporter.report(progress(1.0));
        reporter.report(progress(2.0));
        listener.answer(Err(Error::Busy("full".into())));
        reporter.report(progress(3.0));
        running.shared().ready().await;
        assert!(matches!(running.next().await, Next::Progress(Progress { done: 2.0, .. })));
        assert!(matches!(running.next().await, Next::Answer(Err(Error::Busy(_)))));
        running.shared().ready().await;
        assert!(matches!(running.next().await, Next::Nothing));
    }

    #[tokio::test]
    async fn who_waits_is_woken_wherever_it_waits() {
        let (running, listener, _) = begin();
        let shared = running.shared();
        let waits = tokio::spawn(async move { shared.ready().await });
        tokio::task::yield_now().await;
        let next = async { running.next().await };
        let tell = async {
            tokio::task::yield_now().await;
            drop(listener);
        };
        let (next, ()) = tokio::join!(next, tell);
        assert!(matches!(next, Next::Answer(Err(Error::Failed(_)))), "its task was dropped");
        tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_ends() {
        let (running, _listener, control) = begin();
        assert!(!control.gone.is_cancelled());
        drop(running);
        assert!(control.gone.is_cancelled());
    }
}
