//! From what the model says to the items of an answer.

use agent_loop::Returned;
use chat_format::Event;
use nala_sdk::llm::{PrefillInfo, Sampled};
use serde_json::Value;

use super::item::{Body, Came, Item, Status};
use super::object::Usage;
use super::request::List;
use crate::chat::logprobs;
use crate::ids::Ids;
use crate::turn::{Bytes, Turn};

/// Hears of items as they grow. `index` is an item's place in the output.
pub(super) trait Listener {
    /// An item has begun.
    fn added(&mut self, index: usize, item: &Item);
    /// It has grown by `delta`; `logprobs` are the entries of its tokens.
    fn grew(&mut self, index: usize, item: &Item, delta: &str, logprobs: &[u8]);
    /// It is a call of a tool of the server's, which is made now.
    fn written(&mut self, index: usize, item: &Item);
    /// It has ended, well or not.
    fn ended(&mut self, index: usize, item: &Item);
}

/// Whether log-probabilities are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logprobs {
    Reported,
    LeftOut,
}

/// The items so far. All but the last have ended, and calls of the server's tools that are
/// made now.
#[derive(Debug)]
pub(super) struct Assembly<L> {
    pub(super) listener: L,
    items: Vec<Item>,
    /// The tools that are the server's, with their labels.
    served: Vec<(String, String)>,
    /// Where the calls of these stand, in the order in which they were written to their end.
    made: Vec<usize>,
    /// What the model read.
    read: PrefillInfo,
    ids: Ids,
    logprobs: Logprobs,
    /// Tokens whose text has not come yet, if they are reported.
    waiting: Vec<Sampled>,
    output: u64,
    reasoning: u64,
}

impl<L: Listener> Assembly<L> {
    /// `read` is what the prompt cost.
    pub(super) fn new(ids: Ids, logprobs: Logprobs, listener: L, lists: &[List], read: PrefillInfo) -> Self {
        let of = |list: &List| {
            let label = list.label.clone();
            list.tools.iter().map(|tool| (tool.name.clone(), label.clone())).collect::<Vec<_>>()
        };
        Self {
            listener,
            items: Vec::new(),
            served: lists.iter().flat_map(of).collect(),
            made: Vec::new(),
            read,
            ids,
            logprobs,
            waiting: Vec::new(),
            output: 0,
            reasoning: 0,
        }
    }

