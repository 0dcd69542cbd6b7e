//! What a model's text turns out to be.

/// A piece of what a model's text turns out to be.
///
/// Pieces of one kind that follow one another belong together. The calls of a
/// turn are numbered from 0 in the order in which they begin; a call ends before
/// the next begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What the model says. Never empty.
    Content(String),
    /// What it thinks. Never empty.
    Reasoning(String),
    /// A call begins.
    CallStart {
        /// The call's number.
        index: usize,
        /// Name of the function.
        name: String,
        /// The id that the model gave it, in notations that have one.
        id: Option<String>,
    },
    /// More of a call's arguments. All pieces of a call, joined, are the text of a
    /// JSON object, unless the call is [`Event::Malformed`] or was cut off.
    CallArguments {
        /// The call's number.
        index: usize,
        /// A piece of JSON. Never empty.
        text: String,
    },
    /// A call ends well.
    CallEnd {
        /// The call's number.
        index: usize,
    },
    /// What began as a call is none: it is no JSON, or names no function. Where the
    /// call was begun by [`Event::CallStart`], this ends it; its arguments are then
    /// left as the model wrote them.
    Malformed {
        /// The call's number, where it had begun.
        index: Option<usize>,
        /// What the model wrote, as far as it is in no other event.
        text: String,
        /// What is wrong with it, for people.
        reason: String,
    },
}
