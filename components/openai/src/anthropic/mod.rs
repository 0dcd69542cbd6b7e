//! Anthropic's Messages API: `POST /v1/messages` and
//! `POST /v1/messages/count_tokens`.
//!
//! The shapes are those of the official Python client's types (`anthropic` 2.14,
//! `types/message_create_params.py`, `types/message.py`, `types/raw_*_event.py`).
//! Requests are read into an [`Ask`] ([`read`], [`read_count`]) and answers written
//! from what is generated ([`Shape`], [`Answer`]); errors have an envelope of their
//! own ([`error`]).
//!
//! What cannot be honoured is refused with the place where it stands, unless
//! ignoring it changes nothing that the client can see; [`policy`] lists what that
//! is. A `null` counts as not given everywhere.
//!
//! Where this API and models disagree:
//!
//! - Thoughts are not signed. Each block of them has the same signature,
//!   [`answer::SIGNATURE`], since clients want one, and none is looked at when a
//!   block comes back.
//! - `budget_tokens` is read and not enforced.
//! - `max_tokens` of 0, which at Anthropic fills the prompt cache and says nothing,
//!   is refused.
//! - A call whose arguments break off has an `input` of the members that are whole;
//!   see [`answer`].

pub mod answer;
mod arguments;
mod blocks;
pub mod error;
mod messages;
mod options;
pub mod policy;
mod system;
#[cfg(test)]
mod tests;
mod tools;

use nala_sdk::http;
use serde_json::{Map, Value};

pub use crate::ask::Delivery;
use crate::ask::{Ask, Conversation, Pace, Prompt};
use crate::begin::{self, begin};
use crate::error::ApiError;
use crate::ids::Ids;
use crate::parameters;
use crate::part::Part;
pub use answer::Answer;

/// A checked request for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What is asked for.
    pub ask: Ask,
    /// What the answer has to look like.
    pub shape: Shape,
}

/// What an answer has to look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// How it comes.
    pub delivery: Delivery,
    /// Whether thoughts are shown.
    pub thoughts: Thoughts,
    /// The texts that end it, in the order of `Options::stop`.
    pub stop: Vec<String>,
}

/// Whether thoughts are shown (`thinking.display`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoughts {
    /// As they are.
    Shown,
    /// Only that there were some: their block is empty.
    Omitted,
}

/// Reads and checks the body of `POST /v1/messages`.
///
/// # Errors
/// 400, with the position where it does not parse or the parameter that is wrong.
pub fn read(body: &[u8]) -> Result<Request, ApiError> {
    let fields = given(body)?;
    let root = Part::root(&fields);
    let max_tokens = options::max_tokens(&root)?;
    let delivery = if root.boolean("stream")?.unwrap_or(false) { Delivery::Events } else { Delivery::Whole };
    let ask = ask(&root, &fields, Some(max_tokens), delivery.pace())?;
    let shape = Shape { delivery, thoughts: options::thoughts(&root)?, stop: ask.options.stop.clone() };
    Ok(Request { ask, shape })
}

/// Reads and checks the body of `POST /v1/messages/count_tokens`: what
/// `POST /v1/messages` takes, of which only the prompt matters. `max_tokens` may be
/// left out.
///
/// # Errors
/// As [`read`].
pub fn read_count(body: &[u8]) -> Result<Ask, ApiError> {
    let fields = given(body)?;
    let root = Part::root(&fields);
    let max_tokens = root.get("max_tokens").map(|_| options::max_tokens(&root)).transpose()?;
    ask(&root, &fields, max_tokens, Pace::AtOnce)
}

/// The body that answers `POST /v1/messages/count_tokens`.
#[must_use]
pub fn count(input_tokens: u64) -> Vec<u8> {
    format!("{{\"input_tokens\":{input_tokens}}}").into_bytes()
}

/// Answers `POST /v1/messages`.
///
/// # Errors
/// [`ApiError`], as long as no token has been sent.
pub fn respond(request: http::Request) -> Result<http::Response, ApiError> {
    let Request { ask, shape } = read(&request.bytes()?)?;
    shape.respond(Ids::random(), begin(ask)?)
}

/// Answers `POST /v1/messages/count_tokens`.
///
/// # Errors
/// As [`respond`].
pub fn respond_count(request: http::Request) -> Result<http::Response, ApiError> {
    let ask = read_count(&request.bytes()?)?;
    let model = begin::open(&ask.model)?;
    let written = begin::write(&model, &model.info(), &ask)?;
    Ok(http::Response::new(200, "application/json", count(written.tokens.len() as u64)))
}

/// Whether a client speaks this API: its headers say so. They decide about the
/// shape of errors where the route does not, and about nothing else: any
/// `anthropic-version` is served, and no key is looked at.
#[must_use]
pub fn is_spoken_by(request: &http::Request) -> bool {
    ["anthropic-version", "x-api-key"].iter().any(|name| request.header(name).is_some())
}

/// The parameters that are given, all of them known.
fn given(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    parameters::policy::given(body, policy::READ, policy::OTHER)
}

fn ask(root: &Part<'_>, fields: &Map<String, Value>, max_tokens: Option<u32>, pace: Pace) -> Result<Ask, ApiError> {
    let model = root.required("model", "the name of a model")?.to_owned();
    let (messages, last) = messages::read(root)?;
    let tools = tools::read(root)?;
    let (choice, parallel) = tools::choice(root, &tools)?;
    let variables = options::variables(root)?;
    let conversation = Conversation { messages, tools, choice, parallel, last, variables };
    Ok(Ask {
        model,
        prompt: Prompt::Conversation(conversation),
        param: "messages",
        options: options::read(root, fields, max_tokens)?,
        pace,
    })
}
