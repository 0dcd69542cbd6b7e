//! What the model says, whichever API it is told by.

use std::time::{Duration, Instant};

use agent_loop::Returned;
use chat_format::Event;
use nala_sdk::llm::{Error, PrefillInfo, Sampled, Token};

use crate::error::ApiError;

/// What has been said since the last one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// What the text turned out to be. May lag behind the tokens.
    pub events: Vec<Event>,
    /// The tokens, those without a text included.
    pub tokens: Vec<Sampled>,
    /// How many of the tokens were thoughts.
    pub reasoning_tokens: u32,
    /// Set in a choice's last turn only.
    pub end: Option<End>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The model had said everything, or its grammar allowed nothing more.
    Natural,
    /// A text of `Options::stop` appeared: which one.
    StopText(u32),
    /// `Options::max_tokens` were generated.
    Length,
    /// The context is full.
    ContextFull,
}

/// What is heard of an answer in which tools are called that are the server's.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// The model says something.
    Said(Turn),
    /// A call is over. They are numbered in the order in which the model ended them.
    Returned(Returned),
    /// The model has read what the tools said.
    Read(PrefillInfo),
}

/// Turns as they are made, each with the choice that it belongs to; an error ends
/// them. The host's generations, or a list in tests.
pub trait Turns: Iterator<Item = (usize, Result<Turn, ApiError>)> {}
impl<T: Iterator<Item = (usize, Result<Turn, ApiError>)>> Turns for T {}

/// What knows the bytes of a token.
pub trait Bytes: FnMut(Token) -> Vec<u8> {}
impl<T: FnMut(Token) -> Vec<u8>> Bytes for T {}

/// An answer that is being made. Its first turn is there already, so that what
/// fails before has a status of its own.
#[derive(Debug)]
pub struct Running<T, B> {
    /// The model, as the client named it.
    pub model: String,
    /// When it began, in seconds since 1970.
    pub created: u64,
    /// What the prompt cost.
    pub prompt: PrefillInfo,
    /// How long it took to compute, waiting for others included.
    pub prompt_time: Duration,
    /// When that was done, and tokens began to be made.
    pub generating: Instant,
    /// How many answers there are to be.
    pub choices: usize,
    /// What is said. Ends when all choices have ended, or with an error.
    pub turns: T,
    /// The bytes of a token.
    pub bytes: B,
}

impl<T, B> Running<T, B> {
    /// The same where what is said is told in another way.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> Running<U, B> {
        let Self { model, created, prompt, prompt_time, generating, choices, turns, bytes } = self;
        Running { model, created, prompt, prompt_time, generating, choices, turns: map(turns), bytes }
    }
}

/// The generation ended without saying why.
pub(crate) fn broke_off() -> ApiError {
    Error::Backend("the generation broke off".to_owned()).into()
}
