//! From a model's text to events.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Waker};

use crate::families::notation;
use crate::force::prefixes;
use crate::notation::Notation;
use crate::read::Reader;
use crate::stream::Stream;
use crate::{Event, Format, Tool};

/// Reads a model's text as it comes.
///
/// It makes no difference where the text is cut into pieces. What is held back is
/// only what may yet become part of the notation, 64 KiB at the most.
///
/// Without tools, nothing is taken for a call.
pub struct Parser {
    format: Format,
    stream: Stream,
    /// What reads the stream; None once the text has ended.
    reading: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl fmt::Debug for Parser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parser").field("format", &self.format).field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// How a model's text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The model ended its turn.
    Complete,
    /// It was cut off, so that a call may be incomplete.
    Cut,
}

impl Parser {
    /// A parser for the answer to a prompt that ends with `prompt_tail` (some
    /// hundred bytes suffice): a template may have begun the answer already, with
    /// `<think>` for example, or [`Forced::prefix`](crate::Forced::prefix) may
    /// stand there.
    #[must_use]
    pub fn new(format: Format, tools: &[Tool], prompt_tail: &str) -> Self {
        let notation = notation(format);
        let begun = begun(notation, format, tools, prompt_tail);
        let stream = Stream::new(begun);
        let reader = Reader::new(stream.clone(), notation, tools);
        let mut this = Self { format, stream, reading: Some(Box::pin(reader.run())) };
        this.read();
        this
    }

    /// Takes more text and appends what it turns out to be.
    pub fn push(&mut self, text: &str, events: &mut Vec<Event>) {
        if self.reading.is_some() && !text.is_empty() {
            self.stream.feed(text);
            self.read();
        }
        self.stream.drain(events);
    }

    /// The text has ended: appends what was held back. After this, [`Parser::push`]
    /// does nothing.
    pub fn finish(&mut self, ended: Ended, events: &mut Vec<Event>) {
        self.stream.end(ended);
        self.read();
        self.reading = None;
        self.stream.drain(events);
    }

    /// Whether what comes next is a thought, as far as is known.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        self.stream.is_thinking()
    }

    /// Reads what there is.
    fn read(&mut self) {
        if let Some(reading) = &mut self.reading {
            // Nobody has to be woken: whoever brings text reads it.
            if reading.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                self.reading = None;
            }
        }
    }
}

/// The end of the prompt that belongs to the answer.
fn begun<'a>(notation: &Notation, format: Format, tools: &[Tool], tail: &'a str) -> &'a str {
    let from = |before: &str| tail.get(before.len()..).unwrap_or_default();
    let longer = |longest: &'a str, begun: &'a str| if begun.len() > longest.len() { begun } else { longest };
    let mut longest = "";
    for prefix in prefixes(format, tools).iter().map(String::as_str).chain([""]) {
        let Some(before) = tail.strip_suffix(prefix) else { continue };
        longest = longer(longest, from(before));
        for before in notation.prompts.iter().filter_map(|prompt| before.strip_suffix(prompt)) {
            longest = longer(longest, from(before));
        }
    }
    // A forced call after the beginning of a thought is a call.
    if longest.is_empty() || notation.prompts.contains(&longest) {
        let opened = |open: &str| tail.trim_end().strip_suffix(open.trim_end());
        for before in notation.thoughts.iter().filter_map(|thought| opened(thought.open)) {
            longest = longer(longest, from(before));
        }
    }
    longest
}