    /// Tells which tools the server has.
    pub(super) fn list(&mut self, list: &List) {
        let tools: Vec<Value> = list.tools.iter().map(super::request::Listed::json).collect();
        self.add("mcpl_", Body::Listed { label: list.label.clone(), tools: Value::Array(tools) });
        self.end(Status::Completed);
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// The items, and who hears of them.
    pub(super) fn split(&mut self) -> (&[Item], &mut L) {
        (&self.items, &mut self.listener)
    }

    pub(super) fn usage(&self) -> Usage {
        Usage { prompt: self.read, output: self.output, reasoning: self.reasoning }
    }

    /// Takes in what was said.
    pub(super) fn take(&mut self, turn: &mut Turn, bytes: &mut impl Bytes) {
        self.output += turn.tokens.len() as u64;
        self.reasoning += u64::from(turn.reasoning_tokens);
        if self.logprobs == Logprobs::Reported {
            self.waiting.append(&mut turn.tokens);
        }
        let mut spoken = true;
        for event in turn.events.drain(..) {
            spoken = matches!(event, Event::Content(_));
            self.event(event, bytes);
        }
        if !spoken {
            // They belong to thoughts or to a call.
            self.waiting.clear();
        }
    }

    /// A call of a tool of the server's is over.
    pub(super) fn returned(&mut self, returned: Returned) {
        let place = (returned.id as usize).checked_sub(1).and_then(|call| self.made.get(call));
        let Some((index, item)) = place.and_then(|index| Some((*index, self.items.get_mut(*index)?))) else { return };
        let Body::Served { came, .. } = &mut item.body else { return };
        *came = Came::of(returned);
        item.status = if matches!(came, Came::Error(_)) { Status::Failed } else { Status::Completed };
        self.listener.ended(index, item);
    }

    /// The model has read what tools said.
    pub(super) fn read(&mut self, read: PrefillInfo) {
        self.read.cached = self.read.cached.saturating_add(read.cached);
        self.read.computed = self.read.computed.saturating_add(read.computed);
    }

    fn event(&mut self, event: Event, bytes: &mut impl Bytes) {
        match event {
            Event::Content(text) => self.say(&text, bytes),
            Event::Reasoning(text) => {
                self.claim(&text, bytes);
                if !matches!(self.open(), Some(Body::Reasoning(_))) {
                    self.add("rs_", Body::Reasoning(String::new()));
                }
                self.grow(&text, &[]);
            }
            Event::CallStart { name, id, .. } => match self.served.iter().find(|(tool, _)| *tool == name) {
                Some((_, label)) => {
                    let (label, arguments) = (label.clone(), String::new());
                    self.add("mcp_", Body::Served { label, name, arguments, came: Came::Unwritten });
                }
                None => {
                    let call_id = self.ids.call("call_", id);
                    self.add("fc_", Body::Call { call_id, name, arguments: String::new() });
                }
            },
            Event::CallArguments { text, .. } => match self.open() {
                Some(Body::Call { .. } | Body::Served { .. }) => self.grow(&text, &[]),
                // Belongs to no call; whatever it is, it is not lost.
                _ => self.say(&text, bytes),
            },
            Event::CallEnd { .. } => match self.open() {
                Some(Body::Served { .. }) => self.written(),
                _ => self.end(Status::Completed),
            },
            Event::Malformed { text, .. } => {
                if let Some(Body::Call { .. } | Body::Served { .. }) = self.open() {
                    self.end(Status::Incomplete);
                }
                if !text.is_empty() {
                    self.say(&text, bytes);
                }
            }
        }
    }

    /// Ends the answer, which has one item at the least: clients read the first
    /// without looking whether it is there.
    pub(super) fn finish(&mut self, status: Status) {
        if self.items.is_empty() {
            self.add("msg_", Body::Message { text: String::new(), logprobs: Vec::new() });
        }
        // Calls end by an event of their own. What has none is cut off.
        let cut = matches!(self.open(), Some(Body::Call { .. } | Body::Served { .. }));
        self.end(if cut { Status::Incomplete } else { status });
        // Calls that are not made any more.
        for (index, item) in self.items.iter_mut().enumerate().filter(|(_, item)| item.status == Status::InProgress) {
            item.status = Status::Incomplete;
            self.listener.ended(index, item);
        }
    }

    /// Leaves off in the middle, without a word to the listener.
    pub(super) fn abandon(&mut self) {
        for item in self.items.iter_mut().filter(|item| item.status == Status::InProgress) {
            item.status = Status::Incomplete;
        }
    }

    /// A call of a tool of the server's was written to its end.
    fn written(&mut self) {
        let index = self.items.len().saturating_sub(1);
        let Some(item) = self.items.last_mut() else { return };
        if let Body::Served { came, .. } = &mut item.body {
            *came = Came::Awaited;
            self.made.push(index);
            self.listener.written(index, item);
        }
    }

    fn say(&mut self, text: &str, bytes: &mut impl Bytes) {
        let tokens = self.claim(text, bytes);
        let mut entries = Vec::new();
        logprobs::entries(&tokens, bytes, &mut entries);
        if !matches!(self.open(), Some(Body::Message { .. })) {
            self.add("msg_", Body::Message { text: String::new(), logprobs: Vec::new() });
        }
        self.grow(text, &entries);
    }

    /// Takes the tokens out of those waiting that a text is made of. Those before
    /// them made no text, or none that is reported.
    fn claim(&mut self, text: &str, bytes: &mut impl Bytes) -> Vec<Sampled> {
        if self.waiting.is_empty() || text.is_empty() {
            return Vec::new();
        }
        let mut all = Vec::new();
        let ends: Vec<usize> = self
            .waiting
            .iter()
            .map(|sampled| {
                all.extend_from_slice(&bytes(sampled.id));
                all.len()
            })
            .collect();
        let begin = all.windows(text.len()).position(|window| window == text.as_bytes());
        let Some(begin) = begin else {
            // Not the bytes of the tokens, but a text made of them.
            return std::mem::take(&mut self.waiting);
        };
        let end = begin + text.len();
        let first = ends.iter().take_while(|to| **to <= begin).count();
        let count = ends.iter().take_while(|to| **to < end).count() + 1;
        let mut taken: Vec<Sampled> = self.waiting.drain(..count.min(ends.len())).collect();
        taken.drain(..first.min(taken.len()));
        taken
    }

    /// The item that has not ended.
    fn open(&self) -> Option<&Body> {
        self.items.last().filter(|item| item.is_open()).map(|item| &item.body)
    }

    fn add(&mut self, prefix: &str, body: Body) {
        self.end(Status::Completed);
        let item = Item { id: self.ids.part(prefix), status: Status::InProgress, body };
        self.listener.added(self.items.len(), &item);
        self.items.push(item);
    }

    fn grow(&mut self, delta: &str, entries: &[u8]) {
        let index = self.items.len().saturating_sub(1);
        let Some(item) = self.items.last_mut() else { return };
        match &mut item.body {
            Body::Listed { .. } => {}
            Body::Reasoning(text) | Body::Call { arguments: text, .. } | Body::Served { arguments: text, .. } => {
                text.push_str(delta);
            }
            Body::Message { text, logprobs } => {
                text.push_str(delta);
                if !logprobs.is_empty() && !entries.is_empty() {
                    logprobs.push(b',');
                }
                logprobs.extend_from_slice(entries);
            }
        }
        self.listener.grew(index, item, delta, entries);
    }

    /// Ends the item that has not ended yet, if there is one.
    fn end(&mut self, status: Status) {
        let index = self.items.len().saturating_sub(1);
        if let Some(item) = self.items.last_mut().filter(|item| item.is_open()) {
            item.status = status;
            self.listener.ended(index, item);
        }
    }
}
