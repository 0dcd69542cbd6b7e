//! One step over many sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot::{self, Receiver};

use super::{Session, Shared};
use crate::Token;
use crate::command::{Command, StepCommand};
use crate::error::Error;
use crate::options::{Reading, Readout};
use crate::validate;

/// One session's part of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Tokens to append first. Empty: the logits after what the session holds are
    /// read once more.
    pub input: Vec<Token>,
    /// What is wanted of the logits after them.
    pub readouts: Vec<Readout>,
}

/// Gives several sessions of one engine their input at once, so that they share
/// batches, and returns before anything is computed. What each reads comes from
/// [`Submitted::take`], in the order of the steps.
///
/// # Errors
/// [`Error::InvalidArgument`] for tokens or readouts out of range, for sessions of
/// different engines, and for one that is at work; then nothing was begun.
pub fn submit(steps: Vec<(&mut Session, Step)>) -> Result<Submitted, Error> {
    let Some(shared) = steps.first().map(|(session, _)| Arc::clone(&session.shared)) else {
        return Err(Error::InvalidArgument("a step over no sessions does nothing".into()));
    };
    for (session, step) in &steps {
        if !Arc::ptr_eq(&session.shared, &shared) {
            let text = "the sessions of a step must be of one model; submit one step for each";
            return Err(Error::InvalidArgument(text.into()));
        }
        validate::step(step, shared.limits.vocab)?;
        session.refuse_while_working()?;
    }
    let mut commands = Vec::with_capacity(steps.len());
    let mut parts = Vec::with_capacity(steps.len());
    for (session, Step { input, readouts }) in steps {
        let (reply, answer) = oneshot::channel();
        commands.push(StepCommand { id: session.id, input, readouts, reply });
        session.working.store(true, Ordering::Release);
        parts.push(Part { working: Arc::clone(&session.working), answer: Some(answer), result: None });
    }
    let submitted = Submitted { shared, parts };
    submitted.shared.send(Command::Submit(commands))?;
    Ok(submitted)
}

struct Part {
    working: Arc<AtomicBool>,
    /// None once it has come.
    answer: Option<Receiver<Result<Vec<Reading>, Error>>>,
    result: Option<Result<Vec<Reading>, Error>>,
}

/// A step in progress. Dropping it takes back what is not computed yet, and ends
/// it for all its sessions.
pub struct Submitted {
    shared: Arc<Shared>,
    parts: Vec<Part>,
}

impl Submitted {
    /// Resolves when [`Submitted::take`] would not wait. Cancel safe.
    pub async fn ready(&mut self) {
        for part in &mut self.parts {
            if let Some(answer) = &mut part.answer {
                part.result = Some(answer.await.unwrap_or(Err(Error::Cancelled)));
                part.answer = None;
                part.working.store(false, Ordering::Release);
            }
        }
    }

    /// Waits until all is computed. One session's error is its own.
    pub async fn take(mut self) -> Vec<Result<Vec<Reading>, Error>> {
        self.ready().await;
        self.parts.iter_mut().map(|part| part.result.take().unwrap_or(Err(Error::Cancelled))).collect()
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        let mut goes_on = false;
        for part in &mut self.parts {
            goes_on |= part.answer.take().is_some();
            part.working.store(false, Ordering::Release);
        }
        if goes_on {
            // An idle engine must look at what nobody waits for any more.
            let _ = self.shared.send(Command::Wake);
        }
    }
}
