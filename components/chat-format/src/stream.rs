//! A model's text as it comes, and the events that come of it.
//!
//! The parsers are written as straight-line programs that wait for the next
//! character, and none of them can see where a piece of text ended. So it makes no
//! difference where the text was cut.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use crate::{Ended, Event};

/// How much text may be held back until it is known what it is, in bytes.
pub(crate) const HELD: usize = 64 << 10;

/// Why something could not be read to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is plain text that looked like a notation.
    NotACall,
    /// It began as a call and is none. What is wrong, for people.
    Broken(String),
    /// More than [`HELD`] bytes, and it is still not known what it is.
    TooLong,
    /// The text has ended.
    End,
}

/// The text, shared by the parser that waits for it and the one who brings it.
#[derive(Debug, Clone)]
pub(crate) struct Stream(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    text: String,
    /// How much of the text was taken, in bytes.
    at: usize,
    /// How many bytes ahead belong to the prompt: they are read, not reported.
    prompt: usize,
    ended: Option<Ended>,
    events: Vec<Event>,
    thinking: bool,
    /// What was taken and is in no event yet.
    held: Option<String>,
    /// How many characters were taken since [`Stream::first_column`].
    column: usize,
    calls: usize,
    open: Option<usize>,
}

impl State {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        self.column += 1;
        if self.prompt >= c.len_utf8() {
            self.prompt -= c.len_utf8();
        } else if let Some(held) = &mut self.held {
            held.push(c);
        }
        Some(c)
    }
}

