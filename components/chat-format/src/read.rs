//! Tells content, thoughts and calls apart.

use crate::call::{self, Doubt};
use crate::header;
use crate::literal;
use crate::named::{self, Read};
use crate::notation::{Bare, Block, Body, InThought, Keys, Naming, Notation, Place, Thought};
use crate::stream::{Failure, Stream};
use crate::tool::Tool;
use crate::{Ended, elements, tagged};

/// The longest run of white space that is held back, in bytes: it may stand
/// before a call, and is no content then.
const BLANKS: usize = 4096;

/// What a marker in the text begins.
#[derive(Debug, Clone, Copy)]
enum Role {
    Thought(&'static Thought),
    /// The end of a thought whose beginning was not seen.
    ThoughtEnd,
    Silent,
    Block(&'static Block),
}

/// Markers with what they begin.
#[derive(Debug, Default)]
struct Markers {
    texts: Vec<&'static str>,
    roles: Vec<Role>,
}

impl Markers {
    fn add(&mut self, text: &'static str, role: Role) {
        if !text.is_empty() && !self.texts.contains(&text) {
            self.texts.push(text);
            self.roles.push(role);
        }
    }
}

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: Stream,
    notation: &'static Notation,
    tools: Vec<Tool>,
    /// Where nothing was said yet.
    at_beginning: Markers,
    /// Elsewhere.
    within: Markers,
    /// What ends a thought, beside its own end.
    ends_thought: Vec<&'static str>,
}

/// Where in the answer we are.
struct State {
    place: Place,
    /// White space that may turn out to stand before a marker.
    blanks: String,
    /// Whether `blanks` follow a thought or call: blank lines are dropped then.
    after: After,
    thoughts: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Text,
    Part,
}

/// A text without the blank lines before it, and without blanks in its first line
/// if there were none: what stands between the parts of an answer.
fn unindented(text: &str) -> &str {
    let trimmed = text.trim_start();
    let blanks = text.get(..text.len() - trimmed.len()).unwrap_or_default();
    match blanks.rfind('\n') {
        Some(line) if !trimmed.is_empty() => text.get(line + 1..).unwrap_or_default(),
        _ => trimmed,
    }
}

/// What the failed reading of a call was begun by.
#[derive(Debug, Clone, Copy)]
enum Begun {
    By(&'static Block),
    Bare,
}

impl Reader {
    pub(crate) fn new(stream: Stream, notation: &'static Notation, tools: &[Tool]) -> Self {
        let mut at_beginning = Markers::default();
        let mut within = Markers::default();
        for thought in notation.thoughts {
            at_beginning.add(thought.open, Role::Thought(thought));
            if thought.place == Place::Anywhere {
                within.add(thought.open, Role::Thought(thought));
            }
        }
        // Without tools there are no calls: what looks like one is what the user
        // asked for. Some headers hold more than calls, though.
        let with_tools = !tools.is_empty();
        let blocks = notation
            .blocks
            .iter()
            .filter(|block| with_tools || matches!(block.body, Body::Header(_) | Body::Named(Naming::Recipient)));
        let blocks: Vec<&'static Block> = blocks.collect();
        for block in &blocks {
            at_beginning.add(block.open, Role::Block(block));
            within.add(block.open, Role::Block(block));
        }
        for text in notation.silent {
            at_beginning.add(text, Role::Silent);
            within.add(text, Role::Silent);
        }
        for thought in notation.thoughts {
            at_beginning.add(thought.close, Role::ThoughtEnd);
            within.add(thought.close, Role::ThoughtEnd);
        }
        let mut ends_thought: Vec<_> =
            blocks.iter().filter(|block| block.in_thought == InThought::Ends).map(|block| block.open).collect();
        if !ends_thought.is_empty() {
            ends_thought.extend(notation.silent);
        }
        Self { stream, notation, tools: tools.to_vec(), at_beginning, within, ends_thought }
    }

    /// Reads to the end.
    pub(crate) async fn run(self) {
        let mut state = State { place: Place::Beginning, blanks: String::new(), after: After::Text, thoughts: 0 };
        loop {
            if state.place == Place::Beginning && self.bare(&mut state).await {
                continue;
            }
            let markers = match state.place {
                Place::Beginning => &self.at_beginning,
                Place::Anywhere => &self.within,
            };
            let found = self.stream.ahead(&markers.texts).await;
            let found = found.and_then(|found| Some((*markers.texts.get(found)?, *markers.roles.get(found)?)));
            match found {
                // Another than the first is text: the model talks about it.
                Some((_, Role::ThoughtEnd)) if state.thoughts > 0 && state.place == Place::Anywhere => {
                    self.text(&mut state).await;
                }
                Some((text, role)) => self.marker(&mut state, text, role).await,
                None if self.stream.peek().await.is_none() => {
                    self.flush(&mut state);
                    return;
                }
                None => self.text(&mut state).await,
            }
        }
    }

