//! An answer as one object.

use super::assemble::{Blocks, Piece, Sink, Start, Stop as Ended};
use super::{Answer, Generated, SIGNATURE, Stop, open, usage};
use crate::anthropic::Thoughts;
use crate::error::ApiError;
use crate::json;
use crate::turn::{Bytes, Turns, broke_off};

impl<T: Turns, B: Bytes> Answer<T, B> {
    /// Waits for the whole answer.
    ///
    /// # Errors
    /// What the generation fails with.
    pub fn whole(mut self) -> Result<Vec<u8>, ApiError> {
        let mut blocks = Blocks::new(self.ids.clone());
        let mut content = Content { out: Vec::new(), thoughts: self.thoughts };
        let mut generated = Generated::default();
        let mut end = None;
        for (index, turn) in self.running.turns.by_ref() {
            let turn = turn?;
            if index > 0 {
                continue;
            }
            generated.tokens += turn.tokens.len() as u64;
            generated.thinking += u64::from(turn.reasoning_tokens);
            for event in turn.events {
                blocks.take(event, &mut content);
            }
            if turn.end.is_some() {
                end = turn.end;
                break;
            }
        }
        let end = end.ok_or_else(broke_off)?;
        blocks.end(&mut content);
        let mut out = Vec::with_capacity(content.out.len() + 400);
        open(&self.ids.answer("msg_"), &self.running.model, &mut out);
        out.push(b'[');
        out.append(&mut content.out);
        out.extend_from_slice(b"],");
        Stop::of(end, blocks.calls(), &self.stop).write(&mut out);
        out.extend_from_slice(b",\"usage\":");
        usage(self.running.prompt, generated, &mut out);
        out.push(b'}');
        Ok(out)
    }
}

/// The items of `content`.
struct Content {
    out: Vec<u8>,
    thoughts: Thoughts,
}

impl Sink for Content {
    fn start(&mut self, index: usize, block: Start<'_>) {
        if index > 0 {
            self.out.push(b',');
        }
        match block {
            Start::Text => self.out.extend_from_slice(b"{\"type\":\"text\",\"text\":\""),
            Start::Thinking => self.out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\""),
            Start::Call { id, name } => {
                self.out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
                json::string(id, &mut self.out);
                self.out.extend_from_slice(b",\"name\":");
                json::string(name, &mut self.out);
            }
        }
    }

    fn add(&mut self, _: usize, piece: Piece<'_>) {
        match (piece, self.thoughts) {
            (Piece::Text(text), _) | (Piece::Thinking(text), Thoughts::Shown) => json::escaped(text, &mut self.out),
            // The input is written when it is whole.
            (Piece::Thinking(_), Thoughts::Omitted) | (Piece::Input(_), _) => {}
        }
    }

    fn stop(&mut self, _: usize, end: Ended<'_>) {
        match end {
            Ended::Text => self.out.extend_from_slice(b"\"}"),
            Ended::Thinking => {
                self.out.extend_from_slice(b"\",\"signature\":");
                json::string(SIGNATURE, &mut self.out);
                self.out.push(b'}');
            }
            Ended::Call(arguments) => {
                self.out.extend_from_slice(b",\"input\":");
                self.out.extend_from_slice(arguments.object().as_bytes());
                self.out.push(b'}');
            }
        }
    }
}
