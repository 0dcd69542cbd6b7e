//! From what a text turns out to be to blocks.

use chat_format::Event;

use crate::anthropic::arguments::Arguments;
use crate::ids::Ids;

/// What blocks are written to.
pub(super) trait Sink {
    /// A block begins.
    fn start(&mut self, index: usize, block: Start<'_>);
    /// More of it.
    fn add(&mut self, index: usize, piece: Piece<'_>);
    /// It ends.
    fn stop(&mut self, index: usize, end: Stop<'_>);
}

/// Which block begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start<'a> {
    Text,
    Thinking,
    Call { id: &'a str, name: &'a str },
}

/// More of a block.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
    /// A piece of a call's input as JSON. All of them are the beginning of an object.
    Input(&'a str),
}

/// Which block ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop<'a> {
    Text,
    Thinking,
    /// With what its input is in the end.
    Call(&'a Arguments),
}

/// The blocks of an answer, of which one may be open.
#[derive(Debug)]
pub(super) struct Blocks {
    ids: Ids,
    /// How many have begun.
    begun: usize,
    open: Option<Open>,
    /// How many calls ended well.
    calls: usize,
}

#[derive(Debug)]
enum Open {
    Text,
    Thinking,
    Call(Arguments),
}

impl Blocks {
    pub(super) fn new(ids: Ids) -> Self {
        Self { ids, begun: 0, open: None, calls: 0 }
    }

    /// How many calls ended well.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// Takes what comes next.
    pub(super) fn take(&mut self, event: Event, sink: &mut impl Sink) {
        match event {
            Event::Content(text) => self.text(&text, sink),
            Event::Reasoning(text) => {
                if !matches!(self.open, Some(Open::Thinking)) {
                    self.begin(Open::Thinking, Start::Thinking, sink);
                }
                sink.add(self.last(), Piece::Thinking(&text));
            }
            Event::CallStart { name, id, .. } => {
                let id = self.ids.call("toolu_", id);
                self.begin(Open::Call(Arguments::new()), Start::Call { id: &id, name: &name }, sink);
            }
            Event::CallArguments { text, .. } => match &mut self.open {
                Some(Open::Call(arguments)) => {
                    let good = arguments.push(&text);
                    if !good.is_empty() {
                        sink.add(self.last(), Piece::Input(good));
                    }
                }
                // No call is open: what the model wrote is kept as it is.
                _ => self.text(&text, sink),
            },
            Event::CallEnd { .. } => {
                self.calls += usize::from(matches!(self.open, Some(Open::Call(_))));
                self.end(sink);
            }
            Event::Malformed { index, text, .. } => {
                let written = match (&self.open, index) {
                    (Some(Open::Call(arguments)), Some(_)) => format!("{}{text}", arguments.written()),
                    _ => text,
                };
                if !written.is_empty() {
                    self.text(&written, sink);
                }
            }
        }
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self, sink: &mut impl Sink) {
        if let Some(open) = self.open.take() {
            let stop = match &open {
                Open::Text => Stop::Text,
                Open::Thinking => Stop::Thinking,
                Open::Call(arguments) => Stop::Call(arguments),
            };
            sink.stop(self.last(), stop);
        }
    }

    /// The block that began last.
    fn last(&self) -> usize {
        self.begun.saturating_sub(1)
    }

    fn text(&mut self, text: &str, sink: &mut impl Sink) {
        if !matches!(self.open, Some(Open::Text)) {
            self.begin(Open::Text, Start::Text, sink);
        }
        sink.add(self.last(), Piece::Text(text));
    }

    fn begin(&mut self, open: Open, start: Start<'_>, sink: &mut impl Sink) {
        self.end(sink);
        sink.start(self.begun, start);
        self.open = Some(open);
        self.begun += 1;
    }
}
