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
//! `top_k`, `min_p` and `repeat_penalty` are extensions, by the names that
//! llama.cpp's server gave them.

use nala_sdk::chat::Message;
use nala_sdk::llm::{Bias, MAX_LOGPROBS, Sampler};
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::messages::{self, brief};

/// The floor of probability, relative to the best token, when the client sets
/// none of `top_p`, `top_k` and `min_p`.
pub const DEFAULT_MIN_P: f32 = 0.05;

/// The most stop texts that are accepted. OpenAI accepts 4.
pub const MAX_STOP: usize = 16;

/// A checked request.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The name of the model.
    pub model: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// How tokens are chosen. The penalties' window is still open: it is as long
    /// as the answer may become.
    pub sampler: Sampler,
    /// The most tokens to generate. None: to the end of the context.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Added to single logits.
    pub bias: Vec<Bias>,
    /// How many alternatives to report a token. None: no log-probabilities.
    pub top_logprobs: Option<u32>,
    /// How the answer is to come.
    pub delivery: Delivery,
}

/// How the answer is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As one JSON object.
    Whole,
    /// As server-sent events.
    Events(StreamUsage),
}

/// Whether a stream ends with the usage (`stream_options.include_usage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamUsage {
    /// It does, and every chunk has a `usage`, null in all but that one.
    Included,
    /// No chunk has a `usage`.
    Absent,
}

/// What is done with a parameter that is not read.
#[derive(Debug, Clone, Copy)]
pub enum Policy {
    /// Accepted: it changes nothing about the answer.
    Harmless,
    /// Accepted with a value that asks for nothing, refused otherwise.
    Only(fn(&Value) -> bool, &'static str),
}

/// The parameters that are read.
pub const READ: [&str; 19] = [
    "model",
    "messages",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repeat_penalty",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "n",
    "logprobs",
    "top_logprobs",
    "logit_bias",
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
    // Without tools there is nothing to call in parallel.
    ("parallel_tool_calls", Policy::Harmless),
    ("tools", Policy::Only(is_empty, "leave it out")),
    ("tool_choice", Policy::Only(is_none_or_auto, "leave it out or send \"none\"")),
    ("functions", Policy::Only(is_empty, "leave it out")),
    ("function_call", Policy::Only(is_none_or_auto, "leave it out or send \"none\"")),
    ("response_format", Policy::Only(is_text_format, "leave it out or send {\"type\": \"text\"}")),
    ("modalities", Policy::Only(is_text_list, "leave it out or send [\"text\"]")),
    ("audio", Policy::Only(never, "leave it out")),
    ("web_search_options", Policy::Only(never, "leave it out")),
    ("moderation", Policy::Only(never, "leave it out")),
    ("reasoning_effort", Policy::Only(is_none, "leave it out or send \"none\"")),
    ("verbosity", Policy::Only(is_medium, "leave it out or send \"medium\"")),
];

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn is_none(value: &Value) -> bool {
    value == "none"
}

fn is_none_or_auto(value: &Value) -> bool {
    value == "none" || value == "auto"
}

fn is_medium(value: &Value) -> bool {
    value == "medium"
}

fn is_text_format(value: &Value) -> bool {
    value.get("type").is_some_and(|kind| kind == "text")
}

fn is_text_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| matches!(list.as_slice(), [one] if one == "text"))
}

fn never(_: &Value) -> bool {
    false
}

/// Reads and checks the body of a request.
///
/// # Errors
/// 400, with the position where it does not parse or the parameter that is wrong.
pub fn read(body: &[u8]) -> Result<Parameters, ApiError> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| ApiError::malformed(format!("the request body is not valid JSON: {error}")))?;
    let Value::Object(mut fields) = value else {
        return Err(ApiError::malformed(format!("the request body must be a JSON object, not {}", brief(&value))));
    };
    fields.retain(|_, value| !value.is_null());
    refuse_what_is_not_read(&fields)?;

    let fields = Fields(&fields);
    if let Some(n) = fields.integer("n", 1, u64::MAX)?
        && n != 1
    {
        return Err(ApiError::unsupported("n", format!("'n' is {n}, but only 1 is supported yet")));
    }
    Ok(Parameters {
        model: fields.text("model")?.ok_or_else(|| ApiError::missing("model", "the name of a model"))?,
        messages: messages::read(fields.0.get("messages"))?,
        sampler: fields.sampler()?,
        max_tokens: fields.max_tokens()?,
        stop: fields.stop()?,
        bias: fields.bias()?,
        top_logprobs: fields.top_logprobs()?,
        delivery: fields.delivery()?,
    })
}

fn refuse_what_is_not_read(fields: &Map<String, Value>) -> Result<(), ApiError> {
    for (name, value) in fields {
        if READ.contains(&name.as_str()) {
            continue;
        }
        let policy = OTHER.iter().find(|(known, _)| known == name).map(|(_, policy)| policy);
        match policy {
            Some(Policy::Harmless) => {}
            Some(Policy::Only(accepts, _)) if accepts(value) => {}
            Some(Policy::Only(_, instead)) => {
                return Err(ApiError::unsupported(name, format!("'{name}' is not supported yet; {instead}")));
            }
            None => {
                let mut error = ApiError::invalid(name, format!("unknown parameter '{name}'"));
                error.code = Some("unknown_parameter");
                return Err(error);
            }
        }
    }
    Ok(())
}

