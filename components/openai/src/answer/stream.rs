//! An answer as server-sent events.
//!
//! The order is OpenAI's: for each choice a chunk with the role, chunks with content,
//! and one with an empty delta and the reason of the end; then one with the usage if
//! asked for, and `[DONE]`. The chunks of several choices come as they are made. What fails in the middle is sent as an event with the error envelope,
//! which the official clients raise.
//!
//! A token costs two calls of the host, one that fetches it and one that writes
//! and flushes it, and no allocation of this module: what chunks have in common
//! is formatted once, and the buffer is used again.

use std::io::Write;

use nala_sdk::Error;
use nala_sdk::http::BodyWriter;
use nala_sdk::llm::{Chunk, Sampled};

use super::whole::broke_off;
use super::{Answer, Bytes, Chunks, Head, finish_reason, logprobs, usage};
use crate::error::ApiError;
use crate::json;
use crate::parameters::StreamUsage;

impl<C: Chunks, B: Bytes> Answer<C, B> {
    /// Writes the events as they come.
    ///
    /// # Errors
    /// [`Error::Gone`] when the client hung up.
    pub fn stream(mut self, usage: StreamUsage, out: &mut BodyWriter) -> Result<(), Error> {
        let mut events = Events::new(&self.head, usage);
        let mut count = 0;
        let mut begun = vec![false; self.choices];
        let mut going = self.choices;
        let ended = loop {
            let (index, chunk): (usize, Chunk) = match self.chunks.next() {
                Some((index, Ok(chunk))) => (index, chunk),
                Some((_, Err(error))) => break Err(error.into()),
                None => break Err(broke_off()),
            };
            if let Some(begun) = begun.get_mut(index)
                && !std::mem::replace(begun, true)
            {
                // Goes out together with the first token.
                events.delta::<B>(index, Delta::Role, None);
            }
            count += chunk.tokens.len() as u64;
            // A token may hold a part of a character, and no text yet.
            let reported = self.logprobs && !chunk.tokens.is_empty();
            if !chunk.text.is_empty() || reported {
                let logprobs = reported.then_some((chunk.tokens.as_slice(), &mut self.bytes));
                events.delta(index, Delta::Content(&chunk.text), logprobs);
            }
            if let Some(finish) = chunk.finish {
                match finish_reason(finish) {
                    Ok(reason) => events.delta::<B>(index, Delta::End(reason), None),
                    Err(error) => break Err(error),
                }
                going -= 1;
                if going == 0 {
                    break Ok(());
                }
            }
            events.send(out)?;
        };
        match ended {
            Ok(()) => {
                if usage == StreamUsage::Included {
                    events.usage(self.prompt, count);
                }
                events.done();
            }
            Err(error) => events.error(&error),
        }
        events.send(out)
    }
}

/// What a chunk adds to the answer.
enum Delta<'a> {
    Role,
    Content(&'a str),
    End(&'static str),
}

/// Formats events into one buffer.
struct Events {
    buffer: Vec<u8>,
    /// Everything of a chunk up to its choices.
    head: Vec<u8>,
    /// Everything behind its choices.
    tail: &'static [u8],
}

impl Events {
    fn new(head: &Head, usage: StreamUsage) -> Self {
        let mut bytes = b"data: ".to_vec();
        head.open("chat.completion.chunk", &mut bytes);
        bytes.extend_from_slice(b",\"choices\":[");
        let tail: &[u8] = match usage {
            StreamUsage::Included => b"],\"usage\":null}\n\n",
            StreamUsage::Absent => b"]}\n\n",
        };
        Self { buffer: Vec::with_capacity(1024), head: bytes, tail }
    }

    fn delta<B: Bytes>(&mut self, index: usize, delta: Delta<'_>, tokens: Option<(&[Sampled], &mut B)>) {
        let out = &mut self.buffer;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b"{\"index\":");
        // A vector takes all that is written.
        let _ = write!(out, "{index}");
        let reason = match delta {
            Delta::Role => {
                out.extend_from_slice(b",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}");
                None
            }
            Delta::Content(text) => {
                out.extend_from_slice(b",\"delta\":{\"content\":\"");
                json::escaped(text, out);
                out.extend_from_slice(b"\"}");
                None
            }
            Delta::End(reason) => {
                out.extend_from_slice(b",\"delta\":{}");
                Some(reason)
            }
        };
        match tokens {
            Some((tokens, bytes)) => {
                out.extend_from_slice(b",\"logprobs\":{\"content\":[");
                logprobs::entries(tokens, bytes, out);
                out.extend_from_slice(b"],\"refusal\":null}");
            }
            None => out.extend_from_slice(b",\"logprobs\":null"),
        }
        match reason {
            Some(reason) => {
                out.extend_from_slice(b",\"finish_reason\":\"");
                out.extend_from_slice(reason.as_bytes());
                out.extend_from_slice(b"\"}");
            }
            None => out.extend_from_slice(b",\"finish_reason\":null}"),
        }
        out.extend_from_slice(self.tail);
    }

    fn usage(&mut self, prompt: nala_sdk::llm::PrefillInfo, count: u64) {
        self.buffer.extend_from_slice(&self.head);
        self.buffer.extend_from_slice(b"],\"usage\":");
        usage(prompt, count, &mut self.buffer);
        self.buffer.extend_from_slice(b"}\n\n");
    }

    fn done(&mut self) {
        self.buffer.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn error(&mut self, error: &ApiError) {
        self.buffer.extend_from_slice(b"data: ");
        self.buffer.extend_from_slice(error.body().as_bytes());
        self.buffer.extend_from_slice(b"\n\n");
    }

    fn send(&mut self, out: &mut BodyWriter) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let sent = out.write(&self.buffer);
        self.buffer.clear();
        sent
    }
}
