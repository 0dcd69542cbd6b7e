//! The items of an answer's `output`.

use std::io::Write;

use agent_loop::{Failure, Outcome, Returned};
use serde_json::{Value, json};

use crate::json;

/// One of them.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) status: Status,
    pub(super) body: Body,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    /// Cut off: by a limit, or because it turned out to be none.
    Incomplete,
    /// A call of the server's that came to nothing.
    Failed,
}

/// What it is.
#[derive(Debug)]
pub(super) enum Body {
    /// Thoughts.
    Reasoning(String),
    /// What the model says.
    Message {
        text: String,
        /// What stands in `logprobs`, between the brackets.
        logprobs: Vec<u8>,
    },
    /// A call of a function of the client's.
    Call {
        call_id: String,
        name: String,
        /// The text of a JSON object, if the item is completed.
        arguments: String,
    },
    /// The tools of the server's that a label stands for.
    Listed { label: String, tools: Value },
    /// A call of one of them.
    Served { label: String, name: String, arguments: String, came: Came },
}

/// What came of a call of a tool of the server's.
#[derive(Debug)]
pub(super) enum Came {
    /// It is being written.
    Unwritten,
    /// It is written, and not over.
    Awaited,
    /// The tool said this.
    Output(String),
    /// It came to nothing.
    Error(Value),
}

impl Came {
    /// What is told of what a tool said.
    pub(super) fn of(returned: Returned) -> Self {
        let Returned { text, outcome, .. } = returned;
        let why = || text.strip_prefix("Error: ").unwrap_or(&text);
        let broken = |code: i32| json!({"type": "mcp_protocol_error", "code": code, "message": why()});
        match outcome {
            Outcome::Answered => Self::Output(text),
            Outcome::Declined => {
                Self::Error(json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": why()}]}))
            }
            // JSON-RPC's codes, as a server of the protocol would tell it.
            Outcome::Failed(Failure::Wrong) => Self::Error(broken(-32602)),
            Outcome::Failed(Failure::Broken | Failure::Busy) => Self::Error(broken(-32603)),
        }
    }
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }
}

impl Item {
    /// Appends its JSON. What is in progress has no content yet.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let begun = self.status == Status::InProgress;
        out.extend_from_slice(b"{\"id\":");
        json::string(&self.id, out);
        out.extend_from_slice(b",\"type\":\"");
        out.extend_from_slice(match &self.body {
            Body::Reasoning(_) => b"reasoning",
            Body::Message { .. } => b"message".as_slice(),
            Body::Call { .. } => b"function_call",
            Body::Listed { .. } => b"mcp_list_tools",
            Body::Served { .. } => b"mcp_call",
        });
        out.push(b'"');
        // Lists have none.
        if !matches!(self.body, Body::Listed { .. }) {
            out.extend_from_slice(b",\"status\":\"");
            out.extend_from_slice(self.status.name().as_bytes());
            out.push(b'"');
        }
        match &self.body {
            Body::Reasoning(_) => out.extend_from_slice(b",\"summary\":[]"),
            Body::Message { .. } => out.extend_from_slice(b",\"role\":\"assistant\""),
            Body::Call { call_id, name, arguments } => {
                out.extend_from_slice(b",\"call_id\":");
                json::string(call_id, out);
                out.extend_from_slice(b",\"name\":");
                json::string(name, out);
                out.extend_from_slice(b",\"arguments\":");
                json::string(if begun { "" } else { arguments }, out);
            }
            Body::Listed { label, tools } => {
                out.extend_from_slice(b",\"server_label\":");
                json::string(label, out);
                out.extend_from_slice(b",\"error\":null,\"tools\":");
                // A vector takes all that is written.
                let _ = if begun { write!(out, "[]") } else { write!(out, "{tools}") };
            }
            Body::Served { label, name, arguments, came } => {
                out.extend_from_slice(b",\"server_label\":");
                json::string(label, out);
                out.extend_from_slice(b",\"name\":");
                json::string(name, out);
                out.extend_from_slice(b",\"arguments\":");
                json::string(if begun { "" } else { arguments }, out);
                out.extend_from_slice(b",\"approval_request_id\":null,\"output\":");
                match came {
                    Came::Output(text) => json::string(text, out),
                    Came::Unwritten | Came::Awaited | Came::Error(_) => out.extend_from_slice(b"null"),
                }
                let _ = match came {
                    Came::Error(error) => write!(out, ",\"error\":{error}"),
                    Came::Unwritten | Came::Awaited | Came::Output(_) => write!(out, ",\"error\":null"),
                };
            }
        }
        if self.has_part() {
            out.extend_from_slice(b",\"content\":[");
            if !begun {
                self.part(out);
            }
            out.push(b']');
        }
        if let Body::Reasoning(_) = self.body {
            out.extend_from_slice(b",\"encrypted_content\":null");
        }
        out.push(b'}');
    }

    /// Whether it has a content, which consists of one part.
    pub(super) fn has_part(&self) -> bool {
        matches!(self.body, Body::Reasoning(_) | Body::Message { .. })
    }

    /// Whether more is said that belongs to it.
    pub(super) fn is_open(&self) -> bool {
        let is_awaited = matches!(self.body, Body::Served { came: Came::Awaited, .. });
        self.status == Status::InProgress && !is_awaited
    }

    /// Appends the JSON of its only part. Nothing where it has none.
    pub(super) fn part(&self, out: &mut Vec<u8>) {
        match &self.body {
            Body::Reasoning(text) => {
                out.extend_from_slice(b"{\"type\":\"reasoning_text\",\"text\":");
                json::string(text, out);
                out.push(b'}');
            }
            Body::Message { text, logprobs } => {
                out.extend_from_slice(b"{\"type\":\"output_text\",\"text\":");
                json::string(text, out);
                out.extend_from_slice(b",\"annotations\":[],\"logprobs\":[");
                out.extend_from_slice(logprobs);
                out.extend_from_slice(b"]}");
            }
            Body::Call { .. } | Body::Listed { .. } | Body::Served { .. } => {}
        }
    }
}
