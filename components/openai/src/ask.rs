//! What a client asks for, whichever API it asked by.
//!
//! Each API reads its own requests into an [`Ask`] and writes its own answers
//! from [`Turn`](crate::turn::Turn)s; what is between the two is the same for all.

use chat_format::{Choice, Parallel, Tool};
use nala_sdk::chat::Message;
use nala_sdk::llm::{Bias, Sampler, Token};
use serde_json::{Map, Value};

use crate::parameters::AtEnd;
use crate::parameters::output::Output;

/// A checked request for text.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The name of the model.
    pub model: String,
    /// What is to be gone on from.
    pub prompt: Prompt,
    /// The parameter that the prompt came by, for errors about it: `messages`,
    /// `prompt`, `input`.
    pub param: &'static str,
    /// How text is generated.
    pub options: Options,
    /// How often the client wants to hear of it.
    pub pace: Pace,
}

/// What is to be gone on from.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// A conversation, for the model's chat template.
    Conversation(Conversation),
    /// A text, in which no control tokens are named.
    Text(String),
    /// A text that was written for this model, control tokens included.
    Template(String),
    /// Tokens, as they are.
    Tokens(Vec<Token>),
}

/// A conversation and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// What has been said.
    pub messages: Vec<Message>,
    /// The functions that the model may call.
    pub tools: Vec<Tool>,
    /// Whether it does.
    pub choice: Choice,
    /// Whether it may call several.
    pub parallel: Parallel,
    /// Whether the last message, one of the assistant, is to be gone on from
    /// instead of answered.
    pub last: Last,
    /// Further variables for the template, `enable_thinking` for example.
    pub variables: Map<String, Value>,
}

/// What becomes of a conversation's last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// It is answered.
    Answered,
    /// It is the beginning of the answer.
    Continued,
}

/// How text is generated.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How tokens are chosen. The penalties' window may be longer than an answer
    /// can become.
    pub sampler: Sampler,
    /// Texts over which no repetition reaches that `sampler.dry` looks for.
    pub dry_breakers: Vec<String>,
    /// Whether to go on past the model's own end.
    pub at_end: AtEnd,
    /// What the answer has to be.
    pub output: Output,
    /// How many answers to give.
    pub choices: u32,
    /// The most tokens to generate. None: to the end of the context.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Added to single logits.
    pub bias: Vec<Bias>,
    /// How many alternatives to report a token. None: no log-probabilities.
    pub top_logprobs: Option<u32>,
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As one JSON object.
    Whole,
    /// As server-sent events.
    Events,
}

impl Delivery {
    /// How often the client hears of what is generated.
    #[must_use]
    pub fn pace(self) -> Pace {
        match self {
            Self::Whole => Pace::AtOnce,
            Self::Events => Pace::ByToken,
        }
    }
}

/// How often a client wants to hear of what is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Once, when all is there.
    AtOnce,
    /// With each token.
    ByToken,
}

/// The efforts of thinking, by OpenAI's words.
pub(crate) const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// What an effort of thinking, by OpenAI's words, is to templates: those that know
/// degrees read `reasoning_effort`, those that can only switch read
/// `enable_thinking` or `thinking`.
pub(crate) fn effort(effort: &str, variables: &mut Map<String, Value>) {
    let thinks = effort != "none";
    if thinks {
        variables.insert("reasoning_effort".to_owned(), effort.into());
    }
    self::thinks(thinks, variables);
}

/// Whether the model is to think, by the names that templates have for it.
pub(crate) fn thinks(thinks: bool, variables: &mut Map<String, Value>) {
    variables.insert("enable_thinking".to_owned(), thinks.into());
    variables.insert("thinking".to_owned(), thinks.into());
}