/// The parameters that are given, none of them null.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn wrong(name: &str, must: &str, value: &Value) -> ApiError {
        ApiError::invalid(name, format!("'{name}' must be {must}, not {}", brief(value)))
    }

    fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(Self::wrong(name, "a string", other)),
        }
    }

    fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(Self::wrong(name, "true or false", other)),
        }
    }

    fn number(&self, name: &str, least: f64, most: f64) -> Result<Option<f32>, ApiError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        match value.as_f64() {
            #[allow(clippy::cast_possible_truncation, reason = "the range is small")]
            Some(number) if (least..=most).contains(&number) => Ok(Some(number as f32)),
            _ => Err(Self::wrong(name, &format!("a number from {least} to {most}"), value)),
        }
    }

    fn integer(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let range = match most {
                    u64::MAX => format!("an integer of at least {least}"),
                    most => format!("an integer from {least} to {most}"),
                };
                Err(Self::wrong(name, &range, value))
            }
        }
    }

    fn sampler(&self) -> Result<Sampler, ApiError> {
        let top_p = self.number("top_p", 0.0, 1.0)?;
        let top_k = self.integer("top_k", 0, u64::from(u32::MAX))?;
        let min_p = self.number("min_p", 0.0, 1.0)?;
        let uncut = top_p.is_none() && top_k.is_none();
        let seed = match self.0.get("seed") {
            None => None,
            Some(value) => {
                let seed = value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned));
                Some(seed.ok_or_else(|| Self::wrong("seed", "an integer", value))?)
            }
        };
        Ok(Sampler {
            temperature: self.number("temperature", 0.0, 2.0)?.unwrap_or(1.0),
            top_p: top_p.unwrap_or(1.0),
            top_k: top_k.and_then(|k| u32::try_from(k).ok()).unwrap_or(0),
            min_p: min_p.unwrap_or(if uncut { DEFAULT_MIN_P } else { 0.0 }),
            repeat_penalty: self.number("repeat_penalty", 0.1, 10.0)?.unwrap_or(1.0),
            frequency_penalty: self.number("frequency_penalty", -2.0, 2.0)?.unwrap_or(0.0),
            presence_penalty: self.number("presence_penalty", -2.0, 2.0)?.unwrap_or(0.0),
            penalty_window: 0,
            seed,
        })
    }

    fn max_tokens(&self) -> Result<Option<u32>, ApiError> {
        let read = |name| self.integer(name, 1, u64::MAX);
        let tokens = match (read("max_tokens")?, read("max_completion_tokens")?) {
            (Some(old), Some(new)) if old != new => {
                return Err(ApiError::invalid(
                    "max_tokens",
                    format!("'max_tokens' ({old}) contradicts 'max_completion_tokens' ({new}); send one of them"),
                ));
            }
            (old, new) => new.or(old),
        };
        // More than fits is cut at the end of the context anyway.
        Ok(tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)))
    }

    fn stop(&self) -> Result<Vec<String>, ApiError> {
        let Some(value) = self.0.get("stop") else { return Ok(Vec::new()) };
        let texts = match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(list) if list.len() <= MAX_STOP => {
                let texts: Option<Vec<_>> = list.iter().map(|text| text.as_str().map(str::to_owned)).collect();
                texts.unwrap_or(vec![String::new()])
            }
            _ => vec![String::new()],
        };
        if texts.iter().any(String::is_empty) {
            let must = format!("a string that is not empty, or a list of at most {MAX_STOP} of them");
            return Err(Self::wrong("stop", &must, value));
        }
        Ok(texts)
    }

    fn bias(&self) -> Result<Vec<Bias>, ApiError> {
        let Some(value) = self.0.get("logit_bias") else { return Ok(Vec::new()) };
        let read = |(token, add): (&String, &Value)| {
            let add = add.as_f64().filter(|add| (-100.0..=100.0).contains(add))?;
            #[allow(clippy::cast_possible_truncation, reason = "the range is small")]
            Some(Bias { id: token.parse().ok()?, add: add as f32 })
        };
        let all = value.as_object().and_then(|map| map.iter().map(read).collect());
        all.ok_or_else(|| Self::wrong("logit_bias", "an object of token ids and numbers from -100 to 100", value))
    }

    fn top_logprobs(&self) -> Result<Option<u32>, ApiError> {
        let top = self.integer("top_logprobs", 0, u64::from(MAX_LOGPROBS))?;
        match (self.boolean("logprobs")?.unwrap_or(false), top) {
            (false, Some(_)) => Err(ApiError::invalid("top_logprobs", "'top_logprobs' needs 'logprobs' to be true")),
            (false, None) => Ok(None),
            (true, top) => Ok(Some(top.and_then(|top| u32::try_from(top).ok()).unwrap_or(0))),
        }
    }

    fn delivery(&self) -> Result<Delivery, ApiError> {
        let streams = self.boolean("stream")?.unwrap_or(false);
        let Some(options) = self.0.get("stream_options") else {
            return Ok(if streams { Delivery::Events(StreamUsage::Absent) } else { Delivery::Whole });
        };
        if !streams {
            return Err(ApiError::invalid("stream_options", "'stream_options' needs 'stream' to be true"));
        }
        let Value::Object(options) = options else {
            return Err(Self::wrong("stream_options", "an object", options));
        };
        let mut usage = StreamUsage::Absent;
        for (name, value) in options {
            match (name.as_str(), value) {
                ("include_usage", Value::Bool(true)) => usage = StreamUsage::Included,
                // Random padding against traffic analysis, which is for TLS
                // over the open network; there is none of it here.
                ("include_usage" | "include_obfuscation", Value::Bool(_) | Value::Null) => {}
                ("include_usage" | "include_obfuscation", other) => {
                    return Err(Self::wrong(&format!("stream_options.{name}"), "true or false", other));
                }
                _ => {
                    let at = format!("stream_options.{name}");
                    return Err(ApiError::invalid(&*at, format!("unknown parameter '{at}'")));
                }
            }
        }
        Ok(Delivery::Events(usage))
    }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
