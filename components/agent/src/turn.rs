//! A turn of the model: what it calls.

use chat_format::{Choice, Ended, Event, Forced, Format, Parallel, Parser, force};
use nala_sdk::Error;
use nala_sdk::llm::{Finish, GenerateOptions, Grammar, Model, Session, Token};

use crate::job::First;
use crate::tools::Tools;

/// As many tokens as may be asked to be seen.
const MOST_MARKERS: usize = 64;

/// Has the model take turns.
pub(crate) struct Turns {
    format: Format,
    forced: Forced,
    grammar: Grammar,
    /// Control tokens that have to be seen to read what the model writes.
    markers: Vec<Token>,
}

/// What the model wrote in a turn.
pub(crate) struct Turn {
    /// The names of tools with their arguments, in its order.
    pub(crate) calls: Vec<(String, String)>,
    /// The tokens that it wrote.
    pub(crate) tokens: Vec<Token>,
    /// Whether it was cut off.
    pub(crate) is_cut: bool,
}

impl Turns {
    /// Each turn is a call, or several, of these tools; or one of the tool that is `first`.
    pub(crate) fn new(model: &Model, format: Format, tools: &Tools, first: Option<&First>) -> Result<Self, Error> {
        let choice = first.map_or(Choice::Required, |first| Choice::Named(first.tool().to_owned()));
        let tools = first.map_or_else(|| tools.0.clone(), |first| tools.narrowed(first));
        let parallel = match (format, first) {
            // Who was not trained on calls finds no end of them.
            (Format::Generic, _) | (_, Some(_)) => Parallel::Single,
            _ => Parallel::Allowed,
        };
        let wrong = |why: String| Error::Status(500, why);
        let forced = force(format, &tools, &choice, parallel);
        let forced = forced.map_err(|error| wrong(error.to_string()))?;
        let forced = forced.ok_or_else(|| wrong("this model cannot be made to call tools".to_owned()))?;
        let grammar = Grammar::lark(model, &forced.grammar)?;
        let tokens = format.markers().iter().filter_map(|marker| model.token_of(marker));
        let markers = tokens.take(MOST_MARKERS).collect();
        Ok(Self { format, forced, grammar, markers })
    }

    /// The text that a turn begins with.
    pub(crate) fn prefix(&self) -> &str {
        &self.forced.prefix
    }

    /// Takes a turn of at most so many tokens, in a session that ends with the prefix.
    pub(crate) fn take(&self, session: &Session, tools: &Tools, most: u32) -> Result<Turn, Error> {
        let options = GenerateOptions {
            // Nobody reads along, so all of a turn may come at once.
            flush_tokens: most,
            flush_ms: 60_000,
            shown_tokens: self.markers.clone(),
            ..GenerateOptions::greedy(most)
        };
        session.constrain(&self.grammar)?;
        let mut parser = Parser::new(self.format, &tools.0, self.prefix());
        let (mut events, mut tokens, mut is_cut) = (Vec::new(), Vec::new(), false);
        for chunk in session.generate(&options)? {
            let chunk = chunk?;
            parser.push(&chunk.text, &mut events);
            tokens.extend(chunk.tokens.iter().map(|sampled| sampled.id));
            is_cut |= matches!(chunk.finish, Some(Finish::Length | Finish::ContextFull));
        }
        session.unconstrain()?;
        parser.finish(if is_cut { Ended::Cut } else { Ended::Complete }, &mut events);
        Ok(Turn { calls: calls(&events), tokens, is_cut })
    }
}

/// The calls that were written to their end.
fn calls(events: &[Event]) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    let mut open: Option<(String, String)> = None;
    for event in events {
        match event {
            Event::CallStart { name, .. } => open = Some((name.clone(), String::new())),
            Event::CallArguments { text, .. } => {
                if let Some((_, arguments)) = &mut open {
                    arguments.push_str(text);
                }
            }
            Event::CallEnd { .. } => calls.extend(open.take()),
            Event::Malformed { .. } => open = None,
            Event::Content(_) | Event::Reasoning(_) => {}
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_that_were_written_to_their_end() {
        let start = |index, name: &str| Event::CallStart { index, name: name.to_owned(), id: None };
        let more = |index, text: &str| Event::CallArguments { index, text: text.to_owned() };
        let events = [
            Event::Content("well".to_owned()),
            start(0, "a"),
            more(0, "{\"n\""),
            more(0, ": 1}"),
            Event::CallEnd { index: 0 },
            start(1, "b"),
            Event::Malformed { index: Some(1), text: "x".to_owned(), reason: "no JSON".to_owned() },
            start(2, "c"),
            more(2, "{"),
        ];
        assert_eq!(calls(&events), [("a".to_owned(), "{\"n\": 1}".to_owned())]);
    }
}
