//! An answer, whole or as events.

use nala_sdk::Error;
use nala_sdk::http::BodyWriter;

use super::assembly::{Assembly, Listener};
use super::events::Events;
use super::item::{Item, Status};
use super::object::{Frame, State, Usage};
use super::request::{Echo, List, Server};
use crate::error::ApiError;
use crate::ids::Ids;
use crate::turn::{Bytes, End, Heard, Running, broke_off};

/// An answer that is being made.
///
/// The API knows one answer to a request; of several, the turns of all would be
/// read as one.
#[derive(Debug)]
pub struct Answer<T, B> {
    /// What is said, and by whom.
    pub running: Running<T, B>,
    /// What the answer repeats of the request.
    pub echo: Echo,
    /// The tools that are the server's.
    pub(super) server: Server,
    /// Names the response and its items.
    pub ids: Ids,
    /// The time, in seconds since 1970.
    pub clock: fn() -> u64,
}

/// What is heard, in order; an error ends it.
pub(super) trait Story: Iterator<Item = Result<Heard, ApiError>> {}
impl<T: Iterator<Item = Result<Heard, ApiError>>> Story for T {}

#[expect(private_bounds, reason = "a name for what is spelled out beside it")]
impl<T: Story, B: Bytes> Answer<T, B> {
    /// Waits for the whole answer: the JSON of an object `response`.
    ///
    /// # Errors
    /// What the generation fails with.
    pub fn whole(self) -> Result<Vec<u8>, ApiError> {
        let clock = self.clock;
        let (frame, mut running, mut assembly, lists) = self.parts(Quiet);
        lists.iter().for_each(|list| assembly.list(list));
        let end = loop {
            if let Some(end) = advance(&mut running, &mut assembly)? {
                break end;
            }
        };
        assembly.finish(status(end));
        let usage = assembly.usage();
        let mut out = Vec::with_capacity(4096);
        frame.write(&ended(end, usage, clock).1, assembly.items(), &mut out);
        Ok(out)
    }

    /// Writes the events as they come, in the order of
    /// [`EVENT_ORDER`](super::EVENT_ORDER).
    ///
    /// What comes at once goes out at once, in one buffer that is used again.
    ///
    /// # Errors
    /// [`Error::Gone`] when the client hung up.
    pub fn stream(self, out: &mut BodyWriter) -> Result<(), Error> {
        let clock = self.clock;
        let (frame, mut running, mut assembly, lists) = self.parts(Events::new());
        for kind in ["response.created", "response.in_progress"] {
            assembly.listener.response(kind, &frame, &State::InProgress, &[]);
        }
        lists.iter().for_each(|list| assembly.list(list));
        let result = loop {
            match advance(&mut running, &mut assembly) {
                // Together with the first turn, which is there, the two events above.
                Ok(None) => assembly.listener.send(out)?,
                Ok(Some(end)) => break Ok(end),
                Err(error) => break Err(error),
            }
        };
        match &result {
            Ok(end) => assembly.finish(status(*end)),
            Err(_) => assembly.abandon(),
        }
        let usage = assembly.usage();
        let (kind, state) = match &result {
            Ok(end) => ended(*end, usage, clock),
            Err(error) => ("response.failed", State::Failed { error, usage }),
        };
        let (items, events) = assembly.split();
        events.response(kind, &frame, &state, items);
        events.send(out)
    }

    /// All that it takes, and the lists that the client does not know.
    fn parts<L: Listener>(self, listener: L) -> (Frame, Running<T, B>, Assembly<L>, Vec<List>) {
        let Self { running, echo, ids, server, .. } = self;
        let frame = Frame { id: ids.answer("resp_"), created: running.created, model: running.model.clone(), echo };
        let logprobs = frame.echo.logprobs();
        let Server { mut lists, known, .. } = server;
        let assembly = Assembly::new(ids, logprobs, listener, &lists, running.prompt);
        lists.retain(|list| !known.contains(&list.label));
        (frame, running, assembly, lists)
    }
}

/// Waits for the next turn. Returns why the answer ended, if it did.
fn advance<T: Story, B: Bytes, L: Listener>(
    running: &mut Running<T, B>,
    assembly: &mut Assembly<L>,
) -> Result<Option<End>, ApiError> {
    match running.turns.next().ok_or_else(broke_off)?? {
        Heard::Said(mut turn) => {
            assembly.take(&mut turn, &mut running.bytes);
            return Ok(turn.end);
        }
        Heard::Returned(returned) => assembly.returned(returned),
        Heard::Read(read) => assembly.read(read),
    }
    Ok(None)
}

/// How the last item ended.
fn status(end: End) -> Status {
    match end {
        End::Natural | End::StopText(_) => Status::Completed,
        End::Length | End::ContextFull => Status::Incomplete,
    }
}

/// The last event's type, and how the response ended.
fn ended(end: End, usage: Usage, clock: fn() -> u64) -> (&'static str, State<'static>) {
    match status(end) {
        Status::Completed => ("response.completed", State::Completed { at: clock(), usage }),
        Status::InProgress | Status::Incomplete | Status::Failed => {
            ("response.incomplete", State::Incomplete { usage })
        }
    }
}

/// Nobody listens: all is looked at in the end.
struct Quiet;

impl Listener for Quiet {
    fn added(&mut self, _: usize, _: &Item) {}
    fn grew(&mut self, _: usize, _: &Item, _: &str, _: &[u8]) {}
    fn written(&mut self, _: usize, _: &Item) {}
    fn ended(&mut self, _: usize, _: &Item) {}
}
