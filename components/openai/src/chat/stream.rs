//! An answer as server-sent events.
//!
//! The order is OpenAI's: for each choice a chunk with the role, chunks with what is
//! said, and one with an empty delta and the reason of the end; then one with the
//! usage if asked for, and `[DONE]`. The chunks of several choices come as they are
//! made, but for those with the roles, which come first and in order: the official
//! client for Python keeps choices in the order in which they first come, and finds
//! them by their index (`lib/streaming/chat/_completions.py` there).
//!
//! A call's `index`, id and name come once, and before its arguments, which come in
//! pieces (clients add the pieces of any other key up). What fails in the middle is
//! sent as an event with the error envelope, which the official clients raise.
//!
//! A token costs two calls of the host, one that fetches it and one that writes
//! and flushes it: what chunks have in common is formatted once, and the buffer is
//! used again.

use std::io::Write;

use chat_format::Event;
use nala_sdk::Error;
use nala_sdk::http::BodyWriter;
use nala_sdk::llm::Sampled;

use super::answer::{Answer, Calls, Count, Thoughts, Timings};
use super::{logprobs, write};
use crate::error::ApiError;
use crate::ids::Ids;
use crate::json;
use crate::parameters::StreamUsage;
use crate::turn::{Bytes, Turn, Turns, broke_off};

impl<T: Turns, B: Bytes> Answer<T, B> {
    /// Writes the events as they come.
    ///
    /// # Errors
    /// [`Error::Gone`] when the client hung up.
    pub fn stream(mut self, usage: StreamUsage, out: &mut BodyWriter) -> Result<(), Error> {
        let mut count = Count::of(&self.running);
        let mut events = self.events(usage);
        let mut choices: Vec<Choice> = (0..self.running.choices).map(|_| Choice::default()).collect();
        let mut going = choices.len();
        for index in 0..going {
            // Goes out together with the first token.
            events.delta::<B>(index, &Delta::Role, None);
        }
        let ended = loop {
            let (index, turn) = match self.running.turns.next() {
                Some((index, Ok(turn))) => (index, turn),
                Some((_, Err(error))) => break Err(error),
                None => break Err(broke_off()),
            };
            count.add(&turn);
            let Some(choice) = choices.get_mut(index) else { continue };
            events.turn(index, choice, turn, &mut self.running.bytes);
            if choice.ended {
                going -= 1;
                if going == 0 {
                    break Ok(());
                }
            }
            events.send(out)?;
        };
        match ended {
            Ok(()) => {
                events.last(&count, usage, self.timings);
                events.done();
            }
            Err(error) => events.error(&error),
        }
        events.send(out)
    }

    fn events(&mut self, usage: StreamUsage) -> Events {
        let mut head = b"data: ".to_vec();
        write::head(&self.running, &self.ids.answer("chatcmpl-"), "chat.completion.chunk", &mut head);
        head.extend_from_slice(b",\"choices\":[");
        let tail: &[u8] = match usage {
            StreamUsage::Included => b"],\"usage\":null}\n\n",
            StreamUsage::Absent => b"]}\n\n",
        };
        let ids = std::mem::replace(&mut self.ids, Ids::of(0));
        let (logprobs, thoughts) = (self.logprobs, self.thoughts);
        Events { buffer: Vec::with_capacity(1024), head, tail, ids, logprobs, thoughts }
    }
}

/// How far one of the answers is.
#[derive(Default)]
struct Choice {
    ended: bool,
    calls: Calls,
}

/// Formats events into one buffer.
struct Events {
    buffer: Vec<u8>,
    /// Everything of a chunk up to its choices.
    head: Vec<u8>,
    /// Everything behind its choices.
    tail: &'static [u8],
    ids: Ids,
    logprobs: bool,
    thoughts: Thoughts,
}

