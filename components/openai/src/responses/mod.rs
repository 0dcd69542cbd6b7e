//! OpenAI's Responses API: `POST /v1/responses`.
//!
//! [`read`] makes an [`Ask`](crate::ask::Ask) of a request and keeps in an
//! [`Echo`] what the answer repeats of it; an [`Answer`] writes what comes of it,
//! as one object or as events in the order of [`EVENT_ORDER`].
//!
//! The shapes are those that the official clients read and those of the open
//! specification Open Responses (openresponses.org), whose required fields are all
//! there. Where the two differ, the official clients' form is written.
//!
//! **Tools of type `mcp` are the server's.** They are those that the manifest grants to this
//! component (`request/served.rs`). The model calls them turn after turn in one session
//! (`begin_served`), and the answer has what came of it as
//! items of its own.
//!
//! **Nothing is stored.** `store` is accepted and answered with `"store": false`;
//! `previous_response_id`, `conversation` and references to items are refused with
//! the advice to send the items themselves.

mod answer;
mod assembly;
mod events;
mod item;
mod object;
mod request;
#[cfg(test)]
mod snapshot_tests;

use std::time::{SystemTime, UNIX_EPOCH};

use nala_sdk::http;

use crate::begin::{begin, begin_served};
use crate::error::ApiError;
use crate::ids::Ids;
use crate::turn::{Bytes, Heard};

pub use crate::ask::Delivery;
pub use answer::Answer;
use answer::Story;
pub use request::{Echo, OTHER, READ, Request, read};

/// The order of the events of a stream, one a line; `*` is any number of times,
/// `|` is a choice.
///
/// Each event is a field `event` with its type and a field `data` with one JSON
/// object, in which `type` stands again; `sequence_number` counts from 0 without
/// gaps. Items follow one another: one is done before the next is added, and
/// `output_index` counts them. The last event carries all items once more; no
/// `[DONE]` comes after it.
///
/// A call of a tool of the server's (`mcp call`) is the exception: it is made once the
/// model's turn is over, so that others of its turn are added before it is done. Where it
/// comes to nothing, `response.mcp_call.failed` stands in place of `completed`.
///
/// An item that is cut off has the status `incomplete`. A call that is cut off
/// is done without `response.function_call_arguments.done`, so that nobody makes it.
/// Where the answer fails, the items stay as they are and `response.failed` is the
/// next event; an event `error` does not come in addition, since the official
/// client and Open Responses disagree about its form.
pub const EVENT_ORDER: &str = "\
response.created
response.in_progress
(mcp list)*
(thoughts | message | call | mcp call)*
response.completed | response.incomplete | response.failed

thoughts:
  response.output_item.added
  response.content_part.added
  response.reasoning_text.delta*
  response.reasoning_text.done
  response.content_part.done
  response.output_item.done

message:
  response.output_item.added
  response.content_part.added
  response.output_text.delta*
  response.output_text.done
  response.content_part.done
  response.output_item.done

call:
  response.output_item.added
  response.function_call_arguments.delta*
  response.function_call_arguments.done
  response.output_item.done

mcp list:
  response.output_item.added
  response.mcp_list_tools.in_progress
  response.mcp_list_tools.completed
  response.output_item.done

mcp call:
  response.output_item.added
  response.mcp_call.in_progress
  response.mcp_call_arguments.delta*
  response.mcp_call_arguments.done
  response.mcp_call.completed | response.mcp_call.failed
  response.output_item.done
";

/// Answers a request.
///
/// # Errors
/// [`ApiError`], as long as no token has been sent.
pub fn respond(request: http::Request) -> Result<http::Response, ApiError> {
    let Request { ask, echo, delivery, server } = read(&request.bytes()?)?;
    let ids = Ids::random();
    match server.served(&ask) {
        None => {
            let running = begin(ask)?.map(|turns| turns.map(|(_, turn)| turn.map(Heard::Said)));
            deliver(Answer { running, echo, server, ids, clock: now }, delivery)
        }
        Some(served) => {
            let running = begin_served(ask, served)?;
            deliver(Answer { running, echo, server, ids, clock: now }, delivery)
        }
    }
}

fn deliver(
    answer: Answer<impl Story + 'static, impl Bytes + 'static>,
    delivery: Delivery,
) -> Result<http::Response, ApiError> {
    match delivery {
        Delivery::Whole => Ok(http::Response::new(200, "application/json", answer.whole()?)),
        Delivery::Events => Ok(http::Response::events(move |out| answer.stream(out))),
    }
}

/// The time, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |past| past.as_secs())
}
