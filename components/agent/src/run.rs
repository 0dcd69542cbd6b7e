//! A run: turn by turn until there is an answer, or a budget is used up.

use std::time::{Duration, Instant};

use chat_format::Format;
use nala_sdk::Error;
use nala_sdk::chat::{self, Message, Template};
use nala_sdk::llm::{Model, Session, Token};
use serde::Serialize;
use serde_json::Value;

use crate::behind;
use crate::calls::{self, Call};
use crate::job::{First, Job};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// What a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
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
    turns: Turns,
    /// The tool that the next turn calls, where the model does not choose.
    next: Option<First>,
    usage: Usage,
}

impl Run {
    /// Begins. What cannot be done is told before anything is.
    pub(crate) fn begin(job: Job, settings: &Settings) -> Result<Self, Error> {
        let begun = Instant::now();
        let model = Model::open_default()?;
        let tools = Tools::granted(job.answer_schema.as_ref())?;
        tools.check(&job.call_first)?;
        let template = Template::of(&model);
        let format = Format::of_template(&template.source);
        let pieces = chat::render(&chat::Request {
            template,
            messages: vec![Message::system(settings.instructions.as_str()), Message::user(job.input.as_str())],
            tools: tools.shown(),
            add_generation_prompt: true,
            extra: None,
        })?;
        let prompt = chat::encode(&model, &pieces)?;
        let max_steps = job.max_steps.map_or(settings.max_steps, |own| own.min(settings.max_steps));
        let next = next(&job, 0, max_steps);
        let turns = Turns::new(&model, format, &tools, next.as_ref())?;
        let mut run = Self {
            begun,
            time: settings.time,
            max_steps,
            next,
            max_tokens: job.max_tokens.map_or(settings.max_tokens, |own| own.min(settings.max_tokens)),
            result_bytes: settings.result_bytes,
            session: Session::open(&model)?,
            shown: tools.shown(),
            usage: Usage::default(),
            job,
            model,
            format,
            tools,
            turns,
        };
        run.read(&prompt)?;
        Ok(run)
    }

    /// Goes on to its end, and tells each step.
    pub(crate) fn go(mut self, tell: &mut dyn FnMut(&Step) -> Result<(), Error>) -> Result<End, Error> {
        loop {
            let left = self.max_tokens.saturating_sub(self.usage.written_tokens);
            if let Some(reason) = self.over(left) {
                return Ok(self.end(Value::Null, reason));
            }
            let turn = self.turns.take(&self.session, &self.tools, left)?;
            self.usage.turns += 1;
            self.usage.written_tokens += turn.tokens;
            let mut calls = Vec::new();
            for (tool, arguments) in turn.calls {
                if tool == ANSWER {
                    let answer = answer_of(&arguments, self.job.answer_schema.is_some());
                    return Ok(self.end(answer, Reason::Answered));
                }
                self.usage.calls += 1;
                let id = self.usage.calls;
                tell(&Step::Call { turn: self.usage.turns, id, tool: tool.clone(), arguments: arguments.clone() })?;
                calls.push(Call { id, tool, arguments });
            }
            if turn.is_cut {
                return Ok(self.end(Value::Null, Reason::Tokens));
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
        self.usage.computed_tokens += info.computed;
        self.usage.cached_tokens += info.cached;
        Ok(())
    }

    fn end(&self, answer: Value, reason: Reason) -> End {
        End { answer, reason, usage: self.usage }
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
