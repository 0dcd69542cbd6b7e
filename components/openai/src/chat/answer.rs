//! What is said, in the shape of chat completions: `chat.completion` and
//! `chat.completion.chunk`.

use std::time::Instant;

use chat_format::Event;
use nala_sdk::llm::PrefillInfo;

use crate::ids::Ids;
use crate::turn::{End, Running, Turn};

/// Names what serves: the same fingerprint and seed give the same answer.
pub(crate) const FINGERPRINT: &str = concat!("fp_nala_", env!("CARGO_PKG_VERSION"));

/// An answer that is being generated.
#[derive(Debug)]
pub struct Answer<T, B> {
    /// What is generated.
    pub running: Running<T, B>,
    /// Names it and its calls.
    pub ids: Ids,
    /// Whether log-probabilities are reported.
    pub logprobs: bool,
    /// Where thoughts go.
    pub thoughts: Thoughts,
    /// Whether it is said what took how long.
    pub timings: Timings,
}

/// Where thoughts go (`reasoning_format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoughts {
    /// Into `reasoning_content`, beside the content.
    Apart,
    /// Nowhere: they are left out.
    Hidden,
}

/// Whether it is said what took how long (`timings_per_token`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timings {
    /// In `timings`, by the names of llama.cpp's server.
    Reported,
    /// It is not.
    Absent,
}

/// What has been counted so far.
#[derive(Debug)]
pub(super) struct Count {
    prompt: PrefillInfo,
    prompt_ms: f64,
    /// When tokens began to be made.
    began: Instant,
    /// Tokens that came from the prompt's own logits, without a step of the model.
    first: u64,
    tokens: u64,
    thoughts: u64,
}

impl Count {
    pub(super) fn of<T, B>(running: &Running<T, B>) -> Self {
        let prompt_ms = running.prompt_time.as_secs_f64() * 1e3;
        Self {
            prompt: running.prompt,
            prompt_ms,
            began: running.generating,
            first: running.choices as u64,
            tokens: 0,
            thoughts: 0,
        }
    }

    pub(super) fn add(&mut self, turn: &Turn) {
        self.tokens += turn.tokens.len() as u64;
        self.thoughts += u64::from(turn.reasoning_tokens);
    }

    /// Appends the value of `usage`.
    pub(super) fn usage(&self, out: &mut Vec<u8>) {
        let cached = self.prompt.cached;
        let prompt = u64::from(self.prompt.cached) + u64::from(self.prompt.computed);
        let total = prompt + self.tokens;
        out.extend_from_slice(
            format!(
                "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{},\"total_tokens\":{total},\
                 \"prompt_tokens_details\":{{\"cached_tokens\":{cached}}},\
                 \"completion_tokens_details\":{{\"reasoning_tokens\":{}}}}}",
                self.tokens, self.thoughts
            )
            .as_bytes(),
        );
    }

    /// Appends the value of `timings`, as llama.cpp's server has it
    /// (`tools/server/README.md` there): the time of generation begins when the prompt
    /// is there. The first token of each answer comes with the prompt and costs no step,
    /// so paces are those of the others, and 0 where there are none.
    pub(super) fn timings(&self, out: &mut Vec<u8>) {
        let spent = self.began.elapsed().as_secs_f64() * 1e3;
        let line = |name: &str, tokens: f64, steps: f64, spent: f64| {
            let each = if steps > 0.0 { spent / steps } else { 0.0 };
            let rate = if spent > 0.0 { steps * 1e3 / spent } else { 0.0 };
            format!(
                "\"{name}_n\":{tokens},\"{name}_ms\":{spent:.3},\"{name}_per_token_ms\":{each:.3},\
                 \"{name}_per_second\":{rate:.3}"
            )
        };
        #[allow(clippy::cast_precision_loss, reason = "far fewer tokens than a float counts")]
        let (tokens, steps) = (self.tokens as f64, self.tokens.saturating_sub(self.first) as f64);
        let computed = f64::from(self.prompt.computed);
        let prompt = line("prompt", computed, computed, self.prompt_ms);
        let predicted = line("predicted", tokens, steps, spent);
        out.extend_from_slice(format!("{{\"cache_n\":{},{prompt},{predicted}}}", self.prompt.cached).as_bytes());
    }
}

/// What one of the answers has come to.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Whether a call ended well.
    made: bool,
    /// What began as a call and is none.
    pub(super) errors: Vec<String>,
}

impl Calls {
    pub(super) fn see(&mut self, event: &Event) {
        match event {
            Event::CallEnd { .. } => self.made = true,
            Event::Malformed { reason, .. } => self.errors.push(reason.clone()),
            _ => {}
        }
    }

    /// OpenAI's word for why an answer ended.
    pub(super) fn finish_reason(&self, end: End) -> &'static str {
        match end {
            End::Natural if self.made => "tool_calls",
            End::Natural | End::StopText(_) => "stop",
            End::Length | End::ContextFull => "length",
        }
    }
}
