//! Lark, before it is compiled.
//!
//! The grammar library parses Lark itself. What is checked here is what it does
//! not bound: how deep brackets go, how long a regular expression is, and how
//! long a terminal becomes once the terminals in it are put in their places,
//! which doubles with each line of `A1: A0 A0`.

use std::collections::HashMap;

use llguidance::api::TopLevelGrammar;
use serde_json::Value;

use super::limits::ConstraintLimits;
use super::{json, regex};
use crate::error::Error;

/// The grammar, if it keeps within the limits.
pub(super) fn grammar(text: &str, limits: &ConstraintLimits) -> Result<TopLevelGrammar, Error> {
    let mut scan = Scan { text, at: 0, limits, depth: 0, name: "", terminals: HashMap::new() };
    while scan.at < text.len() {
        scan.step()?;
    }
    longest(&scan.terminals, limits)?;
    Ok(TopLevelGrammar::from_lark(text.to_owned()))
}

/// What a terminal, or a rule that has terminals written into it, is made of.
#[derive(Default)]
struct Terminal<'a> {
    /// Bytes of its own texts and expressions.
    own: usize,
    parts: Vec<&'a str>,
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    limits: &'a ConstraintLimits,
    depth: usize,
    /// What is being defined.
    name: &'a str,
    /// Of the same name in several nested grammars, all are taken as one.
    terminals: HashMap<&'a str, Terminal<'a>>,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn refuse<T>(&self, problem: impl std::fmt::Display) -> Result<T, Error> {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Err(Error::Constraint(format!("Lark, line {line}: {problem}")))
    }

    fn terminal(&mut self) -> &mut Terminal<'a> {
        self.terminals.entry(self.name).or_default()
    }

    /// Passes one piece of text.
    fn step(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(()) };
        let length = match first {
            '#' => line(rest),
            '/' if rest.starts_with("//") => line(rest),
            '/' => {
                let length = quoted(rest, '/');
                let body = rest.get(1..length.saturating_sub(1)).unwrap_or_default();
                regex::check(body, self.limits).or_else(|error| self.refuse(error))?;
                self.terminal().own += length;
                length
            }
            '"' => {
                let length = quoted(rest, '"');
                self.terminal().own += length;
                length
            }
            '%' => self.directive(rest)?,
            '<' => return self.refuse("tokens cannot be named in a grammar; write the text instead"),
            '(' | '[' | '{' => {
                self.depth += 1;
                if self.depth > self.limits.nesting {
                    let limit = self.limits.nesting;
                    return self.refuse(format!("brackets are nested deeper than {limit}; use named rules"));
                }
                1
            }
            ')' | ']' | '}' => {
                self.depth = self.depth.saturating_sub(1);
                1
            }
            first if first.is_ascii_alphabetic() || first == '_' => self.name(rest),
            first => first.len_utf8(),
        };
        self.at += length;
        Ok(())
    }

    /// Passes a name: of what is defined from here, or of a part of that.
    fn name(&mut self, rest: &'a str) -> usize {
        let length = rest.bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-').count();
        let (name, after) = rest.split_at(length);
        // A terminal can have a priority before the colon.
        let after = after.trim_start_matches([' ', '\t']);
        let after =
            after.strip_prefix('.').map_or(after, |after| after.trim_start_matches(|c: char| c.is_ascii_digit()));
        let after = after.trim_start_matches([' ', '\t']);
        if after.starts_with(':') && !after.starts_with("::") {
            self.name = name;
            self.terminals.entry(name).or_default();
        } else {
            self.terminal().parts.push(name);
        }
        length
    }

    /// Passes a directive with the JSON behind it.
    fn directive(&mut self, rest: &str) -> Result<usize, Error> {
        let word = 1 + rest.bytes().skip(1).take_while(u8::is_ascii_alphabetic).count();
        let (keyword, after) = rest.split_at(word);
        if !matches!(keyword, "%json" | "%regex" | "%llguidance") {
            return Ok(word);
        }
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = match values.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return self.refuse(format!("{keyword} needs JSON behind it: {error}")),
            None => return self.refuse(format!("{keyword} needs JSON behind it")),
        };
        let length = values.byte_offset();
        match keyword {
            "%json" => json::check(&value, self.limits).map(drop)?,
            "%llguidance" if value.get("allow_invalid_utf8").is_some() => {
                return self.refuse("allow_invalid_utf8 is not supported: the output is text");
            }
            _ => self.terminal().own += length,
        }
        Ok(word + length)
    }
}

