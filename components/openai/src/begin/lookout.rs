//! Where a model begins a call of its own accord.

use chat_format::{Format, Opening, Tool};

/// How much of what was said is kept: more than any marker and what is between it and
/// the call.
const KEPT: usize = 512;

/// What tells that a call has begun.
#[derive(Debug, Clone)]
pub(super) struct Signs {
    opening: Opening,
    /// What a call begins with where no marker does, without its white space.
    first: Vec<String>,
    /// What begins and ends thoughts. Empty where a call ends them, too.
    thoughts: Vec<(&'static str, &'static str)>,
    sure: Sure,
}

/// When a marker is sure to begin a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sure {
    /// At once: it is a control token.
    Always,
    /// Where what follows it looks like a call. A model may talk about it.
    WithACall,
    /// At the beginning of the answer, and nowhere else: the rest is of a form.
    AtFirst,
}

impl Signs {
    /// None where the notation does not tell.
    pub(super) fn of(format: Format, tools: &[Tool], sure: impl FnOnce(&str) -> Sure) -> Option<Self> {
        let opening = format.opening()?;
        let (first, sure) = match opening {
            Opening::Marker(text) => (Vec::new(), sure(text)),
            // In the two notations that have no marker: JSON, and Python's.
            Opening::First("{") => (names(tools, "{\"name\":\"", "\""), Sure::WithACall),
            Opening::First(open) => (names(tools, open, "("), Sure::WithACall),
        };
        Some(Self { opening, first, thoughts: format.thoughts_without_calls(), sure })
    }

    /// What is said where a call begins.
    pub(super) fn text(&self) -> &'static str {
        match self.opening {
            Opening::Marker(text) | Opening::First(text) => text,
        }
    }

    /// Whether nothing of the call has been read where it is found.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self.opening, Opening::First(_))
    }
}

fn names(tools: &[Tool], before: &str, after: &str) -> Vec<String> {
    tools.iter().map(|tool| format!("{before}{}{after}", tool.name)).collect()
}

/// Looks out for the beginning of a call in what one choice says.
#[derive(Debug)]
pub(super) struct Lookout {
    signs: Signs,
    /// What has been said last.
    said: String,
    /// Whether something stands before it.
    cut: bool,
    /// Where in `said` a call can still begin.
    from: usize,
    thought: Thought,
}

/// Whether there was a thought before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thought {
    /// Not yet, or none.
    Possible,
    /// It is over.
    Had,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    /// No call yet.
    Nothing,
    /// No call can come any more.
    Never,
    /// A call. What stands before it in the text that was given last; None if it began
    /// earlier, so many bytes before that text.
    Call(Result<String, usize>),
}

impl Lookout {
    pub(super) fn new(signs: Signs) -> Self {
        Self { signs, said: String::new(), cut: false, from: 0, thought: Thought::Possible }
    }

