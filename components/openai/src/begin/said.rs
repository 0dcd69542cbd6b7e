//! What comes of generations, read.

use chat_format::{Ended, Event, Parser};
use nala_sdk::llm::{Chunk, Error, Finish, Generation, Together};

use super::Written;
use crate::error::ApiError;
use crate::turn::{End, Turn};

/// The turns of generations that have begun.
pub(super) struct Said {
    /// What was awaited already.
    first: Option<(usize, Turn)>,
    source: Source,
    /// One for each choice.
    readers: Vec<Reader>,
}

impl Said {
    /// Waits for the first token, so that what fails up to it has a status.
    pub(super) fn begin(generations: Vec<Generation>, written: &Written) -> Result<Self, ApiError> {
        let readers = generations.iter().map(|_| Reader::new(written)).collect();
        let mut said = Self { first: None, source: Source::of(generations), readers };
        said.first = match said.next() {
            Some((index, turn)) => Some((index, turn?)),
            None => None,
        };
        Ok(said)
    }

    /// How many choices there are.
    pub(super) fn choices(&self) -> usize {
        self.readers.len()
    }
}

impl Iterator for Said {
    type Item = (usize, Result<Turn, ApiError>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((index, turn)) = self.first.take() {
            return Some((index, Ok(turn)));
        }
        let (index, chunk) = self.source.next()?;
        let turn = match (chunk, self.readers.get_mut(index)) {
            (Ok(chunk), Some(reader)) => reader.read(chunk),
            (Ok(_), None) => Err(ApiError::from(Error::Backend("a choice that nobody asked for".to_owned()))),
            (Err(error), _) => Err(error.into()),
        };
        Some((index, turn))
    }
}

/// Chunks, with the choice that each belongs to.
enum Source {
    /// One choice, which needs no looking for the one that has something.
    One(Generation),
    Many(Together),
}

impl Source {
    fn of(mut generations: Vec<Generation>) -> Self {
        match (generations.pop(), generations.is_empty()) {
            (Some(only), true) => Self::One(only),
            (last, _) => {
                generations.extend(last);
                Self::Many(Together::new(generations))
            }
        }
    }
}

impl Iterator for Source {
    type Item = (usize, Result<Chunk, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::One(generation) => generation.next().map(|chunk| (0, chunk)),
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
    fn new(written: &Written) -> Self {
        match written.format {
            None => Self::Plain,
            Some(format) => Self::Parsed(Parser::new(format, &written.tools, written.tail())),
        }
    }

    fn read(&mut self, chunk: Chunk) -> Result<Turn, ApiError> {
        let end = chunk.finish.map(end).transpose()?;
        let mut turn = Turn { tokens: chunk.tokens, end, ..Turn::default() };
        match self {
            Self::Plain if chunk.text.is_empty() => {}
            Self::Plain => turn.events.push(Event::Content(chunk.text)),
            Self::Parsed(parser) => {
                if parser.is_thinking() {
                    turn.reasoning_tokens = u32::try_from(turn.tokens.len()).unwrap_or(u32::MAX);
                }
                parser.push(&chunk.text, &mut turn.events);
                if let Some(end) = end {
                    parser.finish(ended(end), &mut turn.events);
                }
            }
        }
        Ok(turn)
    }
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
        Finish::Length => Ok(End::Length),
        Finish::ContextFull => Ok(End::ContextFull),
        Finish::Deadline => Err(Error::Deadline.into()),
        Finish::Cancelled => Err(Error::Cancelled.into()),
        Finish::Preempted => Err(Error::Evicted.into()),
    }
}
