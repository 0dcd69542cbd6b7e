//! The outputs of a call.

use nala_engine::Finish;
use serde::Serialize;

use crate::request::{TEXT, USAGE};
use crate::tensor::Tensor;

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The model ended it.
    Stop,
    /// One of `reverse-prompt` came.
    ReversePrompt,
    /// As many tokens as were asked for.
    Length,
    /// The context, or `ctx-size`, is full.
    ContextFull,
    /// The guest's KV cells are used up, before as many tokens as were asked for.
    Quota,
    /// The grammar allows nothing more.
    Grammar,
    /// The host ended it: its KV cells were needed elsewhere.
    Preempted,
}

impl Ending {
    /// The word for it in the usage.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ReversePrompt => "reverse-prompt",
            Self::Length => "length",
            Self::ContextFull => "context-full",
            Self::Quota => "quota",
            Self::Grammar => "grammar",
            Self::Preempted => "preempted",
        }
    }
}

impl From<Finish> for Ending {
    fn from(finish: Finish) -> Self {
        match finish {
            Finish::StopToken => Self::Stop,
            Finish::StopText(_) => Self::ReversePrompt,
            Finish::Length => Self::Length,
            Finish::ContextFull => Self::ContextFull,
            Finish::ConstraintDone => Self::Grammar,
            // Nobody sets a deadline or cancels; where it happens it is the host.
            Finish::Deadline | Finish::Cancelled | Finish::Preempted => Self::Preempted,
        }
    }
}

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Tokens of the prompt.
    pub input_tokens: u32,
    /// Of those, how many need not be computed.
    pub cached_tokens: u32,
    /// Tokens that were generated, the one that ended the answer included.
    pub output_tokens: u32,
    /// Why it ended.
    pub ending: Ending,
}

impl Answer {
    /// As tensors: the text, and behind it what it took, as JSON with the keys of
    /// LlamaEdge and two of our own.
    #[must_use]
    pub fn tensors(self) -> [(&'static str, Tensor); 2] {
        let usage = Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cached_tokens: self.cached_tokens,
            finish_reason: self.ending.word(),
        };
        outputs(self.text, &usage)
    }
}

/// A vector as tensors, in LlamaEdge's way: JSON with its length and its numbers.
#[must_use]
pub fn embedding(vector: &[f32], input_tokens: u32) -> [(&'static str, Tensor); 2] {
    let text = written(&Vector { n_embedding: vector.len(), embedding: vector });
    outputs(text, &VectorUsage { input_tokens, output_tokens: 0 })
}

fn outputs(text: String, usage: &impl Serialize) -> [(&'static str, Tensor); 2] {
    [(TEXT, Tensor::of_bytes(text.into_bytes())), (USAGE, Tensor::of_bytes(written(usage).into_bytes()))]
}

fn written(value: &impl Serialize) -> String {
    // Numbers and words of our own, which can all be written.
    serde_json::to_string(value).unwrap_or_default()
}

#[derive(Serialize)]
struct Usage {
    input_tokens: u32,
    output_tokens: u32,
    cached_tokens: u32,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Vector<'a> {
    n_embedding: usize,
    embedding: &'a [f32],
}

#[derive(Serialize)]
struct VectorUsage {
    input_tokens: u32,
    output_tokens: u32,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_text_and_usage() {
        let answer = Answer {
            text: "ä".into(),
            input_tokens: 3,
            cached_tokens: 1,
            output_tokens: 2,
            ending: Ending::from(Finish::StopText(0)),
        };
        let [(name, text), (usage_name, usage)] = answer.tensors();
        assert_eq!((name, text.dimensions(), text.data()), ("text", &[2][..], "ä".as_bytes()));
        let usage: serde_json::Value = serde_json::from_slice(usage.data()).unwrap();
        let expected =
            json!({"input_tokens": 3, "output_tokens": 2, "cached_tokens": 1, "finish_reason": "reverse-prompt"});
        assert_eq!((usage_name, usage), ("usage", expected));
    }

    #[test]
    fn a_vector_is_json() {
        let [(_, text), _] = embedding(&[0.5, -1.0], 4);
        assert_eq!(text.data(), br#"{"n_embedding":2,"embedding":[0.5,-1.0]}"#);
    }
}