/// What a chunk adds to the answer.
enum Delta<'a> {
    Role,
    Content(&'a str),
    Reasoning(&'a str),
    Call { index: usize, id: &'a str, name: &'a str },
    Arguments { index: usize, text: &'a str },
    End { reason: &'static str, errors: &'a [String] },
}

impl Events {
    fn turn<B: Bytes>(&mut self, index: usize, choice: &mut Choice, turn: Turn, bytes: &mut B) {
        // They go with the first thing that the turn says, or by themselves: a token
        // may hold a part of a character, and no text yet.
        let mut tokens = (self.logprobs && !turn.tokens.is_empty()).then_some(turn.tokens.as_slice());
        for event in &turn.events {
            choice.calls.see(event);
            let id;
            let delta = match event {
                Event::Content(text) | Event::Malformed { index: None, text, .. } => Delta::Content(text),
                Event::Reasoning(text) if self.thoughts == Thoughts::Apart => Delta::Reasoning(text),
                Event::CallStart { index, name, id: own } => {
                    id = self.ids.call("call_", own.clone());
                    Delta::Call { index: *index, id: &id, name }
                }
                Event::CallArguments { index, text } | Event::Malformed { index: Some(index), text, .. } => {
                    Delta::Arguments { index: *index, text }
                }
                Event::CallEnd { .. } | Event::Reasoning(_) => continue,
            };
            self.delta(index, &delta, tokens.take().map(|tokens| (tokens, &mut *bytes)));
        }
        if let Some(tokens) = tokens {
            self.delta(index, &Delta::Content(""), Some((tokens, bytes)));
        }
        if let Some(end) = turn.end {
            choice.ended = true;
            let reason = choice.calls.finish_reason(end);
            self.delta::<B>(index, &Delta::End { reason, errors: &choice.calls.errors }, None);
        }
    }

    fn delta<B: Bytes>(&mut self, index: usize, delta: &Delta<'_>, tokens: Option<(&[Sampled], &mut B)>) {
        let out = &mut self.buffer;
        out.extend_from_slice(&self.head);
        // A vector takes all that is written.
        let _ = write!(out, "{{\"index\":{index},\"delta\":{{");
        delta.write(out);
        match tokens {
            Some((tokens, bytes)) => {
                out.extend_from_slice(b"},\"logprobs\":{\"content\":[");
                logprobs::entries(tokens, bytes, out);
                out.extend_from_slice(b"],\"refusal\":null}");
            }
            None => out.extend_from_slice(b"},\"logprobs\":null"),
        }
        match delta {
            Delta::End { reason, .. } => {
                let _ = write!(out, ",\"finish_reason\":\"{reason}\"}}");
            }
            _ => out.extend_from_slice(b",\"finish_reason\":null}"),
        }
        out.extend_from_slice(self.tail);
    }

    /// The chunk behind all choices, where there is something to say in it.
    fn last(&mut self, count: &Count, usage: StreamUsage, timings: Timings) {
        let out = &mut self.buffer;
        if usage == StreamUsage::Absent && timings == Timings::Absent {
            return;
        }
        out.extend_from_slice(&self.head);
        out.push(b']');
        if usage == StreamUsage::Included {
            out.extend_from_slice(b",\"usage\":");
            count.usage(out);
        }
        if timings == Timings::Reported {
            out.extend_from_slice(b",\"timings\":");
            count.timings(out);
        }
        out.extend_from_slice(b"}\n\n");
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
        let sent = out.write(&self.buffer);
        self.buffer.clear();
        sent
    }
}

impl Delta<'_> {
    /// Appends the inside of `delta`.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Role => out.extend_from_slice(b"\"role\":\"assistant\",\"content\":\"\""),
            Self::Content(text) => {
                out.extend_from_slice(b"\"content\":");
                json::string(text, out);
            }
            Self::Reasoning(text) => {
                out.extend_from_slice(b"\"reasoning_content\":");
                json::string(text, out);
            }
            Self::Call { index, id, name } => {
                let _ = write!(out, "\"tool_calls\":[{{\"index\":{index},");
                write::call(id, name, out);
                out.extend_from_slice(b"\"}}]");
            }
            Self::Arguments { index, text } => {
                let _ = write!(out, "\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":");
                json::string(text, out);
                out.extend_from_slice(b"}}]");
            }
            Self::End { errors: [], .. } => {}
            Self::End { errors, .. } => write::errors(errors, out),
        }
    }
}