    /// Takes more of what is said. `thinking` is whether it begins in a thought.
    pub(super) fn look(&mut self, text: &str, thinking: bool) -> Sight {
        let read = self.said.len();
        self.said.push_str(text);
        if !self.signs.thoughts.is_empty() && (thinking || self.begins_with_a_thought()) {
            let closed = |(_, close): &(_, &'static str)| self.said.rfind(close).map(|at| at + close.len());
            let end = self.signs.thoughts.iter().filter_map(closed).max();
            if end.is_some() {
                self.thought = Thought::Had;
            }
            self.from = end.map_or(self.said.len(), |end| end.max(self.from));
        }
        let sight = match self.signs.opening {
            Opening::Marker(marker) => self.marked(marker),
            Opening::First(_) => self.first(),
        };
        match sight {
            Ok(at) if at >= read => Sight::Call(Ok(self.said.get(read..at).unwrap_or_default().to_owned())),
            Ok(at) => Sight::Call(Err(read - at)),
            Err(never) => {
                self.forget();
                never
            }
        }
    }

    /// Whether the answer begins with a thought that has not ended.
    fn begins_with_a_thought(&self) -> bool {
        let begun = |(open, _): &(&'static str, _)| self.said.trim_start().starts_with(open);
        self.thought == Thought::Possible && !self.cut && self.signs.thoughts.iter().any(begun)
    }

    fn marked(&mut self, marker: &str) -> Result<usize, Sight> {
        while let Some(at) = self.said.get(self.from..).and_then(|rest| rest.find(marker)) {
            let at = self.from + at;
            let end = at + marker.len();
            let after = self.said.get(end..).unwrap_or_default().trim_start();
            let nothing_before = !self.cut && self.said.get(..at).is_some_and(|before| before.trim().is_empty());
            match self.signs.sure {
                Sure::Always => return Ok(at),
                Sure::AtFirst if nothing_before => return Ok(at),
                Sure::WithACall if after.starts_with(['{', '[', '<']) => return Ok(at),
                Sure::WithACall if after.is_empty() => {
                    self.from = at;
                    return Err(Sight::Nothing);
                }
                Sure::AtFirst | Sure::WithACall => self.from = end,
            }
        }
        Err(Sight::Nothing)
    }

    fn first(&self) -> Result<usize, Sight> {
        let begun = self.said.get(self.from..).unwrap_or_default();
        let dense: String = begun.chars().filter(|c| !c.is_whitespace()).take(KEPT).collect();
        let candidates = &self.signs.first;
        if candidates.iter().any(|call| dense.starts_with(call.as_str())) {
            return Ok(self.said.len() - begun.trim_start().len());
        }
        let possible = !self.cut && candidates.iter().any(|call| call.starts_with(dense.as_str()));
        Err(if possible { Sight::Nothing } else { Sight::Never })
    }

    /// Drops what no call can begin in.
    fn forget(&mut self) {
        // A call without a marker is the first thing that is said.
        if self.signs.is_unread() {
            return;
        }
        let mut at = self.said.len().saturating_sub(KEPT);
        while !self.said.is_char_boundary(at) {
            at += 1;
        }
        self.cut |= at > 0;
        self.said.drain(..at);
        self.from = self.from.saturating_sub(at);
    }
}

#[cfg(test)]
mod tests {
    use chat_format::Strict;

    use super::*;

    fn lookout(format: Format, sure: Sure) -> Lookout {
        let tool =
            |name: &str| Tool { name: name.to_owned(), description: None, parameters: None, strict: Strict::Enforced };
        Lookout::new(Signs::of(format, &[tool("weather"), tool("time")], |_| sure).unwrap())
    }

    /// What is seen with the last of several pieces.
    fn last(mut lookout: Lookout, pieces: &[(&str, bool)]) -> Sight {
        let mut sight = Sight::Nothing;
        for (text, thinking) in pieces {
            assert!(!matches!(sight, Sight::Call(_)), "{pieces:?}: {sight:?}");
            sight = lookout.look(text, *thinking);
        }
        sight
    }

    fn hermes(pieces: &[(&str, bool)]) -> Sight {
        last(lookout(Format::Hermes, Sure::WithACall), pieces)
    }

    #[test]
    fn a_marker_counts_where_a_call_follows() {
        assert_eq!(hermes(&[("Well: <tool_call>\n{", false)]), Sight::Call(Ok("Well: ".to_owned())));
        assert_eq!(hermes(&[("a<tool", false), ("_call>", false)]), Sight::Nothing);
        assert_eq!(
            hermes(&[("a<tool", false), ("_call>", false), ("\n", false), ("{\"n", false)]),
            Sight::Call(Err(12))
        );
        assert_eq!(hermes(&[("the tag <tool_call> is", false), (" {", false)]), Sight::Nothing);
        let long = "x".repeat(2 * KEPT);
        assert_eq!(hermes(&[(&long, false), ("<tool_call>{", false)]), Sight::Call(Ok(String::new())));
    }

    #[test]
    fn a_marker_in_a_thought_is_a_thought() {
        assert_eq!(hermes(&[("<tool_call>{", true)]), Sight::Nothing);
        assert_eq!(hermes(&[("<tool_call>{", true), ("}</think>", true), ("Hello", false)]), Sight::Nothing);
        let after = "}</think>ok<tool_call>{";
        assert_eq!(hermes(&[("<tool_call>{", true), (after, true)]), Sight::Call(Ok("}</think>ok".to_owned())));
    }

    #[test]
    fn a_thought_that_comes_at_once_is_seen() {
        let thought = "<think>I may write <tool_call>\n{} here.</think>";
        assert_eq!(hermes(&[(thought, false), ("Hello", false)]), Sight::Nothing);
        assert_eq!(hermes(&[(&format!("{thought}Hello"), false)]), Sight::Nothing);
        let call = format!("{thought}Hello<tool_call>{{");
        assert_eq!(hermes(&[(&call, false)]), Sight::Call(Ok(format!("{thought}Hello"))));
        assert_eq!(hermes(&[("<th", false), ("ink><tool_call>{", false)]), Sight::Nothing);
        // It is over, and may be talked about.
        let said = "No <think> here <tool_call>{";
        assert_eq!(hermes(&[(thought, false), (said, false)]), Sight::Call(Ok("No <think> here ".to_owned())));
    }

    #[test]
    fn a_control_token_counts_at_once_and_in_thoughts() {
        let mistral = lookout(Format::Mistral, Sure::Always);
        assert_eq!(last(mistral, &[("Hm[TOOL_CALLS]", true)]), Sight::Call(Ok("Hm".to_owned())));
    }

    #[test]
    fn in_an_answer_of_a_form_only_the_beginning_counts() {
        let form = || lookout(Format::Hermes, Sure::AtFirst);
        assert_eq!(last(form(), &[(" <tool_call>", false)]), Sight::Call(Ok(" ".to_owned())));
        assert_eq!(last(form(), &[("{\"a\":\"<tool_call>", false), ("\"}", false)]), Sight::Nothing);
    }

    #[test]
    fn without_a_marker_the_name_of_a_tool_counts() {
        let llama = || lookout(Format::Llama3, Sure::WithACall);
        assert_eq!(last(llama(), &[("\n{ \"name\":", false), (" \"weather\"", false)]), Sight::Call(Err(9)));
        assert_eq!(last(llama(), &[("{\"name\": \"weather", false)]), Sight::Nothing);
        assert_eq!(last(llama(), &[("{\"answer\": 4}", false)]), Sight::Never);
        assert_eq!(last(llama(), &[("Well, ", false)]), Sight::Never);
        let python = lookout(Format::Pythonic, Sure::WithACall);
        assert_eq!(last(python, &[("[time(", false)]), Sight::Call(Ok(String::new())));
    }
}
