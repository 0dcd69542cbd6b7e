//! A call while it goes on: what is told of it, and how it ends.

use std::collections::VecDeque;
use std::time::Duration;

use nala_sdk::http::Response;
use nala_sdk::relay::{self, Inbox};
use nala_sdk::tools::{self, Event, Question, Running};
use serde_json::{Value, json};
use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::io::poll::poll;

use crate::ask::{self, Known};
use crate::era::{Client, Era};
use crate::finish::Finish;
use crate::wire::{self, Call, Failure};
use crate::write;

/// Within this time most calls are over, and answered as JSON; others are a stream.
const SOON: Duration = Duration::from_secs(2);
/// How often a stream says that it is still there.
const ALIVE: Duration = Duration::from_secs(15);
/// The longest id of a request, as JSON, that an inbox is named after.
const LONGEST_ID: usize = 256;

/// What comes of a call next.
enum Step {
    /// A message for the client.
    Send(Value),
    /// Its last one.
    End(Value),
    Fail(Failure),
    /// Nothing came for as long as was to be waited.
    Nothing,
    /// The client does not want it any more.
    Cancelled,
}

/// A call that goes on.
struct Run {
    call: Call,
    client: Client,
    finish: Finish,
    known: Known,
    running: Running,
    inbox: Option<Inbox>,
    /// Messages that were not sent yet.
    outbox: VecDeque<Value>,
    /// What the client is asked: the number of the first question, and what was replied.
    asked: Option<(usize, Vec<Option<String>>)>,
    /// Questions so far.
    questions: usize,
}

/// Has a component do what is asked, and answers with what comes of it.
pub(crate) fn respond(
    call: Call,
    client: Client,
    finish: Finish,
    request: &tools::Request,
) -> Result<Response, Failure> {
    let known = match client.era {
        Era::Modern => Known::read(&call)?,
        Era::Legacy { .. } => Known::default(),
    };
    let address = match &client.era {
        Era::Modern => None,
        Era::Legacy { session } => session.as_ref().and_then(|session| address(session, &call.id)),
    };
    // Values for a parameter are told at once, or not at all.
    let can_ask = match (&client.era, request) {
        (_, tools::Request::Complete(_)) => false,
        (Era::Modern, _) => true,
        (Era::Legacy { .. }, _) => address.is_some(),
    };
    let abilities = if can_ask { client.abilities } else { tools::Abilities::empty() };
    let hears = if client.log.is_some() { tools::Abilities::HEAR_LOG } else { tools::Abilities::empty() };
    let running = match tools::begin(request, abilities | hears) {
        Ok(running) => running,
        Err(error) => {
            let result = finish.failed(&error)?;
            return Ok(wire::whole(&wire::result(&call.id, &result)));
        }
    };
    let inbox = address.as_deref().map(Inbox::at);
    let (outbox, asked) = (VecDeque::new(), None);
    let mut run = Run { call, client, finish, known, running, inbox, outbox, asked, questions: 0 };
    let first = match run.step(SOON) {
        Step::End(message) => return Ok(wire::whole(&message)),
        Step::Fail(failure) => return Err(failure),
        Step::Cancelled => return Ok(Response::empty(202)),
        Step::Send(message) => Some(message),
        Step::Nothing => None,
    };
    let stream = Response::events(move |out| {
        let mut next = first.map_or(Step::Nothing, Step::Send);
        loop {
            match next {
                Step::Send(message) => out.write(event(&message))?,
                Step::End(message) => return out.write(event(&message)),
                Step::Fail(failure) => return out.write(event(&failure.json(&run.call.id))),
                Step::Nothing => out.write(": still here\n\n")?,
                Step::Cancelled => return Ok(()),
            }
            next = run.step(ALIVE);
        }
    });
    // Some proxies keep events back else.
    Ok(stream.with_header("x-accel-buffering", "no"))
}

fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// Where messages about a request of a session go.
pub(crate) fn address(session: &str, id: &Value) -> Option<String> {
    let id = id.to_string();
    (id.len() <= LONGEST_ID).then(|| format!("{id} {session}"))
}

/// The id of a question, which leads back to the request that asks.
fn question_id(id: &Value, number: usize) -> String {
    format!("{number} {id}")
}

