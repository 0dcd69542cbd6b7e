//! The calls that the model makes in its turns.

use agent_loop::{Then, Wanted};
use chat_format::Event;

use super::Served;

/// What the model is told of a call that is not made.
const NO_MORE: &str = "Error: this call was not made, since no further call may be; answer with what is known";

/// The calls of a turn.
pub(super) struct Calls {
    served: Served,
    /// How many calls of the server's tools were ended in all turns.
    made: u32,
    /// What is wanted in this turn.
    wanted: Vec<Wanted>,
    /// The call that is being written.
    open: Option<Open>,
    /// Whether a function of the client's was called.
    hands_over: bool,
    /// Whether nothing more of the server's may be called.
    is_last: bool,
}

/// A call that is being written.
enum Open {
    /// Of a tool of the server's.
    Served { tool: String, arguments: String },
    /// Of one that may not be called any more.
    Unheard,
    /// Of a function of the client's.
    Others,
}

impl Calls {
    pub(super) fn new(served: Served) -> Self {
        Self { served, made: 0, wanted: Vec::new(), open: None, hands_over: false, is_last: false }
    }

    /// Begins a turn.
    pub(super) fn turn(&mut self, is_last: bool) {
        (self.open, self.hands_over) = (None, false);
        self.is_last = is_last || self.is_used_up();
        self.wanted.clear();
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.served.most_calls.is_some_and(|most| self.made >= most)
    }

    /// Notes the calls among these, and leaves out those that may not be made.
    pub(super) fn hear(&mut self, events: Vec<Event>) -> Vec<Event> {
        events.into_iter().filter(|event| self.note(event)).collect()
    }

    /// Whether the client hears of it.
    fn note(&mut self, event: &Event) -> bool {
        match event {
            Event::CallStart { name, .. } => {
                self.open = Some(match self.served.names.contains(name) {
                    true if self.is_last || self.is_used_up() => Open::Unheard,
                    true => Open::Served { tool: name.clone(), arguments: String::new() },
                    false => Open::Others,
                });
            }
            Event::CallArguments { text, .. } => {
                if let Some(Open::Served { arguments, .. }) = &mut self.open {
                    arguments.push_str(text);
                }
            }
            Event::CallEnd { .. } => match self.open.take() {
                Some(Open::Served { tool, arguments }) => {
                    self.made += 1;
                    self.wanted.push(Wanted::Call { tool, arguments });
                }
                Some(Open::Unheard) => {
                    self.wanted.push(Wanted::Refused(NO_MORE.to_owned()));
                    return false;
                }
                Some(Open::Others) => self.hands_over = true,
                None => {}
            },
            Event::Malformed { .. } => return !matches!(self.open.take(), Some(Open::Unheard)),
            Event::Content(_) | Event::Reasoning(_) => {}
        }
        !matches!(self.open, Some(Open::Unheard))
    }

    /// What is wanted in a turn that is whole, and what comes behind it.
    pub(super) fn wanted(&mut self) -> (Vec<Wanted>, Then) {
        let wanted = std::mem::take(&mut self.wanted);
        let then = match () {
            () if wanted.is_empty() || self.is_last => Then::End,
            // The client has to answer before the model can go on.
            () if self.hands_over => Then::CallsAndEnd,
            () => Then::GoOn,
        };
        (wanted, then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(most_calls: Option<u32>) -> Calls {
        let mut calls =
            Calls::new(Served { names: vec!["a".to_owned(), "b".to_owned()], first: Vec::new(), most_calls });
        calls.turn(false);
        calls
    }

    fn call(index: usize, name: &str) -> Vec<Event> {
        vec![
            Event::CallStart { index, name: name.to_owned(), id: None },
            Event::CallArguments { index, text: "{}".to_owned() },
            Event::CallEnd { index },
        ]
    }

    fn wanted(tool: &str) -> Wanted {
        Wanted::Call { tool: tool.to_owned(), arguments: "{}".to_owned() }
    }

    #[test]
    fn the_servers_calls_are_made_and_the_clients_end_the_turns() {
        let mut both = calls(None);
        assert_eq!(both.hear([call(0, "a"), call(1, "b")].concat()).len(), 6);
        assert_eq!(both.wanted(), (vec![wanted("a"), wanted("b")], Then::GoOn));

        let mut mixed = calls(None);
        mixed.hear([call(0, "a"), call(1, "mine")].concat());
        assert_eq!(mixed.wanted(), (vec![wanted("a")], Then::CallsAndEnd));
        mixed.turn(false);
        mixed.hear(call(0, "mine"));
        assert_eq!(mixed.wanted(), (vec![], Then::End));

        let mut said = calls(None);
        said.hear(vec![Event::Content("Hello.".to_owned())]);
        assert_eq!(said.wanted(), (vec![], Then::End));
    }

    #[test]
    fn calls_beyond_the_most_are_not_made_and_nobody_hears_of_them() {
        let mut calls = calls(Some(1));
        let heard = calls.hear([call(0, "a"), call(1, "b"), vec![Event::Content("x".to_owned())]].concat());
        assert_eq!(heard, [call(0, "a"), vec![Event::Content("x".to_owned())]].concat());
        assert_eq!(calls.wanted(), (vec![wanted("a"), Wanted::Refused(NO_MORE.to_owned())], Then::GoOn));
        // One turn more, to answer in. The client's functions can still be called.
        calls.turn(false);
        assert_eq!(calls.hear([call(0, "b"), call(1, "mine")].concat()), call(1, "mine"));
        assert_eq!(calls.wanted().1, Then::End);
    }

    #[test]
    fn what_began_as_a_call_and_is_none_is_not_made() {
        let mut calls = calls(None);
        let broken = Event::Malformed { index: Some(0), text: "}".to_owned(), reason: "no JSON".to_owned() };
        let mut events = call(0, "a");
        events.pop();
        events.push(broken);
        assert_eq!(calls.hear(events.clone()), events);
        assert_eq!(calls.wanted(), (vec![], Then::End));
        calls.turn(true);
        assert_eq!(calls.hear(events), []);
    }
}
