//! An answer as server-sent events, each with its name.
//!
//! The order is Anthropic's: `message_start` and a `ping`, then for each block
//! `content_block_start`, `content_block_delta`s and `content_block_stop`, at last
//! `message_delta` with the reason of the end, and `message_stop`. What fails in the
//! middle is an event `error` with the error envelope, and ends the stream.
//!
//! What is generated at a time is written at once, from one buffer that is used again.

use std::io::Write;

use nala_sdk::Error;
use nala_sdk::http::BodyWriter;

use super::assemble::{Blocks, Piece, Sink, Start, Stop as Ended};
use super::{Answer, Generated, SIGNATURE, Stop, open, usage};
use crate::anthropic::{Thoughts, error};
use crate::json;
use crate::turn::{Bytes, End, Turns, broke_off};

impl<T: Turns, B: Bytes> Answer<T, B> {
    /// Writes the events as they come.
    ///
    /// # Errors
    /// [`Error::Gone`] when the client hung up.
    pub fn stream(mut self, out: &mut BodyWriter) -> Result<(), Error> {
        let mut blocks = Blocks::new(self.ids.clone());
        let mut events = Events { buffer: Vec::with_capacity(1024), thoughts: self.thoughts };
        let mut generated = Generated::default();
        // Goes out together with the first token.
        self.begin(&mut events);
        let ended = loop {
            let turn = match self.running.turns.next() {
                Some((_, Err(error))) => break Err(error),
                None => break Err(broke_off()),
                Some((index, Ok(_))) if index > 0 => continue,
                Some((_, Ok(turn))) => turn,
            };
            generated.tokens += turn.tokens.len() as u64;
            generated.thinking += u64::from(turn.reasoning_tokens);
            for event in turn.events {
                blocks.take(event, &mut events);
            }
            if let Some(end) = turn.end {
                break Ok(end);
            }
            events.send(out)?;
        };
        match ended {
            Ok(end) => {
                blocks.end(&mut events);
                self.end(end, blocks.calls(), generated, &mut events);
            }
            Err(failed) => {
                let envelope = error::envelope(&failed, None);
                events.open("error");
                events.buffer.extend_from_slice(&envelope);
                events.close();
            }
        }
        events.send(out)
    }

    fn begin(&self, events: &mut Events) {
        events.open("message_start");
        let out = &mut events.buffer;
        out.extend_from_slice(b"{\"type\":\"message_start\",\"message\":");
        open(&self.ids.answer("msg_"), &self.running.model, out);
        out.extend_from_slice(b"[],\"stop_reason\":null,\"stop_details\":null,\"stop_sequence\":null,\"usage\":");
        usage(self.running.prompt, Generated::default(), out);
        out.extend_from_slice(b"}}");
        events.close();
        events.open("ping");
        events.buffer.extend_from_slice(b"{\"type\":\"ping\"}");
        events.close();
    }

    fn end(&self, end: End, calls: usize, generated: Generated, events: &mut Events) {
        events.open("message_delta");
        let out = &mut events.buffer;
        out.extend_from_slice(b"{\"type\":\"message_delta\",\"delta\":{");
        Stop::of(end, calls, &self.stop).write(out);
        out.extend_from_slice(b"},\"usage\":");
        usage(self.running.prompt, generated, out);
        out.push(b'}');
        events.close();
        events.open("message_stop");
        events.buffer.extend_from_slice(b"{\"type\":\"message_stop\"}");
        events.close();
    }
}

/// Formats events into one buffer.
struct Events {
    buffer: Vec<u8>,
    thoughts: Thoughts,
}

impl Events {
    /// Begins an event, whose data follow.
    fn open(&mut self, name: &str) {
        self.buffer.extend_from_slice(b"event: ");
        self.buffer.extend_from_slice(name.as_bytes());
        self.buffer.extend_from_slice(b"\ndata: ");
    }

    /// Begins an event about a block, up to its other fields.
    fn of_block(&mut self, name: &str, index: usize) {
        self.open(name);
        // A vector takes all that is written.
        let _ = write!(self.buffer, "{{\"type\":\"{name}\",\"index\":{index}");
    }

    /// A delta of one text.
    fn delta(&mut self, index: usize, before: &str, text: &str) {
        self.of_block("content_block_delta", index);
        self.buffer.extend_from_slice(b",\"delta\":{\"type\":\"");
        self.buffer.extend_from_slice(before.as_bytes());
        json::escaped(text, &mut self.buffer);
        self.buffer.extend_from_slice(b"\"}}");
        self.close();
    }

    fn close(&mut self) {
        self.buffer.extend_from_slice(b"\n\n");
    }

    fn send(&mut self, out: &mut BodyWriter) -> Result<(), Error> {
        let sent = out.write(&self.buffer);
        self.buffer.clear();
        sent
    }
}

impl Sink for Events {
    fn start(&mut self, index: usize, block: Start<'_>) {
        self.of_block("content_block_start", index);
        self.buffer.extend_from_slice(b",\"content_block\":");
        match block {
            Start::Text => self.buffer.extend_from_slice(b"{\"type\":\"text\",\"text\":\"\"}"),
            Start::Thinking => {
                self.buffer.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
            }
            Start::Call { id, name } => {
                self.buffer.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
                json::string(id, &mut self.buffer);
                self.buffer.extend_from_slice(b",\"name\":");
                json::string(name, &mut self.buffer);
                self.buffer.extend_from_slice(b",\"input\":{}}");
            }
        }
        self.buffer.push(b'}');
        self.close();
    }

    fn add(&mut self, index: usize, piece: Piece<'_>) {
        match (piece, self.thoughts) {
            (Piece::Text(text), _) => self.delta(index, "text_delta\",\"text\":\"", text),
            (Piece::Thinking(text), Thoughts::Shown) => {
                self.delta(index, "thinking_delta\",\"thinking\":\"", text);
            }
            (Piece::Thinking(_), Thoughts::Omitted) => {}
            (Piece::Input(text), _) => self.delta(index, "input_json_delta\",\"partial_json\":\"", text),
        }
    }

    fn stop(&mut self, index: usize, end: Ended<'_>) {
        if matches!(end, Ended::Thinking) {
            self.delta(index, "signature_delta\",\"signature\":\"", SIGNATURE);
        }
        self.of_block("content_block_stop", index);
        self.buffer.push(b'}');
        self.close();
    }
}