/// Takes a client's reply to where it is waited for, if it is.
pub(crate) fn deliver(session: &str, id: &Value, outcome: Result<Value, Value>) -> Result<(), Failure> {
    let Some((number, of)) = id.as_str().and_then(|id| id.split_once(' ')) else { return Ok(()) };
    let Ok(of) = serde_json::from_str::<Value>(of) else { return Ok(()) };
    let message = |number: usize| match outcome {
        Ok(reply) if reply.is_object() => json!({ "number": number, "reply": reply }),
        Ok(_) => json!({ "number": number, "failed": "the client's result is no object" }),
        Err(error) => {
            let why = error.get("message").and_then(Value::as_str).unwrap_or("the client did not say why");
            json!({ "number": number, "failed": why })
        }
    };
    let (Some(address), Ok(number)) = (address(session, &of), number.parse::<usize>()) else { return Ok(()) };
    match relay::send(&address, &message(number).to_string()) {
        // Nobody waits for it any more: nothing is to be done about that.
        Ok(()) | Err(relay::Error::UnknownAddress) => Ok(()),
        Err(relay::Error::Full) => {
            let why = "the reply is too long, or too many are waiting";
            let failed = json!({ "number": number, "failed": why });
            // It is short, so that there is room for it if there is for anything.
            let _ = relay::send(&address, &failed.to_string());
            Err(Failure::invalid_request(why).with_status(413))
        }
    }
}

/// Has a request end that its client does not want any more.
pub(crate) fn cancel(session: &str, id: &Value) {
    if let Some(address) = address(session, id) {
        let _ = relay::send(&address, &json!({ "cancelled": true }).to_string());
    }
}

impl Run {
    /// Waits for what comes next, for so long.
    fn step(&mut self, patience: Duration) -> Step {
        let patience = subscribe_duration(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        loop {
            if let Some(message) = self.outbox.pop_front() {
                return Step::Send(message);
            }
            let running = self.running.subscribe();
            let inbox = self.inbox.as_ref().map(Inbox::subscribe);
            let all: Vec<_> = [Some(&running), inbox.as_ref(), Some(&patience)].into_iter().flatten().collect();
            let ready = poll(&all);
            let is_ready = |at: usize| ready.iter().any(|index| usize::try_from(*index) == Ok(at));
            // A component that says much does not keep its client from ending it.
            if self.inbox.is_some() && is_ready(1) && self.message() {
                return Step::Cancelled;
            }
            if is_ready(0)
                && let Some(step) = self.event()
            {
                return step;
            }
            if is_ready(all.len() - 1) {
                return Step::Nothing;
            }
        }
    }

    /// What the component says.
    fn event(&mut self) -> Option<Step> {
        let event = match self.running.next() {
            Ok(Some(event)) => event,
            Ok(None) => return Some(Step::Fail(Failure::internal("the call ended without an answer"))),
            Err(error) => {
                return Some(match self.finish.failed(&error) {
                    Ok(result) => Step::End(wire::result(&self.call.id, &result)),
                    Err(failure) => Step::Fail(failure),
                });
            }
        };
        match event {
            Event::Progress(progress) => {
                let token = self.client.progress.as_ref()?;
                Some(Step::Send(wire::notification("notifications/progress", &write::progress(&progress, token))))
            }
            Event::Log(entry) => {
                let is_told = self.client.log.is_some_and(|least| write::weight_of(&entry) >= least);
                is_told.then(|| Step::Send(wire::notification("notifications/message", &write::entry(&entry))))
            }
            Event::Ask(questions) => self.asks(&questions),
            Event::Answer(_) | Event::Contents(_) | Event::Filled(_) | Event::Completion(_) => {
                Some(Step::End(wire::result(&self.call.id, &self.finish.result(&event))))
            }
        }
    }

    /// Passes questions on.
    fn asks(&mut self, questions: &[Question]) -> Option<Step> {
        if self.client.era == Era::Modern {
            let Some(replies) = self.known.replies(questions) else {
                let required = self.finish.identified(self.known.required(questions));
                return Some(Step::End(wire::result(&self.call.id, &required)));
            };
            self.running.reply(Ok(&replies));
            return None;
        }
        let first = self.questions;
        for question in questions {
            let mut message = ask::asked(question);
            if let Value::Object(message) = &mut message {
                message.insert("jsonrpc".to_owned(), "2.0".into());
                message.insert("id".to_owned(), question_id(&self.call.id, self.questions).into());
            }
            self.outbox.push_back(message);
            self.questions += 1;
        }
        self.asked = Some((first, vec![None; questions.len()]));
        None
    }

    /// Reads what came into the inbox. True: the call is to end.
    fn message(&mut self) -> bool {
        let Some(message) = self.inbox.as_ref().and_then(Inbox::take) else { return false };
        let message: Value = serde_json::from_str(&message).unwrap_or_default();
        if message.get("cancelled").is_some() {
            return true;
        }
        let number = message.get("number").and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
        let (Some(number), Some((first, replies))) = (number, &mut self.asked) else { return false };
        let Some(slot) = number.checked_sub(*first).and_then(|at| replies.get_mut(at)) else { return false };
        if let Some(why) = message.get("failed").and_then(Value::as_str) {
            self.running.reply(Err(why));
            self.asked = None;
            return false;
        }
        if let Some(reply) = message.get("reply") {
            slot.get_or_insert_with(|| reply.to_string());
        }
        if let Some(all) = replies.iter().cloned().collect::<Option<Vec<String>>>() {
            self.running.reply(Ok(&all));
            self.asked = None;
        }
        false
    }
}
