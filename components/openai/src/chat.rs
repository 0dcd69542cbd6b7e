//! `POST /v1/chat/completions`.

use std::time::{SystemTime, UNIX_EPOCH};

use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{Chunk, Error, Generation, Together};
use nala_sdk::wasi::random::random::get_random_u64;

use crate::answer::{Answer, Head};
use crate::error::ApiError;
use crate::parameters::{self, Delivery};
use crate::prompt::{self, Begun};

/// Answers a conversation.
///
/// # Errors
/// [`ApiError`], as long as no token has been sent.
pub fn complete(request: Request) -> Result<Response, ApiError> {
    // What is sent compressed would look like broken JSON.
    if let Some(encoding) = request.header("content-encoding")
        && !encoding.split(',').all(|coding| coding.trim().eq_ignore_ascii_case("identity"))
    {
        return Err(ApiError::content_encoding(encoding));
    }
    let parameters = parameters::read(&request.bytes()?)?;
    let Begun { model, prompt, generations } = prompt::begin(&parameters)?;
    let choices = generations.len();
    let mut chunks = Source::of(generations);
    // The first token is awaited here, so that what fails up to it has a status.
    let first = match chunks.next() {
        Some((index, first)) => Some((index, Ok(first?))),
        None => None,
    };

    let head = Head {
        id: format!("chatcmpl-{:016x}{:016x}", get_random_u64(), get_random_u64()),
        created: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |past| past.as_secs()),
        model: parameters.model,
    };
    let answer = Answer {
        head,
        prompt,
        logprobs: parameters.top_logprobs.is_some(),
        choices,
        chunks: first.into_iter().chain(chunks),
        bytes: move |token| model.decode(&[token]).unwrap_or_default(),
    };
    match parameters.delivery {
        Delivery::Whole => Ok(Response::new(200, "application/json", answer.whole()?)),
        Delivery::Events(usage) => Ok(Response::stream("text/event-stream", move |out| answer.stream(usage, out))
            .with_header("cache-control", "no-cache")),
    }
}

/// What is generated, with the choice that it belongs to.
enum Source {
    /// One choice, which needs no looking for the one that has something.
    One(Generation),
    Many(Together),
}

impl Source {
    fn of(mut generations: Vec<Generation>) -> Self {
        match (generations.pop(), generations.is_empty()) {
            (Some(only), true) => Self::One(only),
            (last, _) => {
                generations.extend(last);
                Self::Many(Together::new(generations))
            }
        }
    }
}

impl Iterator for Source {
    type Item = (usize, Result<Chunk, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::One(generation) => generation.next().map(|chunk| (0, chunk)),
            Self::Many(all) => all.next(),
        }
    }
}
