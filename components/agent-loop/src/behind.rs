//! What a template prints behind a turn: its end, what the tools said, and the beginning
//! of the next turn.

use nala_sdk::Error;
use nala_sdk::chat::{self, Message, Tool};
use nala_sdk::llm::{Model, Token};

/// How many tokens of an end are looked at: more than a template begins a turn with.
const END: usize = 32;

/// The tokens behind a turn to which the tools have said these. `variables` are those that
/// the template was given at the beginning, a JSON object as text.
pub(crate) fn tokens(
    model: &Model,
    tools: &[Tool],
    said: &[String],
    variables: Option<&str>,
) -> Result<Vec<Token>, Error> {
    let behind = |role: &str| {
        let results = said.iter().map(|text| Message::new(role, text.as_str())).collect();
        chat::behind_turn_with(model, tools, results, variables)
    };
    behind("tool").or_else(|error| match error {
        // Not every template has a place for tools; all have one for the user.
        Error::Chat(chat::Error::Template(_) | chat::Error::Refused(_)) => behind("user"),
        other => Err(other),
    })
}

/// The text of the end of these.
pub(crate) fn end(model: &Model, tokens: &[Token]) -> Result<String, Error> {
    let end = tokens.get(tokens.len().saturating_sub(END)..).unwrap_or_default();
    Ok(String::from_utf8_lossy(&model.decode(end)?).into_owned())
}
