//! The parameters of a completion.
//!
//! They mean what they do in chat completions ([`crate::parameters`]), the penalties,
//! the sampling extensions and the grammars included, but for these:
//!
//! - `max_tokens` is 16 if not given, as at OpenAI.
//! - `logprobs` is a number from 0 to 5: so many alternatives a token.
//! - `prompt` may be several prompts. Their answers are numbered prompt by prompt, and
//!   there are at most 8, `n` for each prompt. They run together and a stream has them
//!   one prompt after another.
//! - `echo` puts the prompt before the answer. With `logprobs` it is refused: the
//!   probabilities of a prompt's tokens are not known.
//! - `best_of` may only be what `n` is, and `suffix` only empty.
//! - `parse_special`, an extension by a name of llama.cpp's server: whether `prompt` was
//!   written for this model, so that its control tokens are meant. False if not given,
//!   other than there: what a user wrote cannot end a turn by default.

use serde_json::Value;

use super::prompts::{self, Echo, Written};
use crate::ask::Ask;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::parameters::policy::{self, Names, Policy};
use crate::parameters::{self, Delivery, MAX_CHOICES, sampling};

/// Tokens of an answer if the client says nothing of it, as at OpenAI.
pub const DEFAULT_MAX_TOKENS: u32 = 16;

/// The most alternatives a token, as at OpenAI.
pub const MAX_LOGPROBS: u64 = 5;

/// A checked request for completions.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// One for each prompt, never none.
    pub asks: Vec<Ask>,
    /// Whether answers begin with their prompt.
    pub echo: Echo,
    /// How many alternatives to report a token. None: no log-probabilities.
    pub logprobs: Option<u32>,
    /// How the answer is to come.
    pub delivery: Delivery,
}

/// The parameters that are read.
pub const READ: Names = &[
    &[
        "model",
        "prompt",
        "suffix",
        "echo",
        "best_of",
        "parse_special",
        "ignore_eos",
        "response_format",
        "grammar",
        "json_schema",
        "stop",
        "max_tokens",
        "stream",
        "stream_options",
        "n",
        "logprobs",
        "logit_bias",
    ],
    sampling::NAMES,
];

/// Those that are accepted and change nothing about the answer.
pub const OTHER: &[(&str, Policy)] = &[("user", Policy::Harmless), ("cache_prompt", Policy::Harmless)];

/// Reads and checks the body of a request.
///
/// # Errors
/// 400, with the position where it does not parse or the parameter that is wrong.
pub fn read(body: &[u8]) -> Result<Request, ApiError> {
    let mut map = policy::given(body, READ, OTHER)?;
    let logprobs = Fields(&map).integer("logprobs", 0, MAX_LOGPROBS)?;
    let logprobs = logprobs.and_then(|count| u32::try_from(count).ok());
    // Of another type than in chat completions.
    map.remove("logprobs");

    let fields = Fields(&map);
    let mut options = parameters::options(&fields)?;
    options.top_logprobs = logprobs;
    options.max_tokens.get_or_insert(DEFAULT_MAX_TOKENS);
    let written = match fields.boolean("parse_special")? {
        Some(true) => Written::ForTheModel,
        _ => Written::ByAnybody,
    };
    let prompts = prompts::read(map.get("prompt"), written)?;
    check_count(prompts.len() as u64, options.choices.into())?;
    check_best_of(&fields, options.choices.into())?;
    refuse_suffix(map.get("suffix"))?;
    let echo = match fields.boolean("echo")? {
        Some(true) if logprobs.is_some() => {
            let message = "'echo' with 'logprobs' is not supported: the probabilities of the prompt's tokens are not \
                           known; leave one of them out";
            return Err(ApiError::unsupported("echo", message));
        }
        Some(true) => Echo::Prompt,
        _ => Echo::Nothing,
    };
    let delivery = fields.delivery()?;
    let model = fields.text("model")?.ok_or_else(|| ApiError::missing("model", "the name of a model"))?;
    let ask =
        |prompt| Ask { model: model.clone(), prompt, param: "prompt", options: options.clone(), pace: delivery.pace() };
    Ok(Request { asks: prompts.into_iter().map(ask).collect(), echo, logprobs, delivery })
}

