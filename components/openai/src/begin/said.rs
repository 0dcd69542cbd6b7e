//! What comes of generations, read.

use chat_format::{Ended, Event, Format, Parser, Tool};
use nala_sdk::llm::{Chunk, Error, Finish, Generation, Together};

use super::strict::{Seen, Watch};
use crate::error::ApiError;
use crate::turn::{End, Turn};

/// The turns of generations that have begun.
pub(super) struct Said {
    /// What was awaited already.
    first: Option<(usize, Turn)>,
    source: Source,
    /// One for each choice.
    choices: Vec<Choice>,
    answering: Answering,
}

/// What an answer is read by.
#[derive(Debug, Clone)]
pub(super) struct Answering {
    pub(super) format: Option<Format>,
    pub(super) tools: Vec<Tool>,
    /// The end of what is before it.
    pub(super) tail: String,
}

impl Answering {
    fn reader(&self) -> Reader {
        match self.format {
            None => Reader::Plain,
            Some(format) => Reader::Parsed(Parser::new(format, &self.tools, &self.tail)),
        }
    }
}

/// One choice.
struct Choice {
    reader: Reader,
    /// Looks out for calls that have to be held to their schemas.
    watch: Option<Watch>,
}

/// A run that has begun, and what looks out for its calls.
pub(super) struct Begun {
    pub(super) run: Generation,
    pub(super) watch: Option<Watch>,
}

impl Said {
    /// Waits for the first token, so that what fails up to it has a status.
    pub(super) fn begin(begun: Vec<Begun>, answering: Answering) -> Result<Self, ApiError> {
        let (mut runs, mut choices) = (Vec::new(), Vec::new());
        for Begun { run, watch } in begun {
            runs.push(run);
            choices.push(Choice { reader: answering.reader(), watch });
        }
        let mut said = Self { first: None, source: Source::of(runs), choices, answering };
        said.first = match said.next() {
            Some((index, turn)) => Some((index, turn?)),
            None => None,
        };
        Ok(said)
    }

    /// How many choices there are.
    pub(super) fn choices(&self) -> usize {
        self.choices.len()
    }

    fn read(&mut self, index: usize, chunk: Chunk) -> Result<Turn, ApiError> {
        let Some(choice) = self.choices.get_mut(index) else {
            return Err(Error::Backend("a choice that nobody asked for".to_owned()).into());
        };
        let Some(watch) = choice.watch.take() else { return choice.reader.read(chunk) };
        let unread = watch.is_unread();
        match watch.see(chunk, choice.reader.is_thinking())? {
            Seen::Same(chunk, watch) => {
                choice.watch = watch.map(|watch| *watch);
                choice.reader.read(chunk)
            }
            Seen::Call(chunk, call) => {
                if unread {
                    choice.reader = self.answering.reader();
                }
                // A session has one run at a time.
                self.source.end(index);
                self.source.put(index, call.go_on()?);
                choice.reader.read(chunk)
            }
        }
    }
}

impl Iterator for Said {
    type Item = (usize, Result<Turn, ApiError>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((index, turn)) = self.first.take() {
            return Some((index, Ok(turn)));
        }
        let (index, chunk) = self.source.next()?;
        Some((index, chunk.map_err(ApiError::from).and_then(|chunk| self.read(index, chunk))))
    }
}

/// Chunks, with the choice that each belongs to.
enum Source {
    /// One choice, which needs no looking for the one that has something. None: it
    /// has ended.
    One(Option<Generation>),
    Many(Together),
}

impl Source {
    fn of(mut generations: Vec<Generation>) -> Self {
        match (generations.pop(), generations.is_empty()) {
            (Some(only), true) => Self::One(Some(only)),
            (last, _) => {
                generations.extend(last);
                Self::Many(Together::new(generations))
            }
        }
    }

    /// Ends the run of a choice.
    fn end(&mut self, index: usize) {
        match self {
            Self::One(run) => *run = None,
            Self::Many(all) => all.remove(index),
        }
    }

    /// Follows another run of a choice.
    fn put(&mut self, index: usize, generation: Generation) {
        match self {
            Self::One(run) => *run = Some(generation),
            Self::Many(all) => all.put(index, generation),
        }
    }
}

impl Iterator for Source {
    type Item = (usize, Result<Chunk, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::One(run) => run.as_mut()?.next().map(|chunk| (0, chunk)),
            Self::Many(all) => all.next(),
        }
    }
}

/// Reads one choice.
pub(crate) enum Reader {
    /// Its text is text.
    Plain,
    /// Its text may hold thoughts and calls.
    Parsed(Parser),
}

impl Reader {
    /// Whether what comes next is a thought, as far as is known.
    fn is_thinking(&self) -> bool {
        match self {
            Self::Plain => false,
            Self::Parsed(parser) => parser.is_thinking(),
        }
    }

    fn read(&mut self, chunk: Chunk) -> Result<Turn, ApiError> {
        let end = chunk.finish.map(end).transpose()?;
        let mut turn = Turn { tokens: chunk.tokens, end, ..Turn::default() };
        match self {
            Self::Plain if chunk.text.is_empty() => {}
            Self::Plain => turn.events.push(Event::Content(chunk.text)),
            Self::Parsed(parser) => {
                let thought = parser.is_thinking();
                parser.push(&chunk.text, &mut turn.events);
                if let Some(end) = end {
                    parser.finish(ended(end), &mut turn.events);
                }
                turn.reasoning_tokens = thoughts(turn.tokens.len(), &turn.events, thought);
            }
        }
        Ok(turn)
    }
}

/// How many of some tokens were thoughts: as large a part as of the text that came of
/// them. `thinking` is whether they began within a thought.
fn thoughts(tokens: usize, events: &[Event], thinking: bool) -> u32 {
    let (mut thought, mut all) = (0, 0);
    for event in events {
        match event {
            Event::Reasoning(text) => {
                thought += text.len();
                all += text.len();
            }
            Event::Content(text) | Event::CallArguments { text, .. } | Event::Malformed { text, .. } => {
                all += text.len()
            }
            Event::CallStart { name, .. } => all += name.len(),
            Event::CallEnd { .. } => {}
        }
    }
    let count = match all {
        0 if thinking => tokens,
        0 => 0,
        all => (tokens * thought).div_ceil(all),
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether what the model wrote is whole.
fn ended(end: End) -> Ended {
    match end {
        End::Natural => Ended::Complete,
        End::StopText(_) | End::Length | End::ContextFull => Ended::Cut,
    }
}

fn end(finish: Finish) -> Result<End, ApiError> {
    match finish {
        Finish::StopToken | Finish::ConstraintDone => Ok(End::Natural),
        Finish::StopText(which) => Ok(End::StopText(which)),
        // The time of the request is a limit of its length.
        Finish::Length | Finish::Deadline => Ok(End::Length),
        Finish::ContextFull => Ok(End::ContextFull),
        Finish::Cancelled => Err(Error::Cancelled.into()),
        Finish::Preempted => Err(Error::Evicted.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_counted_by_their_part_of_the_text() {
        let (thought, said) = (Event::Reasoning("12345678".to_owned()), Event::Content("12".to_owned()));
        assert_eq!(thoughts(5, &[thought.clone(), said.clone()], false), 4);
        assert_eq!(thoughts(1, std::slice::from_ref(&thought), true), 1);
        assert_eq!(thoughts(3, std::slice::from_ref(&said), true), 0);
        assert_eq!((thoughts(2, &[], true), thoughts(2, &[], false)), (2, 0));
    }
}
