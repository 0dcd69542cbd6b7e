//! The events of a stream, formatted into one buffer.

use std::io::Write;

use nala_sdk::Error;
use nala_sdk::http::BodyWriter;

use super::assembly::Listener;
use super::item::{Body, Came, Item, Status};
use super::object::{Frame, State};
use crate::json;

/// Formats events and sends them, many at once where they come at once.
#[derive(Debug)]
pub(super) struct Events {
    buffer: Vec<u8>,
    /// The number of the next event.
    sequence: u64,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { buffer: Vec::with_capacity(4096), sequence: 0 }
    }

    /// An event about the response as a whole.
    pub(super) fn response(&mut self, kind: &str, frame: &Frame, state: &State<'_>, items: &[Item]) {
        self.open(kind);
        self.buffer.extend_from_slice(b",\"response\":");
        frame.write(state, items, &mut self.buffer);
        self.close();
    }

    /// Sends what there is, in one call of the host where it fits.
    pub(super) fn send(&mut self, out: &mut BodyWriter) -> Result<(), Error> {
        let sent = out.write(&self.buffer);
        self.buffer.clear();
        sent
    }

    fn open(&mut self, kind: &str) {
        // A vector takes all that is written.
        let _ = write!(self.buffer, "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{}", self.sequence);
        self.sequence += 1;
    }

    fn close(&mut self) {
        self.buffer.extend_from_slice(b"}\n\n");
    }

    /// An event with an item.
    fn item(&mut self, kind: &str, index: usize, item: &Item) {
        self.open(kind);
        let _ = write!(self.buffer, ",\"output_index\":{index},\"item\":");
        item.write(&mut self.buffer);
        self.close();
    }

    /// The beginning of an event about a part of an item.
    fn within(&mut self, kind: &str, index: usize, item: &Item) {
        self.open(kind);
        self.buffer.extend_from_slice(b",\"item_id\":");
        json::string(&item.id, &mut self.buffer);
        let _ = write!(self.buffer, ",\"output_index\":{index}");
        if item.has_part() {
            self.buffer.extend_from_slice(b",\"content_index\":0");
        }
    }

    /// An event about an item as a whole.
    fn about(&mut self, kind: &str, index: usize, item: &Item) {
        self.within(kind, index, item);
        self.close();
    }

    fn field(&mut self, name: &str, text: &str) {
        let _ = write!(self.buffer, ",\"{name}\":");
        json::string(text, &mut self.buffer);
    }

    fn logprobs(&mut self, entries: &[u8]) {
        self.buffer.extend_from_slice(b",\"logprobs\":[");
        self.buffer.extend_from_slice(entries);
        self.buffer.push(b']');
    }

    fn part(&mut self, kind: &str, index: usize, item: &Item) {
        self.within(kind, index, item);
        self.buffer.extend_from_slice(b",\"part\":");
        item.part(&mut self.buffer);
        self.close();
    }
}

impl Listener for Events {
    fn added(&mut self, index: usize, item: &Item) {
        self.item("response.output_item.added", index, item);
        if item.has_part() {
            self.part("response.content_part.added", index, item);
        }
        match item.body {
            Body::Listed { .. } => self.about("response.mcp_list_tools.in_progress", index, item),
            Body::Served { .. } => self.about("response.mcp_call.in_progress", index, item),
            Body::Reasoning(_) | Body::Message { .. } | Body::Call { .. } => {}
        }
    }

    fn grew(&mut self, index: usize, item: &Item, delta: &str, logprobs: &[u8]) {
        let kind = match item.body {
            Body::Reasoning(_) => "response.reasoning_text.delta",
            Body::Message { .. } => "response.output_text.delta",
            Body::Call { .. } => "response.function_call_arguments.delta",
            Body::Served { .. } => "response.mcp_call_arguments.delta",
            // They are there at once.
            Body::Listed { .. } => return,
        };
        self.within(kind, index, item);
        self.field("delta", delta);
        if let Body::Message { .. } = item.body {
            self.logprobs(logprobs);
        }
        self.close();
    }

    fn written(&mut self, index: usize, item: &Item) {
        if let Body::Served { arguments, .. } = &item.body {
            self.within("response.mcp_call_arguments.done", index, item);
            self.field("arguments", arguments);
            self.close();
        }
    }

    fn ended(&mut self, index: usize, item: &Item) {
        match &item.body {
            Body::Reasoning(text) => {
                self.within("response.reasoning_text.done", index, item);
                self.field("text", text);
                self.close();
            }
            Body::Message { text, logprobs } => {
                self.within("response.output_text.done", index, item);
                self.field("text", text);
                self.logprobs(logprobs);
                self.close();
            }
            // A part of the arguments is nothing to call a function with.
            Body::Call { .. } if item.status == Status::Incomplete => {}
            Body::Call { name, arguments, .. } => {
                self.within("response.function_call_arguments.done", index, item);
                self.field("name", name);
                self.field("arguments", arguments);
                self.close();
            }
            Body::Listed { .. } => self.about("response.mcp_list_tools.completed", index, item),
            Body::Served { came: Came::Output(_), .. } => self.about("response.mcp_call.completed", index, item),
            Body::Served { came: Came::Error(_), .. } => self.about("response.mcp_call.failed", index, item),
            // It was never made.
            Body::Served { came: Came::Unwritten | Came::Awaited, .. } => {}
        }
        if item.has_part() {
            self.part("response.content_part.done", index, item);
        }
        self.item("response.output_item.done", index, item);
    }
}