    /// Takes one character of content.
    async fn text(&self, state: &mut State) {
        let prompt = self.stream.in_prompt();
        let Some(c) = self.stream.next().await else { return };
        if prompt {
            return;
        }
        if c.is_whitespace() && state.blanks.len() < BLANKS {
            state.blanks.push(c);
            return;
        }
        state.blanks.push(c);
        state.place = Place::Anywhere;
        self.flush(state);
    }

    /// Gives out what was held back.
    fn flush(&self, state: &mut State) {
        self.restore(state, String::new());
    }

    /// Gives out white space and what follows it as content.
    fn restore(&self, state: &mut State, text: String) {
        let held = std::mem::take(&mut state.blanks) + &text;
        let shown = match state.after {
            After::Text => held.as_str(),
            // Blank lines stand between the parts of an answer.
            After::Part => unindented(&held),
        };
        if !shown.is_empty() {
            state.after = After::Text;
            self.stream.content(shown);
        }
    }

    /// A part has ended, and whatever follows is a new beginning.
    fn part(state: &mut State) {
        state.blanks.clear();
        state.after = After::Part;
        state.place = Place::Beginning;
    }

    async fn marker(&self, state: &mut State, text: &'static str, role: Role) {
        let stream = &self.stream;
        match role {
            Role::Silent => {
                stream.skip(text);
            }
            Role::ThoughtEnd => {
                stream.skip(text);
                state.thoughts += 1;
                Self::part(state);
            }
            Role::Thought(thought) => {
                stream.skip(text);
                self.thought(&[thought.close]).await;
                state.thoughts += 1;
                Self::part(state);
            }
            Role::Block(block) => {
                stream.hold(std::mem::take(&mut state.blanks));
                stream.skip(text);
                self.block(state, block).await;
            }
        }
    }

    /// Reads a thought, and its end.
    async fn thought(&self, closes: &[&str]) {
        let stream = &self.stream;
        stream.begin_thought();
        let ends: Vec<&str> = closes.iter().copied().chain(self.ends_thought.iter().copied()).collect();
        let mut blanks = String::new();
        let mut said = false;
        loop {
            if let Some(end) = stream.ahead(&ends).await {
                if end < closes.len() {
                    stream.eat(closes).await;
                }
                break;
            }
            stream.skip_cut_off(closes);
            let Some(c) = stream.next().await else { break };
            if c.is_whitespace() && blanks.len() < BLANKS {
                blanks.push(c);
                continue;
            }
            blanks.push(c);
            let shown = if said { blanks.as_str() } else { unindented(&blanks) };
            said |= !shown.is_empty();
            stream.reasoning(shown);
            blanks.clear();
        }
        stream.end_thought();
    }

    async fn block(&self, state: &mut State, block: &'static Block) {
        let stream = &self.stream;
        let tools = &self.tools;
        let read = match &block.body {
            Body::Json(keys) => call::calls(stream, *keys, Doubt::Marked).await,
            Body::FencedJson => self.fenced().await,
            Body::Named(naming) => match named::call(stream, tools, *naming).await {
                Ok(Read::Calls) => Ok(()),
                Ok(Read::Text) => {
                    stream.release();
                    Self::part(state);
                    return;
                }
                Err(failure) => Err(failure),
            },
            Body::Tagged(tags) => tagged::calls(stream, tools, tags).await,
            Body::Pairs(tags) => tagged::pairs(stream, tools, tags, block.close).await,
            Body::Python => literal::python_calls(stream, tools, Doubt::Marked).await,
            Body::Gemma => literal::gemma_call(stream).await,
            Body::Elements => elements::calls(stream, tools).await,
            Body::Header(kind) => match header::read(stream, *kind, block.open).await {
                Ok(header::Message::Call) => Ok(()),
                Ok(header::Message::Text) => {
                    stream.release();
                    Self::part(state);
                    return;
                }
                Ok(header::Message::Thought) => {
                    stream.release();
                    self.thought(header::ENDS).await;
                    state.thoughts += 1;
                    Self::part(state);
                    return;
                }
                Err(failure) => Err(failure),
            },
        };
        match read {
            Ok(()) => {
                stream.hold(String::new());
                // The end of the text ends the block too.
                let blanks = stream.blanks().await;
                let closed = !block.close.is_empty() && stream.eat(&[block.close]).await.is_some();
                let rest = stream.release();
                stream.skip_cut_off(&[block.close]);
                Self::part(state);
                if !closed && blanks.is_ok() {
                    state.blanks = rest;
                }
            }
            Err(failure) => self.settle(state, failure, Begun::By(block)).await,
        }
    }

