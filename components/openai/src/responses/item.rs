//! The items of an answer's `output`.

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
    Call {
        call_id: String,
        name: String,
        /// The text of a JSON object, if the item is completed.
        arguments: String,
    },
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
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
        });
        out.extend_from_slice(b"\",\"status\":\"");
        out.extend_from_slice(self.status.name().as_bytes());
        out.push(b'"');
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
        !matches!(self.body, Body::Call { .. })
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
            Body::Call { .. } => {}
        }
    }
}
