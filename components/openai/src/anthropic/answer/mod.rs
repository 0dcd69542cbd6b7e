//! What is generated, in Anthropic's shape: `message`, and the events that build
//! one.
//!
//! Text, thoughts and calls become blocks in the order in which the model made
//! them. An answer that says nothing has none.
//!
//! A call becomes a `tool_use` block with an object as its `input`, whatever
//! happens:
//!
//! - Where the answer is cut off in the middle, the block is the last one, and
//!   `stop_reason` says so, as at Anthropic: ask again with more `max_tokens`. Its
//!   `input` has the members that are whole; as events, the pieces end where the
//!   model did.
//! - Where the model wrote no JSON, the block has the members that are whole, and a
//!   block of text behind it has everything that the model wrote as arguments. If no
//!   other call is well, `stop_reason` is not `tool_use`.
//!
//! A call has the id that the model gave it, where its notation has ids: the
//! template will want it back. Other ids are made here.

mod assemble;
mod stream;
#[cfg(test)]
mod tests;
mod whole;

use nala_sdk::http::Response;
use nala_sdk::llm::PrefillInfo;

use super::{Delivery, Shape, Thoughts};
use crate::error::ApiError;
use crate::ids::Ids;
use crate::json;
use crate::turn::{Bytes, End, Running, Turns};

/// The signature of each block of thoughts. Nothing is signed, but clients want some
/// text there and send it back.
pub const SIGNATURE: &str = "nala-unsigned";

/// An answer that is being generated.
#[derive(Debug)]
pub struct Answer<T, B> {
    /// Its ids.
    pub ids: Ids,
    /// Whether thoughts are shown.
    pub thoughts: Thoughts,
    /// The texts that end it.
    pub stop: Vec<String>,
    /// What is generated. Of several choices the first is the answer.
    pub running: Running<T, B>,
}

impl Shape {
    /// Answers in this shape: waits for the whole answer, or streams it.
    ///
    /// # Errors
    /// What the generation fails with, unless events are streamed, where that is one
    /// of them.
    pub fn respond<T, B>(self, ids: Ids, running: Running<T, B>) -> Result<Response, ApiError>
    where
        T: Turns + 'static,
        B: Bytes + 'static,
    {
        let answer = Answer { ids, thoughts: self.thoughts, stop: self.stop, running };
        match self.delivery {
            Delivery::Whole => Ok(Response::new(200, "application/json", answer.whole()?)),
            Delivery::Events => Ok(Response::events(move |out| answer.stream(out))),
        }
    }
}

/// Appends the first fields of a message, with its opening brace, up to its content.
fn open(id: &str, model: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    json::string(id, out);
    out.extend_from_slice(b",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    json::string(model, out);
    out.extend_from_slice(b",\"content\":");
}

/// Why an answer ended, in Anthropic's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stop<'a> {
    reason: &'static str,
    /// The text that ended it.
    sequence: Option<&'a str>,
}

impl<'a> Stop<'a> {
    /// `calls` is how many calls ended well.
    fn of(end: End, calls: usize, texts: &'a [String]) -> Self {
        let (reason, sequence) = match (end, texts) {
            (End::Natural, _) if calls > 0 => ("tool_use", None),
            (End::Natural, _) => ("end_turn", None),
            (End::StopText(index), _) => {
                ("stop_sequence", usize::try_from(index).ok().and_then(|index| texts.get(index)))
            }
            (End::Length, _) => ("max_tokens", None),
            (End::ContextFull, _) => ("model_context_window_exceeded", None),
        };
        Self { reason, sequence: sequence.map(String::as_str) }
    }

    /// Appends the fields about the end. There are details of refusals alone.
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"stop_reason\":");
        json::string(self.reason, out);
        out.extend_from_slice(b",\"stop_details\":null,\"stop_sequence\":");
        match self.sequence {
            Some(text) => json::string(text, out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

/// How many tokens were generated.
#[derive(Debug, Clone, Copy, Default)]
struct Generated {
    tokens: u64,
    /// Those that were thoughts.
    thinking: u64,
}

/// Appends the value of `usage`. Input counts apart from what was in the cache, as
/// at Anthropic, and nothing has to be asked to go there.
fn usage(prompt: PrefillInfo, generated: Generated, out: &mut Vec<u8>) {
    out.extend_from_slice(
        format!(
            "{{\"input_tokens\":{},\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":{},\
             \"output_tokens\":{},\"output_tokens_details\":{{\"thinking_tokens\":{}}}}}",
            prompt.computed, prompt.cached, generated.tokens, generated.thinking
        )
        .as_bytes(),
    );
}
