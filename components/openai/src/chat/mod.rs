//! `POST /v1/chat/completions`.

mod answer;
pub(crate) mod logprobs;
#[cfg(test)]
mod snapshot_tests;
mod stream;
#[cfg(test)]
mod tests;
mod whole;
mod write;

use nala_sdk::http::{Request, Response};

use crate::begin::begin;
use crate::error::ApiError;
use crate::ids::Ids;
use crate::parameters::{self, Delivery};

pub(crate) use answer::FINGERPRINT;
pub use answer::{Answer, Thoughts, Timings};

/// Answers a conversation.
///
/// # Errors
/// [`ApiError`], as long as no token has been sent.
pub fn complete(request: Request) -> Result<Response, ApiError> {
    let parameters::Request { ask, delivery, thoughts, timings } = parameters::read(&request.bytes()?)?;
    let logprobs = ask.options.top_logprobs.is_some();
    let answer = Answer { running: begin(ask)?, ids: Ids::random(), logprobs, thoughts, timings };
    match delivery {
        Delivery::Whole => Ok(Response::new(200, "application/json", answer.whole()?)),
        Delivery::Events(usage) => Ok(Response::events(move |out| answer.stream(usage, out))),
    }
}
