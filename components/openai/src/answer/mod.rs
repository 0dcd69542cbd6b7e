//! What is generated, in OpenAI's shape: `chat.completion` and
//! `chat.completion.chunk`.

mod logprobs;
mod stream;
#[cfg(test)]
mod tests;
mod whole;

use nala_sdk::llm::{Chunk, Error, Finish, PrefillInfo, Token};

use crate::error::ApiError;
use crate::json;

/// Names what serves: the same fingerprint and seed give the same answer.
const FINGERPRINT: &str = concat!("fp_nala_", env!("CARGO_PKG_VERSION"));

/// What all parts of an answer have in common.
#[derive(Debug, Clone)]
pub struct Head {
    /// Identifies the answer.
    pub id: String,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// The model, as the client named it.
    pub model: String,
}

/// An answer that is being generated.
#[derive(Debug)]
pub struct Answer<C, B> {
    /// What all its parts have in common.
    pub head: Head,
    /// What the prompt cost.
    pub prompt: PrefillInfo,
    /// Whether log-probabilities are reported.
    pub logprobs: bool,
    /// How many answers there are to be.
    pub choices: usize,
    /// What is generated, with the choice that it belongs to.
    pub chunks: C,
    /// The bytes of a token.
    pub bytes: B,
}

/// What can generate answers; the host's generations, or a list in tests.
pub trait Chunks: Iterator<Item = (usize, Result<Chunk, Error>)> {}
impl<T: Iterator<Item = (usize, Result<Chunk, Error>)>> Chunks for T {}

/// What knows the bytes of a token.
pub trait Bytes: FnMut(Token) -> Vec<u8> {}
impl<T: FnMut(Token) -> Vec<u8>> Bytes for T {}

impl Head {
    /// Appends the first fields of an object, with its opening brace.
    fn open(&self, object: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        json::string(&self.id, out);
        out.extend_from_slice(b",\"object\":");
        json::string(object, out);
        out.extend_from_slice(format!(",\"created\":{},\"model\":", self.created).as_bytes());
        json::string(&self.model, out);
        out.extend_from_slice(b",\"system_fingerprint\":");
        json::string(FINGERPRINT, out);
    }
}

/// OpenAI's word for why an answer ended.
///
/// # Errors
/// 503 where it did not end by itself.
fn finish_reason(finish: Finish) -> Result<&'static str, ApiError> {
    match finish {
        Finish::StopToken | Finish::StopText(_) | Finish::ConstraintDone => Ok("stop"),
        Finish::Length | Finish::ContextFull => Ok("length"),
        Finish::Deadline => Err(Error::Deadline.into()),
        Finish::Cancelled => Err(Error::Cancelled.into()),
        Finish::Preempted => Err(Error::Evicted.into()),
    }
}

/// Appends the value of `usage`.
fn usage(prompt: PrefillInfo, completion: u64, out: &mut Vec<u8>) {
    let cached = prompt.cached;
    let prompt = u64::from(prompt.cached) + u64::from(prompt.computed);
    let total = prompt + completion;
    out.extend_from_slice(
        format!(
            "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"total_tokens\":{total},\
             \"prompt_tokens_details\":{{\"cached_tokens\":{cached}}},\
             \"completion_tokens_details\":{{\"reasoning_tokens\":0}}}}"
        )
        .as_bytes(),
    );
}
