//! The turns of the model: each is a call of a tool, or several, or the answer.

use std::convert::Infallible;
use std::rc::Rc;

use agent_loop::{First, Speaker, Then, Turn, Wanted};
use chat_format::{Choice, Ended, Event, Forced, Format, Parallel, Parser, force};
use nala_sdk::Error;
use nala_sdk::llm::{Finish, GenerateOptions, Grammar, Model, Session, Token};
use serde_json::Value;

use crate::job::Job;
use crate::tools::{ANSWER, Tools, answer_of};

/// As many tokens as may be asked to be seen.
const MOST_MARKERS: usize = 64;

/// What the model is told where it called nothing.
const NO_CALL: &str = "Error: this was no call; call a tool, or final_answer";

/// Has the model take turns.
pub(crate) struct Turns {
    model: Rc<Model>,
    format: Format,
    tools: Tools,
    job: Job,
    max_steps: u32,
    /// How many turns there were.
    taken: u32,
    /// The tool that the next turn calls, where the model does not choose.
    next: Option<First>,
    way: Way,
    /// Control tokens that have to be seen to read what the model writes.
    markers: Vec<Token>,
    written: Written,
    /// How the last turn ended the run, if it did.
    pub(crate) end: Option<Ending>,
}

/// What a turn is held to.
struct Way {
    forced: Forced,
    grammar: Grammar,
}

/// What the model wrote in a turn.
#[derive(Default)]
struct Written {
    /// The names of tools with their arguments, in its order.
    calls: Vec<(String, String)>,
    tokens: Vec<Token>,
    /// Whether it was cut off.
    is_cut: bool,
}

/// How a turn ended a run.
pub(crate) enum Ending {
    /// With this answer.
    Answer(Value),
    /// It was cut off.
    Cut,
}

impl Turns {
    /// The turns of a run in which so many were taken before.
    pub(crate) fn new(
        model: Rc<Model>,
        format: Format,
        (tools, job): (Tools, Job),
        taken: u32,
        max_steps: u32,
    ) -> Result<Self, Error> {
        let next = next(&job, taken, max_steps);
        let way = Way::of(&model, format, &tools, next.as_ref())?;
        let tokens = format.markers().iter().filter_map(|marker| model.token_of(marker));
        let markers = tokens.take(MOST_MARKERS).collect();
        let written = Written::default();
        Ok(Self { model, format, tools, job, max_steps, taken, next, way, markers, written, end: None })
    }

    /// The tokens that were written in the last turn.
    pub(crate) fn take_tokens(&mut self) -> Vec<Token> {
        std::mem::take(&mut self.written.tokens)
    }

    /// What is wanted in the last turn, and what comes behind it.
    fn wanted(&mut self) -> (Vec<Wanted>, Then) {
        let mut wanted = Vec::new();
        for (tool, arguments) in std::mem::take(&mut self.written.calls) {
            if tool == ANSWER {
                let answer = answer_of(&arguments, self.job.answer_schema.is_some());
                self.end = Some(Ending::Answer(answer));
                return (wanted, Then::End);
            }
            wanted.push(Wanted::Call { tool, arguments });
        }
        if self.written.is_cut {
            self.end = Some(Ending::Cut);
            return (wanted, Then::End);
        }
        if wanted.is_empty() {
            wanted.push(Wanted::Refused(NO_CALL.to_owned()));
        }
        (wanted, Then::GoOn)
    }
}

impl Speaker for Turns {
    /// Nobody reads along.
    type Said = Infallible;
    type Error = Error;

    fn opening(&mut self, _before: &str) -> Result<String, Error> {
        let next = next(&self.job, self.taken, self.max_steps);
        if next != self.next {
            self.way = Way::of(&self.model, self.format, &self.tools, next.as_ref())?;
            self.next = next;
        }
        Ok(self.way.forced.prefix.clone())
    }

