//! From items to messages.
//!
//! The API keeps apart what one turn of a model consists of: thoughts, a message,
//! calls. Templates know one message of the assistant with all of them.

use std::collections::HashMap;

use nala_sdk::chat::{Content, Message, ToolCall};

/// The messages so far.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    /// A turn of the assistant that may go on.
    turn: Option<Message>,
    /// The names of the functions that were called, by the call's id.
    called: HashMap<String, String>,
}

impl Conversation {
    /// Somebody other than the model says something.
    pub(super) fn said(&mut self, role: &str, content: Content) {
        self.end_turn();
        self.messages.push(message(role, content));
    }

    /// The model thinks. What it thinks belongs to what follows, so a turn in
    /// which something was said already is over.
    pub(super) fn thought(&mut self, text: &str) {
        if self.turn.as_ref().is_some_and(|turn| turn.content != Content::None && turn.tool_calls.is_empty()) {
            self.end_turn();
        }
        let thoughts = self.turn().reasoning.get_or_insert_default();
        if !thoughts.is_empty() {
            thoughts.push_str("\n\n");
        }
        thoughts.push_str(text);
    }

    /// The model says something. After calls it is still the same turn: what
    /// answers them must follow at once.
    pub(super) fn answered(&mut self, content: Content) {
        let turn = self.turn();
        if turn.content == Content::None {
            turn.content = content;
        } else if turn.tool_calls.is_empty() {
            self.end_turn();
            self.turn().content = content;
        } else {
            let mut parts = parts(std::mem::replace(&mut turn.content, Content::None));
            parts.extend(self::parts(content));
            turn.content = Content::Parts(parts);
        }
    }

    /// The model calls a function.
    pub(super) fn called(&mut self, call: ToolCall) {
        self.called.insert(call.id.clone(), call.name.clone());
        self.turn().tool_calls.push(call);
    }

    /// A call is answered. Returns whether there was such a call.
    #[must_use]
    pub(super) fn returned(&mut self, call_id: &str, content: Content) -> bool {
        let Some(name) = self.called.get(call_id) else { return false };
        let answer = Message {
            // Some templates tell the answers of several calls apart by it.
            name: Some(name.clone()),
            tool_call_id: Some(call_id.to_owned()),
            ..message("tool", content)
        };
        self.end_turn();
        self.messages.push(answer);
        true
    }

    /// All messages, the `instructions` in front. Many templates know a system
    /// message at the beginning only, so the instructions and those that stand
    /// there already become one.
    pub(super) fn finish(mut self, instructions: Option<&str>) -> Vec<Message> {
        self.end_turn();
        if let Some(instructions) = instructions {
            let own = self.messages.iter().take_while(|message| message.role == "system").count();
            let mut text = instructions.to_owned();
            for message in self.messages.drain(..own) {
                for part in parts(message.content) {
                    text.push_str("\n\n");
                    text.push_str(&part);
                }
            }
            self.messages.insert(0, Message::system(text));
        }
        self.messages
    }

    fn turn(&mut self) -> &mut Message {
        self.turn.get_or_insert_with(|| message("assistant", Content::None))
    }

    fn end_turn(&mut self) {
        if let Some(mut turn) = self.turn.take() {
            if turn.content == Content::None && turn.tool_calls.is_empty() {
                turn.content = Content::Text(String::new());
            }
            self.messages.push(turn);
        }
    }
}

fn message(role: &str, content: Content) -> Message {
    Message { content, ..Message::new(role, "") }
}

fn parts(content: Content) -> Vec<String> {
    match content {
        Content::None => Vec::new(),
        Content::Text(text) => vec![text],
        Content::Parts(parts) => parts,
    }
}