    /// Reads calls in a fence, after its marker.
    async fn fenced(&self) -> Result<(), Failure> {
        let stream = &self.stream;
        stream.blanks().await?;
        let fence = stream.eat(&["```"]).await;
        stream.eat(&["json"]).await;
        call::calls(stream, Keys::Fixed, Doubt::Marked).await?;
        if fence.is_some() {
            stream.blanks().await?;
            stream.eat(&["```"]).await;
        }
        Ok(())
    }

    /// Reads a call without a marker, if there is one; tells whether anything was
    /// read.
    async fn bare(&self, state: &mut State) -> bool {
        let stream = &self.stream;
        if self.notation.bare == Bare::Nothing || self.tools.is_empty() {
            return false;
        }
        let next = match (stream.peek().await, self.notation.bare) {
            (Some('`'), Bare::Fenced) => '`',
            (Some(next @ ('{' | '[')), _) => next,
            _ => return false,
        };
        stream.hold(std::mem::take(&mut state.blanks));
        stream.first_column();
        let read = match next {
            '{' => call::object(stream, Doubt::Bare).await,
            '[' if self.notation.bare == Bare::Python => literal::python_calls(stream, &self.tools, Doubt::Bare).await,
            '[' => call::calls(stream, Keys::Fixed, Doubt::Bare).await,
            _ => self.fence().await,
        };
        match read {
            Ok(()) => {
                Self::part(state);
                // Some write `;` between calls.
                stream.hold(String::new());
                let read = stream.blanks().await;
                if stream.peek().await == Some(';') && read.is_ok() {
                    stream.next().await;
                    let read = stream.blanks().await;
                    if read.is_ok() && stream.peek().await == Some('{') {
                        stream.settled();
                    }
                }
                let rest = stream.release();
                if rest.trim().is_empty() {
                    state.blanks = rest;
                } else {
                    self.restore(state, rest);
                    state.place = Place::Anywhere;
                }
            }
            Err(failure) => self.settle(state, failure, Begun::Bare).await,
        }
        true
    }

    /// Reads a fence with calls.
    async fn fence(&self) -> Result<(), Failure> {
        let stream = &self.stream;
        match stream.eat(&["```json", "```tool_code", "```tool_call", "```python"]).await {
            Some(1 | 3) => literal::python_calls(stream, &self.tools, Doubt::Bare).await?,
            Some(_) => call::calls(stream, Keys::Fixed, Doubt::Bare).await?,
            None => {
                stream.take().await?;
                return Err(Failure::NotACall);
            }
        }
        stream.blanks().await?;
        stream.eat(&["```"]).await;
        Ok(())
    }

    /// Gives out what was taken for a call and is none.
    async fn settle(&self, state: &mut State, failure: Failure, begun: Begun) {
        let stream = &self.stream;
        let in_call = stream.in_call();
        let ended = stream.ended() == Some(Ended::Complete);
        let as_text = match (&failure, begun) {
            _ if in_call => false,
            (Failure::NotACall, _) | (_, Begun::Bare) => true,
            (Failure::End, Begun::By(block)) => {
                // Nothing that is sure to be a call: the text may be about the marker.
                let held = stream.release();
                let after = held.trim_start().strip_prefix(block.open).unwrap_or_default().trim_start();
                let json = after.starts_with(['{', '[']);
                stream.hold(held);
                ended && !json
            }
            _ => false,
        };
        if as_text {
            let mut held = stream.release();
            // A marker may follow the last blanks.
            let blanks = held.split_off(held.trim_end().len());
            state.place = Place::Anywhere;
            self.restore(state, held);
            state.blanks = blanks;
            return;
        }
        let reason = match failure {
            Failure::End if !ended && in_call => {
                // What is there of the call was given out.
                stream.release();
                return;
            }
            // Of a header there is nothing to give out.
            Failure::End if !ended && matches!(begun, Begun::By(Block { body: Body::Header(_), .. })) => {
                stream.release();
                return;
            }
            Failure::End if ended => "the text ends within the call".to_owned(),
            Failure::End => "the text was cut off within the call".to_owned(),
            Failure::TooLong => "the call has a part of more than 64 KiB that is no call yet".to_owned(),
            Failure::NotACall => "this is no call".to_owned(),
            Failure::Broken(reason) => {
                self.recover(begun).await;
                reason
            }
        };
        let text = stream.release();
        stream.malformed(text, reason);
        Self::part(state);
    }

    /// Takes the rest of a broken call: up to where its block ends, or another
    /// begins.
    async fn recover(&self, begun: Begun) {
        let stream = &self.stream;
        let close = match begun {
            Begun::By(block) if !block.close.is_empty() => Some(block.close),
            _ => None,
        };
        let others = self.notation.blocks.iter().map(|block| block.open);
        let ends: Vec<&str> = close.into_iter().chain(others).collect();
        loop {
            match stream.ahead(&ends).await {
                Some(0) if close.is_some() => {
                    stream.skip(close.unwrap_or_default());
                    return;
                }
                Some(_) => return,
                None => {
                    if stream.take().await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
