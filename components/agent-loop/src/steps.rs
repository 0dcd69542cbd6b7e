//! The loop, step by step.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nala_sdk::chat;
use nala_sdk::llm::{Model, Session, Token};
use nala_sdk::tools::Progress;
use serde::{Deserialize, Serialize};

use crate::behind;
use crate::calls::{Calls, Heard, Returned};
use crate::speaker::{Speaker, Then, Wanted};

/// What a loop may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The most turns of the model.
    pub turns: u32,
    /// The most tokens that it writes.
    pub tokens: u32,
    /// The time after which no further turn begins.
    pub time: Duration,
    /// The most bytes of what a tool says that the model reads.
    pub result_bytes: usize,
}

/// What a loop took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Turns of the model.
    pub turns: u32,
    /// Calls of tools.
    pub calls: u32,
    /// Tokens of the prompt, and of what the tools said, that were computed.
    pub computed_tokens: u32,
    /// Those of them that were known.
    pub cached_tokens: u32,
    /// Tokens that the model wrote.
    pub written_tokens: u32,
}

/// What happens.
#[derive(Debug)]
pub enum Step<S> {
    /// The model speaks.
    Said(S),
    /// It calls a tool. All calls of a turn are told before one is made.
    Call {
        /// The turn, from 1 on.
        turn: u32,
        /// Names the call in the run, from 1 on.
        id: u32,
        /// The tool.
        tool: String,
        /// What it is given, as the model wrote it.
        arguments: String,
    },
    /// A call has got so far.
    Progress(u32, Progress),
    /// A call is over. Those of a turn are told in the order in which they were made.
    Returned(Returned),
    /// The model has read what the tools said, and its next turn can begin.
    Read(Read),
    /// There is no further step.
    Over(Over),
}

/// What the model read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The tokens, but for what the next turn begins with.
    pub tokens: Vec<Token>,
    /// What the next turn begins with.
    pub opening: Vec<Token>,
    /// How many of all of them were known.
    pub cached: u32,
    /// How many were computed.
    pub computed: u32,
}

/// Why there is no further step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The speaker said so.
    Said,
    /// There were as many turns as there may be.
    Turns,
    /// As many tokens were written as may be.
    Tokens,
    /// The time was up.
    Time,
}

/// See the crate.
pub struct Loop<S> {
    speaker: S,
    model: Rc<Model>,
    session: Rc<Session>,
    /// As the template shows them.
    tools: Vec<chat::Tool>,
    /// What else the template is given, a JSON object as text.
    variables: Option<String>,
    budget: Budget,
    begun: Instant,
    usage: Usage,
    state: State,
}

/// What comes next.
enum State {
    /// A turn.
    Ready,
    /// More of a turn.
    Speaking,
    /// The calls of a turn are told, before they are made.
    Telling { untold: VecDeque<(u32, String, String)>, wanted: Vec<Wanted>, then: Then },
    /// What the tools say is awaited.
    Calling { calls: Calls, then: Then },
    /// The model reads this.
    Reading(Vec<String>),
    /// Nothing.
    Over,
}

/// What comes next, and what happens now, if that is anything to tell.
type Next<S> = (State, Option<Step<S>>);

impl<S: Speaker> Loop<S> {
    /// A loop in a session that holds nothing yet. [`Loop::read`] is to be called before the
    /// first step.
    #[must_use]
    pub fn new(speaker: S, model: Rc<Model>, session: Session, tools: Vec<chat::Tool>, budget: Budget) -> Self {
        Self {
            speaker,
            model,
            session: Rc::new(session),
            tools,
            variables: None,
            budget,
            begun: Instant::now(),
            usage: Usage::default(),
            state: State::Ready,
        }
    }

    /// With variables that the template is given, a JSON object as text.
    #[must_use]
    pub fn with_variables(self, variables: Option<String>) -> Self {
        Self { variables, ..self }
    }

    /// With what was used before it was begun again.
    #[must_use]
    pub fn having_used(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }

    /// What it took so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The tools, as the template shows them.
    #[must_use]
    pub fn tools(&self) -> &[chat::Tool] {
        &self.tools
    }

    /// Who takes the turns.
    pub fn speaker(&mut self) -> &mut S {
        &mut self.speaker
    }