impl Stream {
    /// A stream that begins with the end of the prompt.
    pub(crate) fn new(prompt: &str) -> Self {
        let state = State { text: prompt.to_owned(), prompt: prompt.len(), ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// More text has come.
    pub(crate) fn feed(&self, text: &str) {
        self.with(|state| {
            if state.at > 0 {
                // What is left is the beginning of a marker at the most.
                state.text.drain(..state.at);
                state.at = 0;
            }
            state.text.push_str(text);
        });
    }

    /// No more text will come.
    pub(crate) fn end(&self, ended: Ended) {
        self.with(|state| state.ended = Some(ended));
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.with(|state| state.ended)
    }

    /// Moves the events out.
    pub(crate) fn drain(&self, events: &mut Vec<Event>) {
        self.with(|state| events.append(&mut state.events));
    }

    /// The next character, which stays. None: the text has ended.
    pub(crate) async fn peek(&self) -> Option<char> {
        let poll = |state: &mut State| match (state.rest().chars().next(), state.ended) {
            (None, None) => Poll::Pending,
            (next, _) => Poll::Ready(next),
        };
        std::future::poll_fn(|_| self.with(poll)).await
    }

    /// Takes the next character. None: the text has ended.
    pub(crate) async fn next(&self) -> Option<char> {
        self.peek().await;
        self.with(State::next)
    }

    /// Whether the next character is the prompt's.
    pub(crate) fn in_prompt(&self) -> bool {
        self.with(|state| state.prompt > 0)
    }

    /// Takes the next character of something that has to end.
    pub(crate) async fn take(&self) -> Result<char, Failure> {
        if self.with(|state| state.held.as_ref().is_some_and(|held| held.len() >= HELD)) {
            return Err(Failure::TooLong);
        }
        self.next().await.ok_or(Failure::End)
    }

    /// Passes the next character of something that has to end.
    pub(crate) async fn pass(&self) -> Result<(), Failure> {
        self.take().await.map(|_| ())
    }

    /// The next character of something that has to end, which stays.
    pub(crate) async fn must_peek(&self) -> Result<char, Failure> {
        self.peek().await.ok_or(Failure::End)
    }

    /// Which of some texts comes next. None of them may be the beginning of
    /// another.
    pub(crate) async fn ahead(&self, texts: &[&str]) -> Option<usize> {
        let poll = |state: &mut State| {
            let rest = state.rest();
            if let Some(found) = texts.iter().position(|text| rest.starts_with(text)) {
                return Poll::Ready(Some(found));
            }
            if state.ended.is_none() && texts.iter().any(|text| text.starts_with(rest)) {
                return Poll::Pending;
            }
            Poll::Ready(None)
        };
        std::future::poll_fn(|_| self.with(poll)).await
    }

    /// Takes a text that is known to come next.
    pub(crate) fn skip(&self, text: &str) {
        self.with(|state| {
            for _ in text.chars() {
                state.next();
            }
        });
    }

    /// Takes one of some texts, if it comes next.
    pub(crate) async fn eat(&self, texts: &[&str]) -> Option<usize> {
        let found = self.ahead(texts).await?;
        self.skip(texts.get(found)?);
        Some(found)
    }

    /// Takes the rest of a text that has ended within one of some markers.
    pub(crate) fn skip_cut_off(&self, markers: &[&str]) {
        self.with(|state| {
            let rest = state.rest();
            if state.ended == Some(Ended::Cut) && markers.iter().any(|marker| marker.starts_with(rest)) {
                state.at = state.text.len();
            }
        });
    }

    /// Takes white space.
    pub(crate) async fn blanks(&self) -> Result<(), Failure> {
        while self.peek().await.is_some_and(char::is_whitespace) {
            self.take().await?;
        }
        Ok(())
    }

    /// Takes a text up to one of some others, which stays; tells which. Text that
    /// spans lines or is longer than a name can be is no call.
    pub(crate) async fn until(&self, ends: &[&str]) -> Result<(String, usize), Failure> {
        self.short(ends, |_| true).await
    }

    /// The same for the name of a function: a word, perhaps with blanks around it.
    pub(crate) async fn name(&self, ends: &[&str]) -> Result<(String, usize), Failure> {
        let word = |text: &str| !text.trim().contains(char::is_whitespace);
        let (text, end) = self.short(ends, word).await?;
        match text.trim() {
            "" => Err(Failure::NotACall),
            name => Ok((name.to_owned(), end)),
        }
    }

    async fn short(&self, ends: &[&str], fits: impl Fn(&str) -> bool) -> Result<(String, usize), Failure> {
        const LONGEST: usize = 256;
        let mut text = String::new();
        loop {
            if let Some(end) = self.ahead(ends).await {
                return Ok((text, end));
            }
            let next = self.must_peek().await?;
            if next == '\n' || text.len() > LONGEST {
                return Err(Failure::NotACall);
            }
            text.push(next);
            if !fits(&text) {
                return Err(Failure::NotACall);
            }
            self.take().await?;
        }
    }

    /// From here on, what is taken is kept, after `before`.
    pub(crate) fn hold(&self, before: String) {
        self.with(|state| state.held = Some(before));
    }

    /// What was kept; from here on, nothing is.
    pub(crate) fn release(&self) -> String {
        self.with(|state| state.held.take()).unwrap_or_default()
    }

    /// What was kept so far is in an event or needs to be in none.
    pub(crate) fn settled(&self) {
        self.with(|state| state.held.as_mut().map(String::clear));
    }

    /// Columns are counted from here.
    pub(crate) fn first_column(&self) {
        self.with(|state| state.column = 0);
    }

    /// An error at the next character.
    pub(crate) fn expected(&self, what: &str) -> Failure {
        Failure::Broken(format!("column {}: expected {what}", self.with(|state| state.column + 1)))
    }

    /// An error at the character that was taken last.
    pub(crate) fn wrong(&self, what: &str) -> Failure {
        Failure::Broken(format!("column {}: {what}", self.with(|state| state.column)))
    }

    pub(crate) fn content(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.with(|state| match state.events.last_mut() {
            Some(Event::Content(last)) => last.push_str(text),
            _ => state.events.push(Event::Content(text.to_owned())),
        });
    }

    pub(crate) fn reasoning(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.with(|state| match state.events.last_mut() {
            Some(Event::Reasoning(last)) => last.push_str(text),
            _ => state.events.push(Event::Reasoning(text.to_owned())),
        });
    }

    /// A call begins. What was kept is settled.
    pub(crate) fn start_call(&self, name: &str, id: Option<String>) {
        self.with(|state| {
            let index = state.calls;
            state.calls += 1;
            state.open = Some(index);
            state.held.as_mut().map(String::clear);
            state.events.push(Event::CallStart { index, name: name.to_owned(), id });
        });
    }

    /// More of the open call's arguments. What was kept is settled.
    pub(crate) fn arguments(&self, text: &str) {
        self.with(|state| {
            state.held.as_mut().map(String::clear);
            let Some(open) = state.open else { return };
            match state.events.last_mut() {
                Some(Event::CallArguments { text: last, .. }) => last.push_str(text),
                _ if text.is_empty() => {}
                _ => state.events.push(Event::CallArguments { index: open, text: text.to_owned() }),
            }
        });
    }

    pub(crate) fn end_call(&self) {
        self.with(|state| {
            state.held.as_mut().map(String::clear);
            if let Some(index) = state.open.take() {
                state.events.push(Event::CallEnd { index });
            }
        });
    }

    /// Whether a call has begun and not ended.
    pub(crate) fn in_call(&self) -> bool {
        self.with(|state| state.open.is_some())
    }

    pub(crate) fn malformed(&self, text: String, reason: String) {
        self.with(|state| {
            let index = state.open.take();
            state.events.push(Event::Malformed { index, text, reason });
        });
    }

    pub(crate) fn begin_thought(&self) {
        self.with(|state| state.thinking = true);
    }

    pub(crate) fn end_thought(&self) {
        self.with(|state| state.thinking = false);
    }

    pub(crate) fn is_thinking(&self) -> bool {
        self.with(|state| state.thinking)
    }
}
