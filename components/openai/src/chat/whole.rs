//! An answer as one object.

use chat_format::Event;
use nala_sdk::llm::Sampled;

use super::answer::{Answer, Calls, Count, Thoughts, Timings};
use super::{logprobs, write};
use crate::error::ApiError;
use crate::ids::Ids;
use crate::json;
use crate::turn::{Bytes, End, Turn, Turns, broke_off};

impl<T: Turns, B: Bytes> Answer<T, B> {
    /// Waits for the whole answer.
    ///
    /// # Errors
    /// What the generation fails with.
    pub fn whole(mut self) -> Result<Vec<u8>, ApiError> {
        let mut count = Count::of(&self.running);
        let choice = |_| Choice { entries: self.logprobs.then(Vec::new), ..Choice::default() };
        let mut choices: Vec<Choice> = (0..self.running.choices).map(choice).collect();
        for (index, turn) in self.running.turns.by_ref() {
            let turn = turn?;
            count.add(&turn);
            if let Some(choice) = choices.get_mut(index) {
                choice.take(turn, &mut self.ids, &mut self.running.bytes);
            }
        }
        let size: usize = choices.iter().map(Choice::size).sum();
        let mut out = Vec::with_capacity(size + 400);
        write::head(&self.running, &self.ids.answer("chatcmpl-"), "chat.completion", &mut out);
        out.extend_from_slice(b",\"choices\":[");
        for (index, choice) in choices.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            choice.write(index, self.thoughts, &mut out)?;
        }
        out.extend_from_slice(b"],\"usage\":");
        count.usage(&mut out);
        if self.timings == Timings::Reported {
            out.extend_from_slice(b",\"timings\":");
            count.timings(&mut out);
        }
        out.push(b'}');
        Ok(out)
    }
}

/// One of the answers.
#[derive(Default)]
struct Choice {
    text: String,
    thoughts: String,
    calls: Vec<Call>,
    made: Calls,
    /// What stands in `logprobs.content`, where it is asked for.
    entries: Option<Vec<u8>>,
    end: Option<End>,
}

struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl Choice {
    fn take<B: Bytes>(&mut self, turn: Turn, ids: &mut Ids, bytes: &mut B) {
        self.end = turn.end.or(self.end);
        self.report(&turn.tokens, bytes);
        for event in turn.events {
            self.made.see(&event);
            match event {
                Event::Content(text) | Event::Malformed { index: None, text, .. } => self.text.push_str(&text),
                Event::Reasoning(text) => self.thoughts.push_str(&text),
                Event::CallStart { name, id, .. } => {
                    let id = ids.call("call_", id);
                    self.calls.push(Call { id, name, arguments: String::new() });
                }
                // The calls of an answer come one after another.
                Event::CallArguments { text, .. } | Event::Malformed { text, .. } => {
                    if let Some(call) = self.calls.last_mut() {
                        call.arguments.push_str(&text);
                    }
                }
                Event::CallEnd { .. } => {}
            }
        }
    }

    fn report<B: Bytes>(&mut self, tokens: &[Sampled], bytes: &mut B) {
        if let Some(entries) = &mut self.entries {
            logprobs::entries(tokens, bytes, entries);
        }
    }

    /// About how many bytes it takes.
    fn size(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.arguments.len() + 200);
        let entries = self.entries.as_ref().map_or(0, Vec::len);
        self.text.len() + self.thoughts.len() + entries + 200 + calls.sum::<usize>()
    }

    fn write(&self, index: usize, thoughts: Thoughts, out: &mut Vec<u8>) -> Result<(), ApiError> {
        let reason = self.made.finish_reason(self.end.ok_or_else(broke_off)?);
        out.extend_from_slice(format!("{{\"index\":{index},").as_bytes());
        out.extend_from_slice(b"\"message\":{\"role\":\"assistant\",\"content\":");
        if self.text.is_empty() && !self.calls.is_empty() {
            out.extend_from_slice(b"null");
        } else {
            json::string(&self.text, out);
        }
        out.extend_from_slice(b",\"refusal\":null");
        if thoughts == Thoughts::Apart && !self.thoughts.is_empty() {
            out.extend_from_slice(b",\"reasoning_content\":");
            json::string(&self.thoughts, out);
        }
        self.write_calls(out);
        if !self.made.errors.is_empty() {
            out.push(b',');
            write::errors(&self.made.errors, out);
        }
        out.extend_from_slice(b"},\"logprobs\":");
        match &self.entries {
            Some(entries) => {
                out.extend_from_slice(b"{\"content\":[");
                out.extend_from_slice(entries);
                out.extend_from_slice(b"],\"refusal\":null}");
            }
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(format!(",\"finish_reason\":\"{reason}\"}}").as_bytes());
        Ok(())
    }

    fn write_calls(&self, out: &mut Vec<u8>) {
        if self.calls.is_empty() {
            return;
        }
        out.extend_from_slice(b",\"tool_calls\":[");
        for (index, call) in self.calls.iter().enumerate() {
            out.extend_from_slice(if index > 0 { b",{" } else { b"{" });
            write::call(&call.id, &call.name, out);
            json::escaped(&call.arguments, out);
            out.extend_from_slice(b"\"}}");
        }
        out.push(b']');
    }
}