/// How long a comment is, without the line end.
fn line(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// How long a quoted text is, with its quotes. The rest of the text if it does
/// not end.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// Refuses terminals that become too long.
fn longest(terminals: &HashMap<&str, Terminal<'_>>, limits: &ConstraintLimits) -> Result<(), Error> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    for &name in terminals.keys() {
        // Without recursion: a chain can have as many links as there are lines.
        let mut work = vec![(name, false)];
        while let Some((name, parts_done)) = work.pop() {
            let Some(terminal) = terminals.get(name) else { continue };
            if !parts_done {
                if known.contains_key(name) {
                    continue;
                }
                // Ends circles too, which the library refuses for terminals.
                known.insert(name, 0);
                work.push((name, true));
                work.extend(terminal.parts.iter().filter(|part| is_terminal(part)).map(|part| (*part, false)));
                continue;
            }
            let parts = terminal.parts.iter().filter(|part| is_terminal(part));
            let size = parts.fold(terminal.own, |sum, part| {
                sum.saturating_add(known.get(part).copied().unwrap_or(0)).saturating_add(1)
            });
            if size > limits.regex_bytes && is_terminal(name) {
                return Err(Error::Constraint(format!(
                    "Lark: the terminal {name} is {size} bytes long with its parts in their places, and at most {} are \
                     allowed; make it a rule",
                    limits.regex_bytes
                )));
            }
            known.insert(name, size);
        }
    }
    Ok(())
}

/// Rules are lower case. What is written into them stays apart, unless negated,
/// which the library does to single terminals.
fn is_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        grammar(text, &ConstraintLimits::default()).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn terminals_that_explode_are_refused_before_they_do() {
        let doubling: String = (0..40).map(|n| format!("A{}: A{n} A{n}\n", n + 1)).collect();
        let error = check(&format!("start: A40\nA0: \"ab\"\n{doubling}")).unwrap_err();
        assert!(error.contains("terminal A"), "{error}");
        let wide = format!("start: A\nA.2: {}\nB: \"{}\"\n", "B ".repeat(100), "b".repeat(100));
        assert!(check(&wide).unwrap_err().contains("terminal A"));
        let chain: String = (0..3000).map(|n| format!("A{n}: A{}\n", n + 1)).collect();
        assert_eq!(check(&format!("start: A0\n{chain}A3000: \"x\"")), Ok(()));
        assert_eq!(check("start: A\nA: B\nB: A"), Ok(()), "left to the library");
    }

    #[test]
    fn texts_comments_and_expressions_are_not_taken_for_structure() {
        let open = "(".repeat(100);
        assert_eq!(check(&format!("start: \"{open}\\\"{open}\" # {open}\n// {open} <x>\n  | /[{open}\\/]</")), Ok(()));
        assert!(check(&format!("start: {open}")).unwrap_err().contains("deeper than 64"));
        assert!(check("start: \"a\"\n | <|end|>").unwrap_err().contains("line 2"));
        assert!(check(&format!("start: %json {{\"pattern\": \"{}\"}}", "a".repeat(9000))).is_err());
        assert_eq!(check(&format!("start: %json {{\"const\": \"{open}\"}} \"x\"")), Ok(()));
        assert!(check("%llguidance {\"allow_invalid_utf8\": true}\nstart: \"a\"").is_err());
        assert!(check("start: %json {").is_err());
    }
}