    fn begin(&mut self, session: &Rc<Session>, most: u32) -> Result<(), Error> {
        let options = GenerateOptions {
            // All of a turn may come at once.
            flush_tokens: most,
            flush_ms: 60_000,
            shown_tokens: self.markers.clone(),
            ..GenerateOptions::greedy(most)
        };
        session.constrain(&self.way.grammar)?;
        let mut parser = Parser::new(self.format, &self.tools.0, &self.way.forced.prefix);
        let (mut events, mut tokens, mut is_cut) = (Vec::new(), Vec::new(), false);
        for chunk in session.generate(&options)? {
            let chunk = chunk?;
            parser.push(&chunk.text, &mut events);
            tokens.extend(chunk.tokens.iter().map(|sampled| sampled.id));
            is_cut |= matches!(chunk.finish, Some(Finish::Length | Finish::ContextFull));
        }
        session.unconstrain()?;
        parser.finish(if is_cut { Ended::Cut } else { Ended::Complete }, &mut events);
        self.written = Written { calls: calls(&events), tokens, is_cut };
        Ok(())
    }

    fn say(&mut self) -> Result<Option<Infallible>, Error> {
        Ok(None)
    }

    fn end(&mut self) -> Result<Turn, Error> {
        self.taken += 1;
        let written = u32::try_from(self.written.tokens.len()).unwrap_or(u32::MAX);
        let (wanted, then) = self.wanted();
        Ok(Turn { wanted, written, then })
    }
}

impl Way {
    /// A turn is a call, or several, of these tools; or one of the tool that is `first`.
    fn of(model: &Model, format: Format, tools: &Tools, first: Option<&First>) -> Result<Self, Error> {
        let choice = first.map_or(Choice::Required, |first| Choice::Named(first.tool().to_owned()));
        let tools = first.map_or_else(|| tools.0.clone(), |first| first.narrowed(&tools.0));
        let parallel = match (format, first) {
            // Who was not trained on calls finds no end of them.
            (Format::Generic, _) | (_, Some(_)) => Parallel::Single,
            _ => Parallel::Allowed,
        };
        let wrong = |why: String| Error::Status(500, why);
        let forced = force(format, &tools, &choice, parallel);
        let forced = forced.map_err(|error| wrong(error.to_string()))?;
        let forced = forced.ok_or_else(|| wrong("this model cannot be made to call tools".to_owned()))?;
        let grammar = Grammar::lark(model, &forced.grammar)?;
        Ok(Self { forced, grammar })
    }
}

/// The tool that is called after so many turns, where the model does not choose: those that
/// are to be called first, and in the last turn the one that answers.
fn next(job: &Job, turns: u32, max_steps: u32) -> Option<First> {
    let is_last = turns.saturating_add(1) >= max_steps;
    let answer = || is_last.then(|| First::Tool(ANSWER.to_owned()));
    job.call_first.get(turns as usize).cloned().or_else(answer)
}

/// The calls that were written to their end.
fn calls(events: &[Event]) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    let mut open: Option<(String, String)> = None;
    for event in events {
        match event {
            Event::CallStart { name, .. } => open = Some((name.clone(), String::new())),
            Event::CallArguments { text, .. } => {
                if let Some((_, arguments)) = &mut open {
                    arguments.push_str(text);
                }
            }
            Event::CallEnd { .. } => calls.extend(open.take()),
            Event::Malformed { .. } => open = None,
            Event::Content(_) | Event::Reasoning(_) => {}
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_that_were_written_to_their_end() {
        let start = |index, name: &str| Event::CallStart { index, name: name.to_owned(), id: None };
        let more = |index, text: &str| Event::CallArguments { index, text: text.to_owned() };
        let events = [
            Event::Content("well".to_owned()),
            start(0, "a"),
            more(0, "{\"n\""),
            more(0, ": 1}"),
            Event::CallEnd { index: 0 },
            start(1, "b"),
            Event::Malformed { index: Some(1), text: "x".to_owned(), reason: "no JSON".to_owned() },
            start(2, "c"),
            more(2, "{"),
        ];
        assert_eq!(calls(&events), [("a".to_owned(), "{\"n\": 1}".to_owned())]);
    }

    #[test]
    fn the_model_chooses_between_what_is_called_first_and_the_answer_at_last() {
        let job = Job::read(br#"{"input": "a", "call_first": ["b"]}"#).unwrap();
        let names = [0, 1, 2].map(|turns| next(&job, turns, 3).map(|first| first.tool().to_owned()));
        assert_eq!(names, [Some("b".to_owned()), None, Some(ANSWER.to_owned())]);
        assert_eq!(next(&job, 0, 1).unwrap().tool(), "b", "it was asked for");
    }
}
