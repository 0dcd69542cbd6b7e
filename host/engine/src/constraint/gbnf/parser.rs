//! Reads GBNF, by the grammar of llama.cpp's `llama-grammar.cpp`.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

use super::MAX_REPETITION;
use super::characters::Characters;
use super::rules::{Element, Rule, RuleId, Rules, What};
use crate::error::Error;

/// Reads a grammar.
pub(super) fn parse(text: &str, nesting: usize) -> Result<Rules, Error> {
    let mut parser = Parser {
        rest: text.chars().peekable(),
        place: Place { line: 1, column: 1 },
        rules: Vec::new(),
        names: HashMap::new(),
        depth: 0,
        nesting,
    };
    parser.space(Lines::Skip);
    while parser.rest.peek().is_some() {
        parser.rule()?;
    }
    parser.finish()
}

/// Where in the text, both from 1; columns count characters.
#[derive(Debug, Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn refuse<T>(self, problem: impl std::fmt::Display) -> Result<T, Error> {
        let Self { line, column } = self;
        Err(Error::Constraint(format!("GBNF, line {line}, column {column}: {problem}")))
    }
}

/// Whether a line end is only space here.
#[derive(Debug, Clone, Copy)]
enum Lines {
    Skip,
    Keep,
}

struct Name {
    id: RuleId,
    used: Place,
    defined: bool,
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    place: Place,
    rules: Vec<Rule>,
    names: HashMap<String, Name>,
    depth: usize,
    nesting: usize,
}

