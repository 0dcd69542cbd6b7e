//! `POST /v1/completions`: texts that go on from others, without a conversation.
//!
//! OpenAI's shape, with the extensions of chat completions that make sense here
//! ([`parameters`]). llama.cpp's `/completion` has another shape and
//! is not served.

mod answer;
mod logprobs;
pub mod parameters;
mod prompts;
#[cfg(test)]
mod tests;

use nala_sdk::http::{Request, Response};

use crate::ask::Ask;
use crate::begin::begin_one_of;
use crate::error::ApiError;
use crate::ids::Ids;
use crate::parameters::Delivery;
use crate::turn::{Bytes, Running, Turns};

pub use answer::{Answer, Part};
pub use prompts::Echo;
pub(crate) use prompts::tokens;

/// Goes on from texts.
///
/// # Errors
/// [`ApiError`], as long as no token has been sent.
pub fn complete(request: Request) -> Result<Response, ApiError> {
    let asked = parameters::read(&request.bytes()?)?;
    let count = u32::try_from(asked.asks.len()).unwrap_or(u32::MAX);
    let mut parts = Vec::with_capacity(asked.asks.len());
    for (index, ask) in asked.asks.into_iter().enumerate() {
        let prompt = ask.prompt.clone();
        let mut running = begin(ask, index, count)?;
        let echo = asked.echo.of(&prompt, &mut running.bytes);
        parts.push(Part { running, echo });
    }
    let answer = Answer { parts, ids: Ids::random(), logprobs: asked.logprobs };
    match asked.delivery {
        Delivery::Whole => Ok(Response::new(200, "application/json", answer.whole()?)),
        Delivery::Events(usage) => Ok(Response::events(move |out| answer.stream(usage, out))),
    }
}

/// Begins one of `count` prompts. What is wrong with it is said with its number.
fn begin(ask: Ask, index: usize, count: u32) -> Result<Running<impl Turns, impl Bytes>, ApiError> {
    begin_one_of(ask, count).map_err(|mut error| {
        if count > 1 && error.param.as_deref() == Some("prompt") {
            error.message = format!("prompt[{index}]: {}", error.message);
        }
        error
    })
}
