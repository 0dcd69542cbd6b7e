//! How a call that a model makes of its own accord can be held to a schema.

use crate::Format;
use crate::families::notation;
use crate::notation::{Bare, Body, Forcing, InThought};

/// What a model writes where it begins a call of its own accord, and nowhere else.
///
/// Whoever sees it can go on as [`force()`](crate::force()) does for a required call:
/// take it back, write [`Forced::prefix`](crate::Forced::prefix) in its place, and
/// hold what follows to the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// This text, with which `Forced::prefix` begins; wherever it stands.
    Marker(&'static str),
    /// This text, if it is the first thing that is said. `Forced::prefix` is empty.
    First(&'static str),
}

impl Format {
    /// How calls begin in this notation. None where that cannot be told from what
    /// else a model says.
    #[must_use]
    pub fn opening(self) -> Option<Opening> {
        let notation = notation(self);
        let prefix = match notation.forced {
            Forcing::Object { prefix, .. } | Forcing::Array { prefix, .. } | Forcing::Named { prefix, .. } => prefix,
        };
        let headed = notation.blocks.iter().any(|block| matches!(block.body, Body::Header(_)));
        match (prefix, notation.bare) {
            ("", Bare::Json) => Some(Opening::First("{")),
            // The list of calls in Python's notation: a call is then written as JSON.
            ("", Bare::Python) => Some(Opening::First("[")),
            ("", _) => None,
            // Other messages have headers, too; only the whole of this one says what it is.
            _ if headed => prefix.starts_with("<|channel|>").then_some(Opening::Marker(prefix)),
            _ => notation.blocks.iter().find_map(|block| {
                let open = block.open.trim_end();
                match prefix.find(open) {
                    Some(at) => prefix.get(..at + open.len()).map(Opening::Marker),
                    None => open.starts_with(prefix).then_some(Opening::Marker(prefix)),
                }
            }),
        }
    }
}

impl Format {
    /// What begins and ends thoughts, where a call cannot begin in one. Empty where it
    /// can: then it ends the thought.
    #[must_use]
    pub fn thoughts_without_calls(self) -> Vec<(&'static str, &'static str)> {
        let notation = notation(self);
        match notation.blocks.first() {
            Some(block) if block.in_thought == InThought::Text => {
                notation.thoughts.iter().map(|thought| (thought.open.trim_end(), thought.close)).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, Parallel, Strict, Tool, force};

    #[test]
    fn a_forced_call_begins_with_the_opening() {
        let tool = Tool { name: "f".to_owned(), description: None, parameters: None, strict: Strict::Lenient };
        let mut none = Vec::new();
        for &format in Format::ALL {
            let forced = force(format, std::slice::from_ref(&tool), &Choice::Required, Parallel::Single);
            let prefix = forced.unwrap().unwrap().prefix;
            match format.opening() {
                Some(Opening::Marker(text)) => assert!(!text.is_empty() && prefix.starts_with(text), "{format:?}"),
                Some(Opening::First(_)) => assert_eq!(prefix, "", "{format:?}"),
                None => none.push(format),
            }
        }
        assert_eq!(none, [Format::Functionary32, Format::MuseGlimmer]);
    }

    #[test]
    fn openings_say_what_they_are() {
        let opening = |format: Format| format.opening().unwrap();
        assert_eq!(opening(Format::Hermes), Opening::Marker("<tool_call>"));
        assert_eq!(opening(Format::Llama3), Opening::First("{"));
        assert_eq!(opening(Format::Harmony), Opening::Marker("<|channel|>commentary to=functions."));
        assert_eq!(opening(Format::DeepSeekV31), Opening::Marker("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"));
    }
}
