//! Answers in which the model calls tools that are the server's: turn after turn in one
//! session, until it says something or calls a function of the client's.

mod calls;
mod voice;

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use agent_loop::{Budget, First, Loop, Over, Step};
use nala_sdk::llm::{self, PrefillInfo, Session};

use super::{Ready, length, now, options_of, prompt, ready, time_left, too_long};
use crate::ask::{Ask, Prompt};
use crate::error::ApiError;
use crate::parameters::output::Output;
use crate::turn::{Bytes, End, Heard, Running, Turn, broke_off};
use calls::Calls;
use voice::{Voice, Way};

/// The most turns of the model. In the last one it calls nothing.
const MOST_TURNS: u32 = 16;

/// The most bytes of what a tool says that the model reads.
const RESULT_BYTES: usize = 8192;

/// The tools that are the server's, and how often they may be called.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Served {
    /// Their names. All are among the tools of the conversation.
    pub(crate) names: Vec<String>,
    /// Those that are called first, one a turn. Where there are some, the conversation's
    /// choice is the first of them.
    pub(crate) first: Vec<First>,
    /// The most calls of them.
    pub(crate) most_calls: Option<u32>,
}

/// Begins an answer as [`begin`](super::begin) does. What the model calls first is as the
/// conversation says; from then on it calls what it likes.
///
/// # Errors
/// As [`begin`](super::begin).
pub(crate) fn begin_served(
    mut ask: Ask,
    served: Served,
) -> Result<Running<impl Iterator<Item = Result<Heard, ApiError>>, impl Bytes>, ApiError> {
    let asked = Instant::now();
    let Ready { model, info, breakers, written } = ready(&ask)?;
    let mut ways = VecDeque::new();
    for first in &served.first {
        ways.push_back(Way::first(&model, &written, first)?);
    }
    if ways.is_empty() {
        ways.push_back(Way::of(&model, &ask, &written)?);
    }
    if written.forced.is_some() {
        ways.extend(Way::behind(&model, &mut ask, &written));
    }
    let tokens = written.tokens.len();
    let room = length::room(ask.param, tokens, info.ctx_max)?;
    let most = ask.options.max_tokens.unwrap_or(room);
    let options = options_of(&ask, most, breakers, written.shown(&model));
    let conversation = match &ask.prompt {
        Prompt::Conversation(conversation) => Some(conversation),
        Prompt::Text(_) | Prompt::Template(_) | Prompt::Tokens(_) => None,
    };
    let shown = conversation.map(prompt::shown).unwrap_or_default();
    let variables = conversation.and_then(prompt::variables);
    let wall = Duration::from_millis(time_left(Duration::ZERO, llm::limits().wall_us).into());
    let budget = Budget { turns: MOST_TURNS, tokens: most, time: wall, result_bytes: RESULT_BYTES };
    let format = written.format;
    let speaker = Voice {
        info: info.clone(),
        format,
        formed: ask.options.output != Output::Free,
        ways,
        answering: written.answering(),
        options,
        asked,
        session: None,
        said: None,
        calls: Calls::new(served),
        taken: 0,
        written: 0,
        end: None,
    };
    // Somebody waits for it. What the tools will say needs room as well.
    let session = llm::SessionOptions { priority: llm::Priority::Interactive, ..llm::SessionOptions::default() };
    let session = Session::open_with(&model, session)?;
    let mut steps = Loop::new(speaker, Rc::clone(&model), session, shown, budget).with_variables(variables);
    let began = Instant::now();
    let read = steps.read(written.tokens).map_err(|error| match error {
        Failure::Host(nala_sdk::Error::Llm(error)) => too_long(ask.param, tokens, error),
        other => other.into(),
    })?;
    let generating = Instant::now();
    let mut turns = Story { steps, first: None };
    // What fails up to the first token has a status.
    turns.first = turns.next().transpose()?;
    Ok(Running {
        created: now(),
        choices: 1,
        model: ask.model,
        prompt: PrefillInfo { cached: read.cached, computed: read.computed },
        prompt_time: generating.duration_since(began),
        generating,
        turns,
        bytes: move |token| model.decode(&[token]).unwrap_or_default(),
    })
}

/// What is heard, step by step.
struct Story {
    steps: Loop<Voice>,
    /// What was awaited already.
    first: Option<Heard>,
}

impl Iterator for Story {
    type Item = Result<Heard, ApiError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(heard) = self.first.take() {
            return Some(Ok(heard));
        }
        loop {
            let step = match self.steps.step() {
                Ok(step) => step?,
                // Where what a tool said has no room, the answer ends as where the model's
                // own words have none.
                Err(Failure::Host(nala_sdk::Error::Llm(llm::Error::ContextFull(_)))) => {
                    return Some(Ok(ended(End::ContextFull)));
                }
                Err(error) => return Some(Err(error.into())),
            };
            return Some(Ok(match step {
                Step::Said(turn) => Heard::Said(turn),
                Step::Returned(returned) => Heard::Returned(returned),
                Step::Read(read) => Heard::Read(PrefillInfo { cached: read.cached, computed: read.computed }),
                // Of the first the model's own words tell; the API has no word for the second.
                Step::Call { .. } | Step::Progress(..) => continue,
                Step::Over(Over::Said) => match self.steps.speaker().end {
                    Some(end) => ended(end),
                    None => return Some(Err(broke_off())),
                },
                Step::Over(Over::Turns | Over::Tokens | Over::Time) => ended(End::Length),
            }));
        }
    }
}

fn ended(end: End) -> Heard {
    Heard::Said(Turn { end: Some(end), ..Turn::default() })
}

/// What goes wrong between the turns, in whose words it is told.
enum Failure {
    Host(nala_sdk::Error),
    Api(ApiError),
}

impl From<nala_sdk::Error> for Failure {
    fn from(error: nala_sdk::Error) -> Self {
        Self::Host(error)
    }
}

impl From<llm::Error> for Failure {
    fn from(error: llm::Error) -> Self {
        Self::Host(error.into())
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Host(error) => error.into(),
            Failure::Api(error) => error,
        }
    }
}