fn check_count(prompts: u64, n: u64) -> Result<(), ApiError> {
    if prompts * n <= MAX_CHOICES {
        return Ok(());
    }
    let message = format!("{prompts} prompts with 'n' of {n} make more than {MAX_CHOICES} answers; send fewer");
    Err(ApiError::invalid("prompt", message))
}

/// Answers are not made to be thrown away.
fn check_best_of(fields: &Fields<'_>, n: u64) -> Result<(), ApiError> {
    match fields.integer("best_of", 1, u64::MAX)? {
        Some(best_of) if best_of != n => {
            let message = format!("'best_of' is {best_of}, but only the value of 'n', which is {n}, is supported");
            Err(ApiError::unsupported("best_of", message))
        }
        _ => Ok(()),
    }
}

fn refuse_suffix(value: Option<&Value>) -> Result<(), ApiError> {
    match value {
        None => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(_) => Err(ApiError::unsupported("suffix", "'suffix' is not supported; leave it out")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ask::Pace;
    use crate::ask::Prompt;
    use crate::parameters::StreamUsage;
    use crate::parameters::output::Output;

    fn request(more: Value) -> Result<Request, ApiError> {
        let mut body = json!({"model": "m", "prompt": "hi"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(body.to_string().as_bytes())
    }

    #[test]
    fn the_least_request_has_openais_defaults() {
        let read = request(json!({"suffix": null, "logprobs": null})).unwrap();
        assert_eq!((read.asks.len(), read.echo, read.logprobs), (1, Echo::Nothing, None));
        assert_eq!(read.delivery, Delivery::Whole);
        let ask = &read.asks[0];
        assert_eq!((ask.options.max_tokens, ask.options.choices), (Some(16), 1));
        assert_eq!((ask.options.top_logprobs, ask.param), (None, "prompt"));
        assert_eq!(ask.prompt, Prompt::Text("hi".to_owned()));
    }

    #[test]
    fn all_parameters_arrive() {
        let read = request(json!({
            "prompt": ["<s>", "b"], "parse_special": true, "n": 2, "best_of": 2, "max_tokens": 3, "echo": true,
            "suffix": "", "stream": true, "stream_options": {"include_usage": true}, "stop": "x", "temperature": 0,
            "grammar": "root ::= \"a\"", "ignore_eos": true, "user": "u",
        }))
        .unwrap();
        assert_eq!((read.asks.len(), read.echo), (2, Echo::Prompt));
        assert_eq!(read.delivery, Delivery::Events(StreamUsage::Included));
        let ask = &read.asks[1];
        assert_eq!((ask.prompt.clone(), ask.pace), (Prompt::Template("b".to_owned()), Pace::ByToken));
        let options = &ask.options;
        assert_eq!((options.max_tokens, options.choices, options.sampler.temperature), (Some(3), 2, 0.0));
        assert_eq!((options.stop.as_slice(), options.at_end), (&["x".to_owned()][..], parameters::AtEnd::GoOn));
        assert!(matches!(options.output, Output::Gbnf(_)));
        assert_eq!(request(json!({"logprobs": 5})).unwrap().asks[0].options.top_logprobs, Some(5));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, param) in [
            (json!({"model": null}), "model"),
            (json!({"prompt": null}), "prompt"),
            (json!({"messages": []}), "messages"),
            (json!({"max_completion_tokens": 3}), "max_completion_tokens"),
            (json!({"tools": []}), "tools"),
            (json!({"logprobs": true}), "logprobs"),
            (json!({"logprobs": 6}), "logprobs"),
            (json!({"top_logprobs": 1}), "top_logprobs"),
            (json!({"echo": true, "logprobs": 0}), "echo"),
            (json!({"echo": 1}), "echo"),
            (json!({"suffix": "x"}), "suffix"),
            (json!({"n": 2, "best_of": 3}), "best_of"),
            (json!({"best_of": 0}), "best_of"),
            (json!({"prompt": ["a", "b", "c"], "n": 3}), "prompt"),
            (json!({"n": 9}), "n"),
            (json!({"parse_special": "yes"}), "parse_special"),
            (json!({"max_tokens": 0}), "max_tokens"),
            (json!({"stream_options": {}}), "stream_options"),
            (json!({"grammar": "x", "json_schema": {}}), "json_schema"),
        ] {
            let error = request(more.clone()).expect_err(&more.to_string());
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{more}: {}", error.message);
        }
    }
}
