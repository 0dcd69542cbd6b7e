//! What is told of a run while it goes on.

use agent_loop::Returned;
use nala_sdk::tools::Progress;
use serde_json::{Value, json};

/// A step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The model calls a tool.
    Call {
        /// The turn, from 1 on.
        turn: u32,
        /// Names the call in the run.
        id: u32,
        /// The tool.
        tool: String,
        /// What it is given, as the model wrote it.
        arguments: String,
    },
    /// A call has got so far.
    Progress {
        /// The call.
        id: u32,
        /// See `nala:tools`.
        done: f64,
        /// See `nala:tools`.
        total: Option<f64>,
        /// See `nala:tools`.
        message: Option<String>,
    },
    /// A call is over.
    Result {
        /// The call.
        id: u32,
        /// What the model reads of it.
        text: String,
        /// Whether it came to nothing.
        is_error: bool,
    },
}

impl Step {
    pub(crate) fn progress(id: u32, progress: Progress) -> Self {
        let Progress { done, total, message } = progress;
        Self::Progress { id, done, total, message }
    }

    pub(crate) fn result(returned: Returned) -> Self {
        Self::Result { id: returned.id, text: returned.text, is_error: returned.outcome.is_error() }
    }

    /// The name of the event that it is told by.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Call { .. } => "call",
            Self::Progress { .. } => "progress",
            Self::Result { .. } => "result",
        }
    }

    pub(crate) fn json(&self) -> Value {
        let kind = self.name();
        match self {
            Self::Call { turn, id, tool, arguments } => {
                // Whoever reads it has use for JSON, if it is any.
                let arguments = serde_json::from_str(arguments).unwrap_or(Value::String(arguments.clone()));
                json!({ "type": kind, "turn": turn, "id": id, "tool": tool, "arguments": arguments })
            }
            Self::Progress { id, done, total, message } => {
                json!({ "type": kind, "id": id, "done": done, "total": total, "message": message })
            }
            Self::Result { id, text, is_error } => {
                json!({ "type": kind, "id": id, "text": text, "is_error": is_error })
            }
        }
    }
}
