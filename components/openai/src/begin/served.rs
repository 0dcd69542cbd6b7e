//! Answers in which the model calls tools that are the server's: turn after turn in one
//! session, until it says something or calls a function of the client's.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use agent_loop::{Budget, First, Loop, Over, Speaker, Step, Then, Turn as Taken, Wanted};
use chat_format::{Choice, Event, Forced, Format, Parallel, Tool, force};
use nala_sdk::llm::{self, GenerateOptions, Grammar, Info, Model, PrefillInfo, Session};

use super::prompt::{self, Written};
use super::said::{Answering, Said};
use super::strict::Plan;
use super::{Ready, length, now, options_of, output, ready, run, time_left, too_long};
use crate::ask::{Ask, Prompt};
use crate::error::ApiError;
use crate::parameters::output::Output;
use crate::turn::{Bytes, End, Heard, Running, Turn, broke_off};

/// The most turns of the model. In the last one it calls nothing.
const MOST_TURNS: u32 = 16;

/// The most bytes of what a tool says that the model reads.
const RESULT_BYTES: usize = 8192;

/// What the model is told of a call that is not made.
const NO_MORE: &str = "Error: this call was not made, since no further call may be; answer with what is known";

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

/// What a turn is held to, and how it is read.
struct Way {
    forced: Option<Forced>,
    grammar: Option<Grammar>,
    strict: Option<Rc<Plan>>,
    tools: Vec<Tool>,
}

impl Way {
    fn of(model: &Rc<Model>, ask: &Ask, written: &Written) -> Result<Self, ApiError> {
        Ok(Self {
            forced: written.forced.clone(),
            grammar: output::grammar(model, ask, written)?,
            strict: output::strict(model, ask, written)?.map(Rc::new),
            tools: written.tools.clone(),
        })
    }

