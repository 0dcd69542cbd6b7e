//! How the model speaks where the client hears of it.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use agent_loop::{First, Speaker, Then, Turn as Taken};
use chat_format::{Choice, Forced, Format, Parallel, Tool, force};
use nala_sdk::llm::{self, GenerateOptions, Grammar, Info, Model, Session};

use super::calls::Calls;
use super::{Failure, MOST_TURNS};
use crate::ask::{Ask, Prompt};
use crate::begin::prompt::Written;
use crate::begin::said::{Answering, Said};
use crate::begin::strict::Plan;
use crate::begin::{output, run, time_left};
use crate::error::ApiError;
use crate::turn::{End, Turn, broke_off};

/// What a turn is held to, and how it is read.
pub(super) struct Way {
    forced: Option<Forced>,
    grammar: Option<Grammar>,
    strict: Option<Rc<Plan>>,
    tools: Vec<Tool>,
}

impl Way {
    pub(super) fn of(model: &Rc<Model>, ask: &Ask, written: &Written) -> Result<Self, ApiError> {
        Ok(Self {
            forced: written.forced.clone(),
            grammar: output::grammar(model, ask, written)?,
            strict: output::strict(model, ask, written)?.map(Rc::new),
            tools: written.tools.clone(),
        })
    }

    /// A call of this tool. What it begins with is the same whatever its arguments are.
    pub(super) fn first(model: &Model, written: &Written, first: &First) -> Result<Self, ApiError> {
        let tools = first.narrowed(&written.tools);
        let choice = Choice::Named(first.tool().to_owned());
        let format = written.format.unwrap_or(Format::Generic);
        let forced = force(format, &tools, &choice, Parallel::Single)
            .map_err(|error| ApiError::invalid("call_first", format!("'call_first' cannot be followed: {error}")))?;
        let grammar = forced.as_ref().map(|forced| Grammar::lark(model, &forced.grammar)).transpose();
        let grammar = grammar.map_err(output::refused("call_first"))?;
        Ok(Self { forced, grammar, strict: None, tools: written.tools.clone() })
    }

    /// Behind a call that was forced the model calls what it likes. Where its notation leaves
    /// no way to, because the answer has to be of a form, it answers.
    pub(super) fn behind(model: &Rc<Model>, ask: &mut Ask, written: &Written) -> Option<Self> {
        let free = Written { forced: None, ..written.clone() };
        choose(ask, Choice::Auto);
        if let Ok(way) = Self::of(model, ask, &free) {
            return Some(way);
        }
        choose(ask, Choice::None);
        Self::of(model, ask, &Written { tools: Vec::new(), ..free }).ok()
    }
}

fn choose(ask: &mut Ask, choice: Choice) {
    if let Prompt::Conversation(conversation) = &mut ask.prompt {
        conversation.choice = choice;
    }
}

/// Has the model take turns, of which the client hears.
pub(super) struct Voice {
    pub(super) info: Info,
    pub(super) format: Option<Format>,
    /// Whether the answer has to be of a form.
    pub(super) formed: bool,
    /// What turns are held to: one each, and the last one all that come then.
    pub(super) ways: VecDeque<Way>,
    /// How the next turn is read.
    pub(super) answering: Answering,
    pub(super) options: GenerateOptions,
    /// When the request came.
    pub(super) asked: Instant,
    pub(super) session: Option<Rc<Session>>,
    pub(super) said: Option<Said>,
    pub(super) calls: Calls,
    /// How many turns were begun.
    pub(super) taken: u32,
    /// How many tokens were written in this one.
    pub(super) written: u32,
    /// How the last turn ended.
    pub(super) end: Option<End>,
}

impl Speaker for Voice {
    type Said = Turn;
    type Error = Failure;

    fn opening(&mut self, before: &str) -> Result<String, Failure> {
        if self.taken == 0 {
            return Ok(String::new());
        }
        // What may not be called is not called first either.
        let passed = if self.calls.is_used_up() { self.ways.len().saturating_sub(1) } else { 1 };
        self.ways.drain(..passed.min(self.ways.len().saturating_sub(1)));
        let (forced, tools) = match self.ways.front() {
            Some(way) => (way.forced.as_ref(), way.tools.clone()),
            None => (None, Vec::new()),
        };
        // What follows a grammar from its first token on has no room for a thought.
        let mut opening = match self.format {
            Some(format) if self.formed || forced.is_some() => format.end_of_thought(before).unwrap_or_default(),
            _ => "",
        }
        .to_owned();
        opening.push_str(forced.map_or("", |forced| &forced.prefix));
        let tail = format!("{before}{opening}");
        self.answering = Answering { format: self.format, tools, tail };
        Ok(opening)
    }

    fn begin(&mut self, session: &Rc<Session>, most: u32) -> Result<(), Failure> {
        let room = self.info.ctx_max.saturating_sub(session.len());
        if room == 0 {
            return Err(llm::Error::ContextFull(0).into());
        }
        let way = self.ways.front();
        if let Some(grammar) = way.and_then(|way| way.grammar.as_ref()) {
            session.constrain(grammar)?;
        }
        let options = GenerateOptions {
            max_new: most.min(room),
            deadline_ms: Some(time_left(self.asked.elapsed(), llm::limits().wall_us)),
            ..self.options.clone()
        };
        let begun = run(session, options, way.and_then(|way| way.strict.as_ref()))?;
        self.said = Some(Said::begin(vec![begun], self.answering.clone())?);
        self.session = Some(Rc::clone(session));
        self.taken += 1;
        (self.written, self.end) = (0, None);
        self.calls.turn(self.taken >= MOST_TURNS);
        Ok(())
    }

    fn say(&mut self) -> Result<Option<Turn>, Failure> {
        if self.end.is_some() {
            return Ok(None);
        }
        let (_, turn) = self.said.as_mut().and_then(Iterator::next).ok_or_else(broke_off)?;
        let mut turn = turn?;
        self.written = self.written.saturating_add(u32::try_from(turn.tokens.len()).unwrap_or(u32::MAX));
        self.end = turn.end.take();
        turn.events = self.calls.hear(std::mem::take(&mut turn.events));
        Ok(Some(turn))
    }

    fn end(&mut self) -> Result<Taken, Failure> {
        // A session has one run at a time.
        self.said = None;
        if let Some(session) = &self.session {
            // A call that was watched for may have brought one.
            session.unconstrain()?;
        }
        let is_whole = self.end == Some(End::Natural);
        let (wanted, then) = if is_whole { self.calls.wanted() } else { (Vec::new(), Then::End) };
        Ok(Taken { wanted, written: self.written, then })
    }
}
