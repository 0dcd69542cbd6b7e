//! A run: turn by turn until there is an answer, or a budget is used up.

use std::rc::Rc;

use agent_loop::{Budget, Loop, Over as Stopped, Read, Step as Next, Usage};
use chat_format::Format;
use nala_sdk::Error;
use nala_sdk::chat::{self, Message, Template};
use nala_sdk::llm::{Model, Session, Token};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::{Asked, Job, Resume};
use crate::record::{Over, Record, RunId};
use crate::settings::Settings;
use crate::step::Step;
use crate::tools::Tools;
use crate::turn::{Ending, Turns};

/// How a run ended.
pub(crate) struct End {
    /// Null where it came to none.
    pub(crate) answer: Value,
    pub(crate) reason: Reason,
    pub(crate) usage: Usage,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// With its answer.
    Answered,
    /// There were as many turns as there may be.
    Steps,
    /// As many tokens were written as may be, or there is no more room for them.
    Tokens,
    /// The time was up.
    Time,
}

impl Reason {
    /// As it is told.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Steps => "steps",
            Self::Tokens => "tokens",
            Self::Time => "time",
        }
    }
}

/// A run that has begun: the model has read what it is to do.
pub(crate) struct Run {
    job: Job,
    model: Rc<Model>,
    steps: Loop<Turns>,
    /// All that the session holds, but for what the next turn begins with.
    tokens: Vec<Token>,
    /// That beginning.
    opening: Vec<Token>,
    /// Where it is kept, if it is.
    kept: Option<RunId>,
    /// How it ended, if it did before.
    over: Option<Over>,
}

impl Run {
    /// Begins, or begins again where it was. What cannot be done is told before anything is.
    pub(crate) fn begin(asked: Asked, settings: &Settings) -> Result<Self, Error> {
        match asked {
            Asked::New(job) => Self::first(job, RunId::new(), settings),
            Asked::Resume(resume) => Self::again(&resume, settings),
        }
    }

    /// One that nobody can have go on: it is told no name.
    pub(crate) fn unnamed(job: Job, settings: &Settings) -> Result<Self, Error> {
        Self::first(job, None, settings)
    }

    fn first(job: Job, kept: Option<RunId>, settings: &Settings) -> Result<Self, Error> {
        let mut run = Self::new(job, Usage::default(), kept, settings)?;
        let prompt = run.prompt(settings)?;
        let read = run.steps.read(prompt)?;
        run.hold(read);
        run.keep(None);
        Ok(run)
    }

    fn again(resume: &Resume, settings: &Settings) -> Result<Self, Error> {
        let kept = RunId::read(&resume.resume)?;
        let record = kept.load()?;
        let tokens = record.tokens();
        let Record { model, job, usage, end, .. } = record;
        let mut run = Self::new(job, usage, Some(kept), settings)?;
        let name = run.model.info().name;
        if name != model {
            return Err(Error::Status(409, format!("the run was begun with the model {model}, and this is {name}")));
        }
        run.over = end;
        if run.over.is_none() {
            let read = run.steps.read(tokens)?;
            run.hold(read);
        }
        Ok(run)
    }

    fn new(job: Job, usage: Usage, kept: Option<RunId>, settings: &Settings) -> Result<Self, Error> {
        let model = Rc::new(Model::open_default()?);
        let tools = Tools::granted(job.answer_schema.as_ref())?;
        tools.check(&job.call_first)?;
        let shown = tools.shown();
        let format = Format::of_template(&Template::of(&model).source);
        let budget = Budget {
            turns: job.max_steps.map_or(settings.max_steps, |own| own.min(settings.max_steps)),
            tokens: job.max_tokens.map_or(settings.max_tokens, |own| own.min(settings.max_tokens)),
            time: settings.time,
            result_bytes: settings.result_bytes,
        };
        let turns = Turns::new(Rc::clone(&model), format, (tools, job.clone()), usage.turns, budget.turns)?;
        let session = Session::open(&model)?;
        let steps = Loop::new(turns, Rc::clone(&model), session, shown, budget).having_used(usage);
        Ok(Self { job, model, steps, tokens: Vec::new(), opening: Vec::new(), kept, over: None })
    }

    /// What the model reads first.
    fn prompt(&self, settings: &Settings) -> Result<Vec<Token>, Error> {
        let pieces = chat::render(&chat::Request {
            template: Template::of(&self.model),
            messages: vec![Message::system(settings.instructions.as_str()), Message::user(self.job.input.as_str())],
            tools: self.steps.tools().to_vec(),
            add_generation_prompt: true,
            extra: None,
        })?;
        Ok(chat::encode(&self.model, &pieces)?)
    }

    /// What the run is called, if it is kept.
    pub(crate) fn id(&self) -> Option<&str> {
        self.kept.as_ref().map(RunId::as_str)
    }

    /// Goes on to its end, and tells each step.
    pub(crate) fn go(mut self, tell: &mut dyn FnMut(&Step) -> Result<(), Error>) -> Result<End, Error> {
        if let Some(Over { answer, reason }) = self.over.take() {
            return Ok(End { answer, reason, usage: self.steps.usage() });
        }
        while let Some(next) = self.steps.step()? {
            match next {
                Next::Said(nothing) => match nothing {},
                Next::Call { turn, id, tool, arguments } => tell(&Step::Call { turn, id, tool, arguments })?,
                Next::Progress(id, progress) => tell(&Step::progress(id, progress))?,
                Next::Returned(returned) => tell(&Step::result(returned))?,
                Next::Read(read) => {
                    self.hold(read);
                    self.keep(None);
                }
                Next::Over(Stopped::Said) => break,
                Next::Over(Stopped::Turns) => return Ok(self.end(Value::Null, Reason::Steps)),
                Next::Over(Stopped::Tokens) => return Ok(self.end(Value::Null, Reason::Tokens)),
                Next::Over(Stopped::Time) => return Ok(self.end(Value::Null, Reason::Time)),
            }
        }
        let (answer, reason) = match self.steps.speaker().end.take() {
            Some(Ending::Answer(answer)) => (answer, Reason::Answered),
            Some(Ending::Cut) | None => (Value::Null, Reason::Tokens),
        };
        Ok(self.end(answer, reason))
    }

    /// Notes what the session holds after the model wrote a turn and read these.
    fn hold(&mut self, read: Read) {
        self.tokens.append(&mut self.opening);
        self.tokens.extend(self.steps.speaker().take_tokens());
        self.tokens.extend(read.tokens);
        self.opening = read.opening;
    }

    fn end(&mut self, answer: Value, reason: Reason) -> End {
        // With more time it can go on.
        if reason != Reason::Time {
            self.keep(Some(Over { answer: answer.clone(), reason }));
        }
        End { answer, reason, usage: self.steps.usage() }
    }

    /// Keeps what it is now, so that it can go on from here. One that cannot be kept goes on
    /// all the same, and says so in the log.
    fn keep(&mut self, end: Option<Over>) {
        let Some(kept) = &self.kept else { return };
        let tokens = if end.is_some() { &[] } else { self.tokens.as_slice() };
        let record = Record::new(self.model.info().name, self.job.clone(), tokens, self.steps.usage(), end);
        if let Err(error) = kept.keep(&record) {
            eprintln!("{error}; it goes on without being kept");
            self.kept = None;
        }
    }
}