    /// A call of this tool. What it begins with is the same whatever its arguments are.
    fn first(model: &Model, written: &Written, first: &First) -> Result<Self, ApiError> {
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
    fn behind(model: &Rc<Model>, ask: &mut Ask, written: &Written) -> Option<Self> {
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
struct Voice {
    info: Info,
    format: Option<Format>,
    /// Whether the answer has to be of a form.
    formed: bool,
    /// What turns are held to: one each, and the last one all that come then.
    ways: VecDeque<Way>,
    /// How the next turn is read.
    answering: Answering,
    options: GenerateOptions,
    /// When the request came.
    asked: Instant,
    session: Option<Rc<Session>>,
    said: Option<Said>,
    calls: Calls,
    /// How many turns were begun.
    taken: u32,
    /// How many tokens were written in this one.
    written: u32,
    /// How the last turn ended.
    end: Option<End>,
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

/// The calls of a turn.
struct Calls {
    served: Served,
    /// How many calls of the server's tools were ended in all turns.
    made: u32,
    /// What is wanted in this turn.
    wanted: Vec<Wanted>,
    /// The call that is being written.
    open: Option<Open>,
    /// Whether a function of the client's was called.
    hands_over: bool,
    /// Whether nothing more of the server's may be called.
    is_last: bool,
}

/// A call that is being written.
enum Open {
    /// Of a tool of the server's.
    Served { tool: String, arguments: String },
    /// Of one that may not be called any more.
    Unheard,
    /// Of a function of the client's.
    Others,
}

impl Calls {
    fn new(served: Served) -> Self {
        Self { served, made: 0, wanted: Vec::new(), open: None, hands_over: false, is_last: false }
    }

    /// Begins a turn.
    fn turn(&mut self, is_last: bool) {
        (self.open, self.hands_over) = (None, false);
        self.is_last = is_last || self.is_used_up();
        self.wanted.clear();
    }

    fn is_used_up(&self) -> bool {
        self.served.most_calls.is_some_and(|most| self.made >= most)
    }

    /// Notes the calls among these, and leaves out those that may not be made.
    fn hear(&mut self, events: Vec<Event>) -> Vec<Event> {
        events.into_iter().filter(|event| self.note(event)).collect()
    }

    /// Whether the client hears of it.
    fn note(&mut self, event: &Event) -> bool {
        match event {
            Event::CallStart { name, .. } => {
                self.open = Some(match self.served.names.contains(name) {
                    true if self.is_last || self.is_used_up() => Open::Unheard,
                    true => Open::Served { tool: name.clone(), arguments: String::new() },
                    false => Open::Others,
                });
            }
            Event::CallArguments { text, .. } => {
                if let Some(Open::Served { arguments, .. }) = &mut self.open {
                    arguments.push_str(text);
                }
            }
            Event::CallEnd { .. } => match self.open.take() {
                Some(Open::Served { tool, arguments }) => {
                    self.made += 1;
                    self.wanted.push(Wanted::Call { tool, arguments });
                }
                Some(Open::Unheard) => {
                    self.wanted.push(Wanted::Refused(NO_MORE.to_owned()));
                    return false;
                }
                Some(Open::Others) => self.hands_over = true,
                None => {}
            },
            Event::Malformed { .. } => return !matches!(self.open.take(), Some(Open::Unheard)),
            Event::Content(_) | Event::Reasoning(_) => {}
        }
        !matches!(self.open, Some(Open::Unheard))
    }

    /// What is wanted in a turn that is whole, and what comes behind it.
    fn wanted(&mut self) -> (Vec<Wanted>, Then) {
        let wanted = std::mem::take(&mut self.wanted);
        let then = match () {
            () if wanted.is_empty() || self.is_last => Then::End,
            // The client has to answer before the model can go on.
            () if self.hands_over => Then::CallsAndEnd,
            () => Then::GoOn,
        };
        (wanted, then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(most_calls: Option<u32>) -> Calls {
        let mut calls =
            Calls::new(Served { names: vec!["a".to_owned(), "b".to_owned()], first: Vec::new(), most_calls });
        calls.turn(false);
        calls
    }

    fn call(index: usize, name: &str) -> Vec<Event> {
        vec![
            Event::CallStart { index, name: name.to_owned(), id: None },
            Event::CallArguments { index, text: "{}".to_owned() },
            Event::CallEnd { index },
        ]
    }

    fn wanted(tool: &str) -> Wanted {
        Wanted::Call { tool: tool.to_owned(), arguments: "{}".to_owned() }
    }

    #[test]
    fn the_servers_calls_are_made_and_the_clients_end_the_turns() {
        let mut both = calls(None);
        assert_eq!(both.hear([call(0, "a"), call(1, "b")].concat()).len(), 6);
        assert_eq!(both.wanted(), (vec![wanted("a"), wanted("b")], Then::GoOn));

        let mut mixed = calls(None);
        mixed.hear([call(0, "a"), call(1, "mine")].concat());
        assert_eq!(mixed.wanted(), (vec![wanted("a")], Then::CallsAndEnd));
        mixed.turn(false);
        mixed.hear(call(0, "mine"));
        assert_eq!(mixed.wanted(), (vec![], Then::End));

        let mut said = calls(None);
        said.hear(vec![Event::Content("Hello.".to_owned())]);
        assert_eq!(said.wanted(), (vec![], Then::End));
    }

    #[test]
    fn calls_beyond_the_most_are_not_made_and_nobody_hears_of_them() {
        let mut calls = calls(Some(1));
        let heard = calls.hear([call(0, "a"), call(1, "b"), vec![Event::Content("x".to_owned())]].concat());
        assert_eq!(heard, [call(0, "a"), vec![Event::Content("x".to_owned())]].concat());
        assert_eq!(calls.wanted(), (vec![wanted("a"), Wanted::Refused(NO_MORE.to_owned())], Then::GoOn));
        // One turn more, to answer in. The client's functions can still be called.
        calls.turn(false);
        assert_eq!(calls.hear([call(0, "b"), call(1, "mine")].concat()), call(1, "mine"));
        assert_eq!(calls.wanted().1, Then::End);
    }

    #[test]
    fn what_began_as_a_call_and_is_none_is_not_made() {
        let mut calls = calls(None);
        let broken = Event::Malformed { index: Some(0), text: "}".to_owned(), reason: "no JSON".to_owned() };
        let mut events = call(0, "a");
        events.pop();
        events.push(broken);
        assert_eq!(calls.hear(events.clone()), events);
        assert_eq!(calls.wanted(), (vec![], Then::End));
        calls.turn(true);
        assert_eq!(calls.hear(events), []);
    }
}
