//! A run: turn by turn until there is an answer, or a budget is used up.

use std::time::{Duration, Instant};

use chat_format::Format;
use nala_sdk::Error;
use nala_sdk::chat::{self, Message, Template};
use nala_sdk::llm::{Model, Session, Token};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::behind;
use crate::calls::{self, Call};
use crate::job::{Asked, First, Job, Resume};
use crate::record::{Over, Record, RunId};
use crate::settings::Settings;
use crate::step::Step;
use crate::tools::{ANSWER, Tools, answer_of};
use crate::turn::Turns;

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

/// What a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Turns of the model.
    turns: u32,
    /// Calls of tools.
    calls: u32,
    /// Tokens of the prompt, and of what the tools said, that were computed.
    computed_tokens: u32,
    /// Those of them that were known.
    cached_tokens: u32,
    /// Tokens that the model wrote.
    written_tokens: u32,
}

/// A run that has begun: the model has read what it is to do.
pub(crate) struct Run {
    job: Job,
    begun: Instant,
    time: Duration,
    max_steps: u32,
    max_tokens: u32,
    result_bytes: usize,
    model: Model,
    format: Format,
    tools: Tools,
    shown: Vec<chat::Tool>,
    session: Session,
    /// All that the session holds, but for what the next turn begins with.
    tokens: Vec<Token>,
    /// That beginning.
    prefix: Vec<Token>,
    /// Where it is kept, if it is.
    kept: Option<RunId>,
    turns: Turns,
    /// How it ended, if it did before.
    over: Option<Over>,
    /// The tool that the next turn calls, where the model does not choose.
    next: Option<First>,
    usage: Usage,
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
        run.read(&prompt)?;
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
            run.read(&tokens)?;
        }
        Ok(run)
    }

    fn new(job: Job, usage: Usage, kept: Option<RunId>, settings: &Settings) -> Result<Self, Error> {
        let begun = Instant::now();
        let model = Model::open_default()?;
        let tools = Tools::granted(job.answer_schema.as_ref())?;
        tools.check(&job.call_first)?;
        let format = Format::of_template(&Template::of(&model).source);
        let max_steps = job.max_steps.map_or(settings.max_steps, |own| own.min(settings.max_steps));
        let next = next(&job, usage.turns, max_steps);
        let turns = Turns::new(&model, format, &tools, next.as_ref())?;
        Ok(Self {
            begun,
            time: settings.time,
            max_steps,
            next,
            max_tokens: job.max_tokens.map_or(settings.max_tokens, |own| own.min(settings.max_tokens)),
            result_bytes: settings.result_bytes,
            session: Session::open(&model)?,
            tokens: Vec::new(),
            prefix: Vec::new(),
            kept,
            over: None,
            shown: tools.shown(),
            usage,
            job,
            model,
            format,
            tools,
            turns,
        })
    }

    /// What the model reads first.
    fn prompt(&self, settings: &Settings) -> Result<Vec<Token>, Error> {
        let pieces = chat::render(&chat::Request {
            template: Template::of(&self.model),
            messages: vec![Message::system(settings.instructions.as_str()), Message::user(self.job.input.as_str())],
            tools: self.shown.clone(),
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
            return Ok(End { answer, reason, usage: self.usage });
        }
        loop {
            let left = self.max_tokens.saturating_sub(self.usage.written_tokens);
            if let Some(reason) = self.over(left) {
                return self.end(Value::Null, reason);
            }
            let turn = self.turns.take(&self.session, &self.tools, left)?;
            self.usage.turns += 1;
            self.usage.written_tokens += u32::try_from(turn.tokens.len()).unwrap_or(u32::MAX);
            self.tokens.append(&mut self.prefix);
            self.tokens.extend(turn.tokens);
            let mut calls = Vec::new();
            for (tool, arguments) in turn.calls {
                if tool == ANSWER {
                    let answer = answer_of(&arguments, self.job.answer_schema.is_some());
                    return self.end(answer, Reason::Answered);
                }
                self.usage.calls += 1;
                let id = self.usage.calls;
                tell(&Step::Call { turn: self.usage.turns, id, tool: tool.clone(), arguments: arguments.clone() })?;
                calls.push(Call { id, tool, arguments });
            }
            if turn.is_cut {
                return self.end(Value::Null, Reason::Tokens);
            }
            let said = match calls.is_empty() {
                true => vec!["Error: this was no call; call a tool, or final_answer".to_owned()],
                false => calls::make(&calls, self.result_bytes, tell)?,
            };
            let next = next(&self.job, self.usage.turns, self.max_steps);
            if next != self.next {
                self.turns = Turns::new(&self.model, self.format, &self.tools, next.as_ref())?;
                self.next = next;
            }
            self.read(&behind::tokens(&self.model, &self.shown, &said)?)?;
            self.keep(None);
        }
    }

    /// Why it goes no further, if it does not.
    fn over(&self, left: u32) -> Option<Reason> {
        match () {
            () if self.usage.turns >= self.max_steps => Some(Reason::Steps),
            () if left == 0 => Some(Reason::Tokens),
            () if self.begun.elapsed() >= self.time => Some(Reason::Time),
            () => None,
        }
    }

    /// Has the model read these, and what its turn begins with.
    fn read(&mut self, tokens: &[Token]) -> Result<(), Error> {
        let prefix = self.model.encode_template(self.turns.prefix())?;
        let info = self.session.prefill(&[tokens, &prefix].concat())?;
        self.tokens.extend_from_slice(tokens);
        self.prefix = prefix;
        self.usage.computed_tokens += info.computed;
        self.usage.cached_tokens += info.cached;
        Ok(())
    }

    fn end(&mut self, answer: Value, reason: Reason) -> Result<End, Error> {
        // With more time it can go on.
        if reason != Reason::Time {
            self.keep(Some(Over { answer: answer.clone(), reason }));
        }
        Ok(End { answer, reason, usage: self.usage })
    }

    /// Keeps what it is now, so that it can go on from here. One that cannot be kept goes on
    /// all the same, and says so in the log.
    fn keep(&mut self, end: Option<Over>) {
        let Some(kept) = &self.kept else { return };
        let tokens = if end.is_some() { &[] } else { self.tokens.as_slice() };
        let record = Record::new(self.model.info().name, self.job.clone(), tokens, self.usage, end);
        if let Err(error) = kept.keep(&record) {
            eprintln!("{error}; it goes on without being kept");
            self.kept = None;
        }
    }
}

/// The tool that is called after so many turns, where the model does not choose: those that
/// are to be called first, and in the last turn the one that answers.
fn next(job: &Job, turns: u32, max_steps: u32) -> Option<First> {
    let is_last = turns.saturating_add(1) >= max_steps;
    let answer = || is_last.then(|| First::Tool(ANSWER.to_owned()));
    job.call_first.get(turns as usize).cloned().or_else(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_chooses_between_what_is_called_first_and_the_answer_at_last() {
        let job = Job::read(br#"{"input": "a", "call_first": ["b"]}"#).unwrap();
        let names = [0, 1, 2].map(|turns| next(&job, turns, 3).map(|first| first.tool().to_owned()));
        assert_eq!(names, [Some("b".to_owned()), None, Some(ANSWER.to_owned())]);
        assert_eq!(next(&job, 0, 1).unwrap().tool(), "b", "it was asked for");
    }
}
