//! What a template prints behind a turn: its end, what the tools said, and the beginning
//! of the next turn.

use nala_sdk::Error;
use nala_sdk::chat::{self, Message, Tool};
use nala_sdk::llm::{Model, Token};

/// The tokens behind a turn to which the tools have said these.
pub(crate) fn tokens(model: &Model, tools: &[Tool], said: &[String]) -> Result<Vec<Token>, Error> {
    let results = |role: &str| said.iter().map(|text| Message::new(role, text.as_str())).collect();
    chat::behind_turn(model, tools, results("tool")).or_else(|error| match error {
        // Not every template has a place for tools; all have one for the user.
        Error::Chat(chat::Error::Template(_) | chat::Error::Refused(_)) => {
            chat::behind_turn(model, tools, results("user"))
        }
        other => Err(other),
    })
}
