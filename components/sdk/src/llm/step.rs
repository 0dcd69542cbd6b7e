//! One step over many sessions, for programs that choose the tokens themselves.

use std::rc::Rc;

use super::{Error, Reading, Readout, Session, Token};
use crate::bindings::nala::llm::session;

/// One session's part of a [`submit`].
#[derive(Debug, Clone)]
pub struct Step<'a> {
    /// The session. It takes no other call until the readings were taken, or the
    /// [`Pending`] dropped.
    pub session: &'a Session,
    /// Tokens to append first. Empty: what follows the session's last token is read
    /// once more.
    pub input: Vec<Token>,
    /// What is wanted of the model's word on what comes next, at most 16.
    pub readouts: Vec<Readout>,
}

/// Gives several sessions of one model their input at once, so that they share
/// batches, and returns before anything is computed.
///
/// ```
/// use nala_sdk::llm::{Error, Reading, Readout, Session, Step, Token, submit};
///
/// /// Which of the texts the model finds likeliest to go on with `next`.
/// fn likeliest(texts: &[Session], next: Token) -> Result<Option<usize>, Error> {
///     let ask = |session| Step { session, input: Vec::new(), readouts: vec![Readout::LogprobsOf(vec![next])] };
///     let mut best = None;
///     for (index, readings) in submit(texts.iter().map(ask))?.take()?.into_iter().enumerate() {
///         if let [Reading::Logprobs(logprobs)] = &readings?[..] {
///             let logprob = logprobs.first().copied();
///             if best.is_none_or(|(_, least)| logprob > least) {
///                 best = Some((index, logprob));
///             }
///         }
///     }
///     Ok(best.map(|(index, _)| index))
/// }
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] for no steps, a session that stands there twice or is
/// at work, sessions of different models, and what is out of range;
/// [`Error::Quota`] without KV cells for the inputs. Then nothing was begun.
pub fn submit<'a>(steps: impl IntoIterator<Item = Step<'a>>) -> Result<Pending, Error> {
    let steps: Vec<Step<'a>> = steps.into_iter().collect();
    let sessions = steps.iter().map(|step| Rc::clone(&step.session.0)).collect();
    let steps: Vec<session::Step<'_>> = steps
        .into_iter()
        .map(|step| session::Step { on: &step.session.0, input: step.input, readout: step.readouts })
        .collect();
    Ok(Pending { pending: session::submit(&steps)?, _sessions: sessions })
}

/// A step in progress. Dropping it takes back what is not computed yet.
///
/// It keeps its sessions alive.
#[derive(Debug)]
pub struct Pending {
    // Before the sessions, which must not be dropped under a step.
    pending: session::Pending,
    _sessions: Vec<Rc<session::Session>>,
}

impl Pending {
    /// Waits until all is computed. The readings of each session, in the order of
    /// the steps and of their readouts; one session's error is its own.
    ///
    /// # Errors
    /// None that a caller of this type can bring about.
    pub fn take(self) -> Result<Vec<Result<Vec<Reading>, Error>>, Error> {
        self.pending.take()
    }
}