    /// Has the model read these, and what its turn begins with.
    ///
    /// # Errors
    /// What the session fails with.
    pub fn read(&mut self, tokens: Vec<Token>) -> Result<Read, S::Error> {
        let opening = self.speaker.opening(&behind::end(&self.model, &tokens)?)?;
        let opening = match opening.as_str() {
            "" => Vec::new(),
            text => self.model.encode_template(text).map_err(nala_sdk::Error::from)?,
        };
        let info = self.session.prefill(&[tokens.as_slice(), &opening].concat()).map_err(nala_sdk::Error::from)?;
        self.usage.computed_tokens += info.computed;
        self.usage.cached_tokens += info.cached;
        Ok(Read { tokens, opening, cached: info.cached, computed: info.computed })
    }

    /// Waits for the next step. None: there is none.
    ///
    /// # Errors
    /// What the speaker, the session and the template fail with. There is no step behind
    /// that.
    pub fn step(&mut self) -> Result<Option<Step<S::Said>>, S::Error> {
        loop {
            // Where it fails, it is over.
            let (state, step) = match std::mem::replace(&mut self.state, State::Over) {
                State::Ready => self.begin()?,
                State::Speaking => match self.speaker.say()? {
                    Some(said) => (State::Speaking, Some(Step::Said(said))),
                    None => (self.end()?, None),
                },
                State::Telling { mut untold, wanted, then } => match untold.pop_front() {
                    Some((id, tool, arguments)) => {
                        let call = Step::Call { turn: self.usage.turns, id, tool, arguments };
                        (State::Telling { untold, wanted, then }, Some(call))
                    }
                    None => self.call(wanted, then),
                },
                State::Calling { mut calls, then } => match (calls.hear(), then) {
                    (Some(Heard::Progress(id, progress)), _) => {
                        (State::Calling { calls, then }, Some(Step::Progress(id, progress)))
                    }
                    (Some(Heard::Returned(returned)), _) => {
                        (State::Calling { calls, then }, Some(Step::Returned(returned)))
                    }
                    (None, Then::GoOn) => (State::Reading(calls.said), None),
                    (None, Then::CallsAndEnd | Then::End) => (State::Over, Some(Step::Over(Over::Said))),
                },
                State::Reading(said) => {
                    let behind = behind::tokens(&self.model, &self.tools, &said, self.variables.as_deref())?;
                    (State::Ready, Some(Step::Read(self.read(behind)?)))
                }
                State::Over => return Ok(None),
            };
            self.state = state;
            if step.is_some() {
                return Ok(step);
            }
        }
    }

    /// Begins a turn, if there may be one.
    fn begin(&mut self) -> Result<Next<S::Said>, S::Error> {
        let left = self.budget.tokens.saturating_sub(self.usage.written_tokens);
        let over = match () {
            () if self.usage.turns >= self.budget.turns => Over::Turns,
            () if left == 0 => Over::Tokens,
            () if self.begun.elapsed() >= self.budget.time => Over::Time,
            () => {
                self.speaker.begin(&self.session, left)?;
                return Ok((State::Speaking, None));
            }
        };
        Ok((State::Over, Some(Step::Over(over))))
    }

    /// Ends a turn.
    fn end(&mut self) -> Result<State, S::Error> {
        let turn = self.speaker.end()?;
        self.usage.turns += 1;
        self.usage.written_tokens = self.usage.written_tokens.saturating_add(turn.written);
        let mut untold = VecDeque::new();
        for wanted in &turn.wanted {
            if let Wanted::Call { tool, arguments } = wanted {
                self.usage.calls += 1;
                untold.push_back((self.usage.calls, tool.clone(), arguments.clone()));
            }
        }
        Ok(State::Telling { untold, wanted: turn.wanted, then: turn.then })
    }

    /// Makes the calls of a turn, unless it is the end.
    fn call(&self, wanted: Vec<Wanted>, then: Then) -> Next<S::Said> {
        if then == Then::End {
            return (State::Over, Some(Step::Over(Over::Said)));
        }
        let made = wanted.iter().filter(|wanted| matches!(wanted, Wanted::Call { .. })).count();
        let first = self.usage.calls.saturating_sub(u32::try_from(made).unwrap_or(u32::MAX)).saturating_add(1);
        (State::Calling { calls: Calls::start(wanted, first, self.budget.result_bytes), then }, None)
    }
}
