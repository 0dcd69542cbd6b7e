//! The parameters of a chat completion: which there are, what they may be, what
//! they are when not given.
//!
//! What cannot be honoured is refused instead of ignored, unless ignoring it
//! changes nothing that the client can see: [`OTHER`] is the whole policy. A
//! `null` counts as not given everywhere, as at OpenAI.
//!
//! Defaults are OpenAI's (`temperature` 1, `top_p` 1), with one addition: when
//! the client cuts the distribution in no way of its own (`top_p`, `top_k`,
//! `min_p`), tokens less than 5 % as probable as the best are left out
//! ([`DEFAULT_MIN_P`], also llama.cpp's default). Drawing from the whole
//! vocabulary at temperature 1 derails small quantised models.
//!
//! Further ways to sample ([`READ`] names them, `sampling.rs` reads them), and the
//! grammars `grammar` and `json_schema`, are extensions by the names that llama.cpp's
//! server gave them. Its penalties look at the prompt, too; ours look at the answer.

pub(crate) mod bias;
mod conversation;
pub(crate) mod fields;
pub(crate) mod object;
pub mod output;
pub mod policy;
pub(crate) mod sampling;
pub(crate) mod stop;
mod tools;

use serde_json::{Map, Value};

use crate::ask::{Ask, Options, Pace, Prompt};
use crate::chat::{Thoughts, Timings};
use crate::error::ApiError;
use fields::Fields;
use policy::{Names, Policy, is_empty, never};

/// The floor of probability, relative to the best token, when the client sets
/// none of `top_p`, `top_k` and `min_p`, and no mirostat, which makes a cut of its
/// own.
pub const DEFAULT_MIN_P: f32 = 0.05;

/// A checked request for a chat completion.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What is asked for.
    pub ask: Ask,
    /// How the answer is to come.
    pub delivery: Delivery,
    /// Where thoughts go.
    pub thoughts: Thoughts,
    /// Whether it is said what took how long.
    pub timings: Timings,
}

/// What to do where the model ends its turn (`ignore_eos`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// The answer ends.
    Stop,
    /// It goes on.
    GoOn,
}

/// The most answers to one request (`n`). OpenAI gives up to 128; each takes a
/// session here, of which a component has 16.
pub const MAX_CHOICES: u64 = 8;

/// How the answer is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As one JSON object.
    Whole,
    /// As server-sent events.
    Events(StreamUsage),
}

impl Delivery {
    /// How often the client hears of what is generated.
    #[must_use]
    pub fn pace(self) -> Pace {
        match self {
            Self::Whole => Pace::AtOnce,
            Self::Events(_) => Pace::ByToken,
        }
    }
}

/// Whether a stream ends with the usage (`stream_options.include_usage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamUsage {
    /// It does, and every chunk has a `usage`, null in all but that one.
    Included,
    /// No chunk has a `usage`.
    Absent,
}

/// The parameters that are read.
pub const READ: Names = &[
    &[
        "model",
        "messages",
        "ignore_eos",
        "response_format",
        "grammar",
        "json_schema",
        "stop",
        "max_tokens",
        "max_completion_tokens",
        "stream",
        "stream_options",
        "n",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning_effort",
        "chat_template_kwargs",
        "continue_final_message",
        "add_generation_prompt",
        "reasoning_format",
        "timings_per_token",
    ],
    sampling::NAMES,
];

/// All other parameters that OpenAI's API has. Any that is in neither list is
/// refused as unknown.
pub const OTHER: &[(&str, Policy)] = &[
    // About the account, the bill and caches: not about the answer.
    ("user", Policy::Harmless),
    ("metadata", Policy::Harmless),
    ("store", Policy::Harmless),
    ("service_tier", Policy::Harmless),
    ("safety_identifier", Policy::Harmless),
    ("prompt_cache_key", Policy::Harmless),
    ("prompt_cache_options", Policy::Harmless),
    ("prompt_cache_retention", Policy::Harmless),
    // Only ever makes an answer come sooner.
    ("prediction", Policy::Harmless),
    ("functions", Policy::OnlyYet(is_empty, "send 'tools'")),
    ("function_call", Policy::OnlyYet(is_none_or_auto, "send 'tool_choice'")),
    // Whether what came before is found again is the host's business.
    ("cache_prompt", Policy::Harmless),
    ("modalities", Policy::OnlyYet(is_text_list, "leave it out or send [\"text\"]")),
    ("audio", Policy::OnlyYet(never, "leave it out")),
    ("web_search_options", Policy::OnlyYet(never, "leave it out")),
    ("moderation", Policy::OnlyYet(never, "leave it out")),
    ("verbosity", Policy::OnlyYet(is_medium, "leave it out or send \"medium\"")),
];

fn is_none_or_auto(value: &Value) -> bool {
    value == "none" || value == "auto"
}

fn is_medium(value: &Value) -> bool {
    value == "medium"
}

fn is_text_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| matches!(list.as_slice(), [one] if one == "text"))
}

/// Reads and checks the body of a request.
///
/// # Errors
/// 400, with the position where it does not parse or the parameter that is wrong.
pub fn read(body: &[u8]) -> Result<Request, ApiError> {
    read_fields(object::read(body)?)
}

/// The same, for a body that has been read as an object.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_fields(fields: Map<String, Value>) -> Result<Request, ApiError> {
    let fields = policy::given_of(fields, READ, OTHER)?;
    let fields = Fields(&fields);
    let delivery = fields.delivery()?;
    let ask = Ask {
        model: fields.text("model")?.ok_or_else(|| ApiError::missing("model", "the name of a model"))?,
        prompt: Prompt::Conversation(conversation::read(&fields)?),
        param: "messages",
        options: options(&fields)?,
        pace: delivery.pace(),
    };
    Ok(Request {
        ask,
        delivery,
        thoughts: conversation::thoughts(&fields)?,
        timings: match fields.boolean("timings_per_token")? {
            Some(true) => Timings::Reported,
            _ => Timings::Absent,
        },
    })
}

/// How text is generated.
pub(crate) fn options(fields: &Fields<'_>) -> Result<Options, ApiError> {
    let choices = fields.integer("n", 1, MAX_CHOICES)?;
    Ok(Options {
        sampler: sampling::sampler(fields)?,
        dry_breakers: sampling::dry_breakers(fields)?,
        at_end: if fields.boolean("ignore_eos")?.unwrap_or(false) { AtEnd::GoOn } else { AtEnd::Stop },
        output: output::read(fields)?,
        choices: choices.and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
        max_tokens: fields.max_tokens()?,
        stop: stop::read(fields.0.get("stop"))?,
        bias: bias::read(fields.0.get("logit_bias"))?,
        top_logprobs: fields.top_logprobs()?,
    })
}

#[cfg(test)]
mod tests;