fn is_name(c: char) -> bool {
    // llama.cpp knows no underscore; other tools write them.
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(c)
    }

    fn next_is(&mut self, c: char) -> bool {
        self.rest.peek() == Some(&c)
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.next_is(c);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, c: char, where_: &str) -> Result<(), Error> {
        if self.take(c) { Ok(()) } else { self.unexpected(&format!("`{c}` {where_}")) }
    }

    fn unexpected<T>(&mut self, wanted: &str) -> Result<T, Error> {
        match self.rest.peek().copied() {
            Some(c) => self.place.refuse(format!("found {c:?} where {wanted} was expected")),
            None => self.place.refuse(format!("the text ends where {wanted} was expected")),
        }
    }

    /// Skips blanks and comments.
    fn space(&mut self, lines: Lines) {
        while let Some(&c) = self.rest.peek() {
            match (c, lines) {
                (' ' | '\t', _) | ('\r' | '\n', Lines::Skip) => {
                    self.next();
                }
                ('#', _) => {
                    while self.rest.peek().is_some_and(|&c| c != '\r' && c != '\n') {
                        self.next();
                    }
                }
                _ => break,
            }
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(&c) = self.rest.peek().filter(|&&c| is_name(c)) {
            name.push(c);
            self.next();
        }
        name
    }

    fn new_rule(&mut self) -> RuleId {
        self.rules.push(Rule::default());
        RuleId(self.rules.len() - 1)
    }

    fn named(&mut self, name: String, used: Place) -> &mut Name {
        let next = RuleId(self.rules.len());
        let entry = self.names.entry(name).or_insert(Name { id: next, used, defined: false });
        if entry.id == next {
            self.rules.push(Rule::default());
        }
        entry
    }

    fn set(&mut self, id: RuleId, alternatives: Vec<Vec<Element>>) {
        if let Some(rule) = self.rules.get_mut(id.0) {
            rule.alternatives = alternatives;
        }
    }

    fn rule(&mut self) -> Result<(), Error> {
        let place = self.place;
        let name = self.name();
        if name.is_empty() {
            return self.unexpected("the name of a rule");
        }
        let shown = name.clone();
        let entry = self.named(name, place);
        if std::mem::replace(&mut entry.defined, true) {
            return place.refuse(format!("the rule \"{shown}\" is defined twice"));
        }
        let id = entry.id;
        self.space(Lines::Keep);
        for c in "::=".chars() {
            self.expect(c, "of `::=`")?;
        }
        self.space(Lines::Skip);
        let alternatives = self.alternatives(Lines::Keep)?;
        self.set(id, alternatives);
        if self.rest.peek().is_some() && !self.next_is('\n') && !self.next_is('\r') {
            return self.unexpected("the end of the rule");
        }
        self.space(Lines::Skip);
        Ok(())
    }

    fn alternatives(&mut self, lines: Lines) -> Result<Vec<Vec<Element>>, Error> {
        let mut alternatives = vec![self.sequence(lines)?];
        while self.take('|') {
            self.space(Lines::Skip);
            alternatives.push(self.sequence(lines)?);
        }
        Ok(alternatives)
    }

    fn sequence(&mut self, lines: Lines) -> Result<Vec<Element>, Error> {
        let mut sequence: Vec<Element> = Vec::new();
        while let Some(&c) = self.rest.peek() {
            let what = match c {
                '"' => What::Text(self.text()?),
                '[' => What::Class(self.class()?),
                '.' => {
                    self.next();
                    What::Class(Characters::all())
                }
                '(' => What::Rule(self.group()?),
                '<' | '!' => {
                    return self.place.refuse("rules about tokens are not supported; write the text instead");
                }
                '*' | '+' | '?' | '{' => {
                    let (min, max) = self.repetition(lines)?;
                    let Some(last) = sequence.pop() else {
                        return self.place.refuse(format!("there is nothing before `{c}` to repeat"));
                    };
                    let repeated = self.repeat(last, min, max);
                    sequence.push(repeated);
                    self.space(lines);
                    continue;
                }
                c if is_name(c) => {
                    let place = self.place;
                    let name = self.name();
                    What::Rule(self.named(name, place).id)
                }
                _ => break,
            };
            sequence.push(Element::once(what));
            self.space(lines);
        }
        Ok(sequence)
    }

    fn repeat(&mut self, element: Element, min: u32, max: Option<u32>) -> Element {
        if element.is_once() {
            return Element { what: element.what, min, max };
        }
        let id = self.new_rule();
        self.set(id, vec![vec![element]]);
        Element { what: What::Rule(id), min, max }
    }

    fn group(&mut self) -> Result<RuleId, Error> {
        if self.depth >= self.nesting {
            return self.place.refuse(format!("groups are nested deeper than {}; use named rules", self.nesting));
        }
        self.depth += 1;
        self.next();
        self.space(Lines::Skip);
        let id = self.new_rule();
        let alternatives = self.alternatives(Lines::Skip)?;
        self.set(id, alternatives);
        self.expect(')', "or another part of the group")?;
        self.depth -= 1;
        Ok(id)
    }

    fn repetition(&mut self, lines: Lines) -> Result<(u32, Option<u32>), Error> {
        let place = self.place;
        let (min, max) = match self.next() {
            Some('*') => return Ok((0, None)),
            Some('+') => return Ok((1, None)),
            Some('?') => return Ok((0, Some(1))),
            _ => {
                self.space(lines);
                let min = self.number()?;
                self.space(lines);
                let mut max = Some(min);
                if self.take(',') {
                    self.space(lines);
                    max = None;
                    if !self.next_is('}') {
                        max = Some(self.number()?);
                        self.space(lines);
                    }
                }
                self.expect('}', "of the repetition")?;
                (min, max)
            }
        };
        if max.is_some_and(|max| max < min) {
            return place.refuse("a repetition's upper bound is below its lower bound");
        }
        Ok((min, max))
    }

    fn number(&mut self) -> Result<u32, Error> {
        let place = self.place;
        let mut digits = String::new();
        while let Some(&c) = self.rest.peek().filter(|c| c.is_ascii_digit()) {
            digits.push(c);
            self.next();
        }
        if digits.is_empty() {
            return self.unexpected("a number");
        }
        match digits.parse() {
            Ok(number) if number <= MAX_REPETITION => Ok(number),
            _ => place.refuse(format!("a repetition's bound is at most {MAX_REPETITION}; leave it out for no bound")),
        }
    }

    fn text(&mut self) -> Result<String, Error> {
        let place = self.place;
        self.next();
        let mut text = String::new();
        while !self.take('"') {
            if self.rest.peek().is_none() {
                return place.refuse("the closing quote of this text is missing");
            }
            text.push(self.character()?);
        }
        Ok(text)
    }

    fn class(&mut self) -> Result<Characters, Error> {
        let place = self.place;
        self.next();
        let negated = self.take('^');
        let mut ranges = Vec::new();
        while !self.take(']') {
            if self.rest.peek().is_none() {
                return place.refuse("the closing bracket of this class is missing");
            }
            let at = self.place;
            let from = self.character()?;
            let mut to = from;
            // A `-` at the end stands for itself.
            let mut ahead = self.rest.clone();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']') {
                self.next();
                to = self.character()?;
            }
            if to < from {
                return at.refuse(format!("the range {from:?}-{to:?} is backwards"));
            }
            ranges.push((from, to));
        }
        if ranges.is_empty() {
            return place.refuse("this class is empty; `.` is any character");
        }
        let class = Characters::of(&ranges);
        let class = if negated { class.others() } else { class };
        if class.is_empty() { place.refuse("this class has no character") } else { Ok(class) }
    }

    fn character(&mut self) -> Result<char, Error> {
        let place = self.place;
        match self.next() {
            Some('\\') => match self.next() {
                Some('x') => self.code_point(place, 2),
                Some('u') => self.code_point(place, 4),
                Some('U') => self.code_point(place, 8),
                Some('t') => Ok('\t'),
                Some('r') => Ok('\r'),
                Some('n') => Ok('\n'),
                Some(c @ ('\\' | '"' | '[' | ']' | '-' | '^')) => Ok(c),
                Some(c) => place.refuse(format!("`\\{}` is no escape of GBNF", c.escape_default())),
                None => place.refuse("the text ends within an escape"),
            },
            Some(c) => Ok(c),
            None => place.refuse("the text ends where a character was expected"),
        }
    }

    fn code_point(&mut self, place: Place, digits: usize) -> Result<char, Error> {
        let mut value = 0_u32;
        for _ in 0..digits {
            let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(16)) else {
                return place.refuse(format!("this escape needs {digits} hexadecimal digits"));
            };
            // At most 8 digits: shifts out nothing.
            value = value << 4 | digit;
            self.next();
        }
        match char::from_u32(value) {
            Some(c) => Ok(c),
            None => place.refuse(format!("U+{value:04X} is no character")),
        }
    }

    fn finish(self) -> Result<Rules, Error> {
        // The first one in the text, for an error that is the same each time.
        let missing = self.names.iter().filter(|(_, name)| !name.defined);
        if let Some((name, entry)) = missing.min_by_key(|(_, entry)| (entry.used.line, entry.used.column)) {
            return entry.used.refuse(format!("the rule \"{name}\" is used and not defined"));
        }
        let Some(root) = self.names.get("root") else {
            return Err(Error::Constraint("GBNF: the rule \"root\" is missing; the output begins there".to_owned()));
        };
        let root = root.id;
        Ok(Rules { rules: self.rules, root })
    }
}
