//! Who takes the turns.

use std::rc::Rc;

use nala_sdk::llm::Session;

/// Has the model take turns.
pub trait Speaker {
    /// What is told of a turn while it goes on.
    type Said;
    /// What it fails with.
    type Error: From<nala_sdk::Error>;

    /// The text that the next turn begins with; it may name control tokens. `before` is the
    /// end of what is before it.
    ///
    /// # Errors
    /// The model cannot be made to speak as it should.
    fn opening(&mut self, before: &str) -> Result<String, Self::Error>;

    /// Begins a turn of at most so many tokens, in a session that ends with the opening.
    ///
    /// # Errors
    /// What the session fails with.
    fn begin(&mut self, session: &Rc<Session>, most: u32) -> Result<(), Self::Error>;

    /// Waits for what is said next. None: the turn is over.
    ///
    /// # Errors
    /// What the generation fails with.
    fn say(&mut self) -> Result<Option<Self::Said>, Self::Error>;

    /// What the turn came to. From here on the session is free, and follows no grammar.
    ///
    /// # Errors
    /// What the session fails with.
    fn end(&mut self) -> Result<Turn, Self::Error>;
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// What the model wants, in its order.
    pub wanted: Vec<Wanted>,
    /// How many tokens it wrote.
    pub written: u32,
    /// What comes behind it.
    pub then: Then,
}

/// Something that the model wants of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A call.
    Call {
        /// The tool.
        tool: String,
        /// What it is given, as the model wrote it.
        arguments: String,
    },
    /// A call that is not made. The model reads this in place of what a tool says.
    Refused(String),
}

/// What comes behind a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Its calls are made, the model reads what they say and goes on.
    GoOn,
    /// Its calls are made, and that is the end.
    CallsAndEnd,
    /// The end. Its calls are told, and not made.
    End,
}
