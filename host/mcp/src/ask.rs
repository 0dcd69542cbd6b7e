//! What is said and asked while a call goes on.

use futures::future::BoxFuture;
use serde_json::Value;

/// What whoever calls can be asked, and whether it hears what the tool logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Abilities {
    /// To have a person fill in a form.
    pub elicit_form: bool,
    /// To have a person go to a page.
    pub elicit_url: bool,
    /// To have a model of its own write something.
    pub sample: bool,
    /// Which folders it works in.
    pub roots: bool,
    /// It hears what the tool logs.
    pub hear_log: bool,
}

impl Abilities {
    /// Whether it is one of whom nothing is asked, and to whom nothing is said.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// What kind of question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inquiry {
    /// `elicitation/create`: something that a person has to say.
    Elicitation,
    /// `sampling/createMessage`: something that the caller's model has to write.
    Sampling,
    /// `roots/list`: the folders that the caller works in.
    Roots,
}

/// How much a line of a log matters, by RFC 5424.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the RFC")]
pub enum Severity {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// Whoever waits for a call.
pub trait Hear: Send + Sync + 'static {
    /// It has got so far. `total` is what `done` grows to, if that is known.
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>);

    /// A line of its log.
    fn log(&self, severity: Severity, logger: Option<String>, data: Value);

    /// Asks, with the protocol's `params`, and waits for its `result`. The key is the same
    /// for the same question where the server has one for it.
    ///
    /// # Errors
    /// Why there is no reply.
    fn ask(&self, key: String, inquiry: Inquiry, params: Value) -> BoxFuture<'_, Result<Value, String>>;
}
