//! The object `response`.

use std::io::Write;

use nala_sdk::llm::PrefillInfo;

use super::item::Item;
use super::request::Echo;
use crate::error::ApiError;
use crate::json;

/// What is the same in it from the first event to the last.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) echo: Echo,
}

/// How far the response has come.
#[derive(Debug)]
pub(super) enum State<'a> {
    InProgress,
    Completed {
        /// When, in seconds since 1970.
        at: u64,
        usage: Usage,
    },
    /// A limit was reached.
    Incomplete {
        usage: Usage,
    },
    Failed {
        error: &'a ApiError,
        usage: Usage,
    },
}

/// What it cost, in tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// What the model read: the prompt, and what tools of the server's said. Each token
    /// counts once, however many turns there were: none is computed again.
    pub(super) prompt: PrefillInfo,
    pub(super) output: u64,
    /// Those of the output that were thoughts.
    pub(super) reasoning: u64,
}

impl Frame {
    /// Appends the object's JSON.
    pub(super) fn write(&self, state: &State<'_>, items: &[Item], out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        json::string(&self.id, out);
        // A vector takes all that is written.
        let _ = write!(out, ",\"object\":\"response\",\"created_at\":{},\"status\":\"", self.created);
        out.extend_from_slice(state.name().as_bytes());
        match state {
            State::Completed { at, .. } => {
                let _ = write!(out, "\",\"completed_at\":{at}");
            }
            _ => out.extend_from_slice(b"\",\"completed_at\":null"),
        }
        out.extend_from_slice(b",\"error\":");
        match state {
            State::Failed { error, .. } => failure(error, out),
            _ => out.extend_from_slice(b"null"),
        }
        // The end of the context is a limit of the output, too, and the API has no
        // other word for it.
        out.extend_from_slice(match state {
            State::Incomplete { .. } => b",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}",
            _ => b",\"incomplete_details\":null".as_slice(),
        });
        out.extend_from_slice(b",\"model\":");
        json::string(&self.model, out);
        out.extend_from_slice(b",\"output\":[");
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            item.write(out);
        }
        out.extend_from_slice(b"],\"usage\":");
        match state {
            State::InProgress => out.extend_from_slice(b"null"),
            State::Completed { usage, .. } | State::Incomplete { usage } | State::Failed { usage, .. } => {
                usage.write(out);
            }
        }
        out.push(b',');
        out.extend_from_slice(self.echo.fields().as_bytes());
        out.push(b'}');
    }
}

impl State<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed { .. } => "completed",
            Self::Incomplete { .. } => "incomplete",
            Self::Failed { .. } => "failed",
        }
    }
}

impl Usage {
    fn write(self, out: &mut Vec<u8>) {
        let Self { prompt, output, reasoning } = self;
        let cached = prompt.cached;
        let input = u64::from(prompt.cached) + u64::from(prompt.computed);
        // The clients' types require the count of tokens written to a cache that is
        // paid for; there is none such here.
        let _ = write!(
            out,
            "{{\"input_tokens\":{input},\"input_tokens_details\":{{\"cached_tokens\":{cached},\"cache_write_tokens\":0}},\
             \"output_tokens\":{output},\"output_tokens_details\":{{\"reasoning_tokens\":{reasoning}}},\
             \"total_tokens\":{}}}",
            input + output
        );
    }
}

/// Appends `error`. Its codes are a closed list (`ResponseError` of the official
/// clients), so what is not in it is told by the nearest.
fn failure(error: &ApiError, out: &mut Vec<u8>) {
    let code = match error.status {
        429 => "rate_limit_exceeded",
        400..500 => "invalid_prompt",
        _ => "server_error",
    };
    let _ = write!(out, "{{\"code\":\"{code}\",\"message\":");
    json::string(&error.message, out);
    out.push(b'}');
}
