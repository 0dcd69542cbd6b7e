//! The source of a template, rewritten where minijinja's language lacks something
//! of Python's and transformers' that templates use.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::scan::{Kind, Place, Tag, Token, tags};
use crate::{Error, depth, list, percent, print};

/// The source of a template, as the engine can run it.
#[derive(Debug, Clone)]
pub struct Source<'a>(Cow<'a, str>);

/// The most tokens that a tag may have: ten times what the longest of a real
/// template has. Chains of operators are compiled by recursion.
const MAX_TOKENS: usize = 1000;

/// The most branches that all conditions together may have, for the same reason.
const MAX_BRANCHES: usize = 500;

/// The longest source, in bytes.
const MAX_SOURCE: usize = 1024 * 1024;

/// A text to be put in the place of a range of the source.
struct Edit {
    range: Range<usize>,
    text: String,
    /// Where what it belongs to begins: at one place, the inner ends before the
    /// outer.
    begins: usize,
}

/// Whether a template changes lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    Stay,
    Change,
}

/// Methods that change a list.
const CHANGES: [&str; 4] = ["append", "extend", "insert", "pop"];

/// Words before which and after which an expression begins.
const KEYWORDS: [&str; 9] = ["in", "and", "or", "not", "if", "else", "elif", "is", "do"];

impl<'a> Source<'a> {
    /// Rewrites
    /// - `{% generation %}` and `{% endgeneration %}` of transformers, which mark the
    ///   assistant's text for training and print nothing, into conditions that
    ///   always hold;
    /// - `'…' % values` into a filter;
    /// - operands of `~` that are no constants into their texts as Python has them;
    /// - lists that are written down, in a template that changes lists, into lists
    ///   that can be changed.
    /// - what is written down of other values into what looks how deep they are.
    ///
    /// # Errors
    /// [`Error::Template`] for a source that is too long, or a tag of it.
    pub fn of(source: &'a str) -> Result<Self, Error> {
        if source.len() > MAX_SOURCE {
            return Err(Error::Template(format!("its source is longer than {MAX_SOURCE} bytes")));
        }
        let changed = CHANGES.iter().any(|method| source.contains(&format!(".{method}(")));
        let changes = if changed { Lists::Change } else { Lists::Stay };
        let mut edits: Vec<Edit> = Vec::new();
        let mut branches = 0_usize;
        for tag in tags(source) {
            let read = Read { source, tag: &tag };
            let line = || source.get(..read.begins(0)).unwrap_or_default().lines().count();
            if tag.tokens.len() > MAX_TOKENS {
                return Err(Error::Template(format!("a tag has more than {MAX_TOKENS} parts (line {})", line())));
            }
            branches += tag.tokens.iter().filter(|token| source.get(token.range.clone()) == Some("elif")).count();
            if branches > MAX_BRANCHES {
                return Err(Error::Template(format!("it has more than {MAX_BRANCHES} `elif` (line {})", line())));
            }
            match tag.word(source) {
                Some(("generation", range)) => edits.push(Edit { range, text: "if true".to_owned(), begins: 0 }),
                Some(("endgeneration", range)) => edits.push(Edit { range, text: "endif".to_owned(), begins: 0 }),
                Some(_) => {}
                None => {
                    read.formats(&mut edits);
                    read.joins(&mut edits);
                    read.literals(changes, &mut edits);
                    read.namespaces(&mut edits);
                }
            }
        }
        if edits.is_empty() {
            return Ok(Self(Cow::Borrowed(source)));
        }
        edits.sort_by_key(|edit| (edit.range.start, Reverse(edit.begins)));
        // An operand between two `~` is found twice.
        edits.dedup_by(|a, b| a.range == b.range && a.text == b.text && a.text.ends_with(print::FILTER));
        let mut out = String::with_capacity(source.len() + edits.len() * 24);
        let mut done = 0;
        for edit in edits {
            out.push_str(source.get(done..edit.range.start).unwrap_or_default());
            out.push_str(&edit.text);
            done = edit.range.end;
        }
        out.push_str(source.get(done..).unwrap_or_default());
        Ok(Self(Cow::Owned(out)))
    }

    /// The source as it is run.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The names by which the template may look something up: attributes, and
    /// constants that are names.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.constants().into_iter().map(|(_, text)| text).collect();
        for tag in tags(&self.0) {
            let read = Read { source: &self.0, tag: &tag };
            let attributes = (1..tag.tokens.len()).filter(|at| read.text(at - 1) == "." && read.is(*at, Kind::Word));
            names.extend(attributes.map(|at| read.text(at).to_owned()));
        }
        names.retain(|name| is_name(name));
        names
    }

    /// The string constants, in order, each with its place.
    pub(crate) fn constants(&self) -> Vec<(Place, String)> {
        let mut found = Vec::new();
        for tag in tags(&self.0) {
            for token in tag.tokens.iter().filter(|token| token.kind == Kind::String) {
                let quoted = self.0.get(token.range.clone()).unwrap_or_default();
                found.push((tag.place, constant(quoted)));
            }
        }
        found
    }
}

/// A plain name, which is no control token in itself.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// A tag and the source that it is in.
struct Read<'a> {
    source: &'a str,
    tag: &'a Tag,
}

impl<'a> Read<'a> {
    fn token(&self, index: usize) -> Option<&'a Token> {
        self.tag.tokens.get(index)
    }

    fn text(&self, index: usize) -> &'a str {
        self.token(index).and_then(|token| self.source.get(token.range.clone())).unwrap_or_default()
    }

    fn is(&self, index: usize, kind: Kind) -> bool {
        self.token(index).is_some_and(|token| token.kind == kind)
    }

    /// Rewrites `'…' % values`.
    fn formats(&self, edits: &mut Vec<Edit>) {
        for index in 1..self.tag.tokens.len() {
            if self.text(index) != "%" || !self.is(index - 1, Kind::String) {
                continue;
            }
            let (Some(sign), Some(last)) = (self.token(index), self.operand(index + 1)) else { continue };
            let (begins, end) = (sign.range.start, last.range.end);
            edits.push(Edit { range: sign.range.clone(), text: format!("|{}(", percent::FILTER), begins });
            edits.push(Edit { range: end..end, text: ")".to_owned(), begins });
        }
    }

    /// Rewrites the operands of `~`, where they can be told without parsing.
    fn joins(&self, edits: &mut Vec<Edit>) {
        let text = format!("|{}", print::FILTER);
        for index in (0..self.tag.tokens.len()).filter(|index| self.text(*index) == "~") {
            let simple = |at: usize| self.is(at, Kind::Word) && !KEYWORDS.contains(&self.text(at));
            if let Some(last) = Some(index + 1).filter(|next| simple(*next)).and_then(|next| self.operand(next)) {
                let after = self.tag.tokens.iter().find(|token| token.range.start >= last.range.end);
                let after = after.and_then(|token| self.source.get(token.range.clone())).unwrap_or_default();
                if !matches!(after, "*" | "/" | "%" | "is") {
                    let end = last.range.end;
                    edits.push(Edit { range: end..end, text: text.clone(), begins: self.begins(index + 1) });
                }
            }
            // On the left, names alone, with nothing before them that binds.
            let Some(mut start) = index.checked_sub(1).filter(|before| simple(*before)) else { continue };
            let end = self.token(start).map_or(0, |token| token.range.end);
            while start >= 2 && self.text(start - 1) == "." && simple(start - 2) {
                start -= 2;
            }
            let before = start.checked_sub(1).map_or("", |before| self.text(before));
            if matches!(
                before,
                "" | "(" | "[" | "{" | "," | "=" | ":" | "+" | "if" | "else" | "in" | "and" | "or" | "not"
            ) {
                edits.push(Edit { range: end..end, text: text.clone(), begins: self.begins(start) });
            }
        }
    }

    /// The last token of the operand that begins at a token: signs, a value, and
    /// what is looked up in it, called on it or filters it.
    fn operand(&self, from: usize) -> Option<&'a Token> {
        let mut at = from;
        while matches!(self.text(at), "-" | "+") {
            at += 1;
        }
        let mut last = self.whole(at)?;
        loop {
            let next = last + 1;
            let more = match self.text(next) {
                "." | "|" => self.whole(next + 1),
                "(" | "[" => self.whole(next),
                _ => None,
            };
            match more {
                Some(end) => last = end,
                None => return self.token(last),
            }
        }
    }

    /// Where the value that begins at a token ends: at itself, or at its bracket.
    fn whole(&self, at: usize) -> Option<usize> {
        match self.token(at)?.kind {
            Kind::Word | Kind::Number | Kind::String => Some(at),
            Kind::Open => self.closing(at),
            Kind::Close | Kind::Sign => None,
        }
    }

    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (index, token) in self.tag.tokens.iter().enumerate().skip(open) {
            match token.kind {
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return Some(index);
            }
        }
        None
    }

    /// Rewrites lists, dictionaries and tuples that are written down: those of other
    /// values look how deep they are, and lists can change where the template
    /// changes lists.
    fn literals(&self, changes: Lists, edits: &mut Vec<Edit>) {
        for (index, open) in self.tag.tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Open) {
            let looks_up =
                index.checked_sub(1).and_then(|before| self.token(before)).is_some_and(|token| match token.kind {
                    Kind::Word => !KEYWORDS.contains(&self.text(index - 1)),
                    Kind::Number | Kind::String | Kind::Close => true,
                    Kind::Open | Kind::Sign => false,
                });
            let Some(close) = self.closing(index).filter(|_| !looks_up) else { continue };
            let filter = match self.text(index) {
                "[" if changes == Lists::Change => list::FILTER,
                "(" if !self.has_comma(index, close) => continue,
                _ if !(index..close).any(|at| self.is(at, Kind::Word)) => continue,
                _ => depth::FILTER,
            };
            let (begins, end) = (open.range.start, self.token(close).map_or(open.range.end, |token| token.range.end));
            edits.push(Edit { range: begins..begins, text: "(".to_owned(), begins });
            edits.push(Edit { range: end..end, text: format!("|{filter})"), begins });
        }
    }

    /// Namespaces and dictionaries that are made of other values, and what is put into
    /// namespaces by name, look how deep they are.
    fn namespaces(&self, edits: &mut Vec<Edit>) {
        for index in 0..self.tag.tokens.len() {
            let called = matches!(self.text(index), "namespace" | "dict") && self.text(index + 1) == "(";
            let attribute = index.checked_sub(1).is_some_and(|before| matches!(self.text(before), "." | "|"));
            let close = self.closing(index + 1).filter(|_| called && !attribute).and_then(|close| self.token(close));
            let Some(close) = close.filter(|close| close.range.start > self.begins(index + 1) + 1) else { continue };
            let (begins, end) = (self.begins(index), close.range.end);
            edits.push(Edit { range: begins..begins, text: "(".to_owned(), begins });
            edits.push(Edit { range: end..end, text: format!("|{})", depth::FILTER), begins });
        }

        let start = usize::from(matches!(self.text(0), "-" | "+"));
        let last = self.tag.tokens.len().saturating_sub(1);
        let end = if matches!(self.text(last), "-" | "+") { last } else { last + 1 };
        if self.text(start) != "set" || self.text(start + 2) != "." || self.text(start + 4) != "=" {
            return;
        }
        let value = start + 5..end;
        let by_name = |at: usize| self.is(at, Kind::Word) || self.text(at) == ".";
        if let Some(last) = value.clone().next_back().and_then(|last| self.token(last))
            && value.clone().all(by_name)
        {
            let at = last.range.end;
            let text = format!("|{}", depth::ASSIGNED);
            edits.push(Edit { range: at..at, text, begins: self.begins(value.start) });
        }
    }

    /// Whether there is a comma right within brackets.
    fn has_comma(&self, open: usize, close: usize) -> bool {
        let mut depth = 0_usize;
        (open + 1..close).any(|at| {
            match self.token(at).map(|token| token.kind) {
                Some(Kind::Open) => depth += 1,
                Some(Kind::Close) => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && self.text(at) == ","
        })
    }

    /// Where a token begins.
    fn begins(&self, index: usize) -> usize {
        self.token(index).map_or(0, |token| token.range.start)
    }
}

/// The text of a string constant, given with its quotes.
fn constant(quoted: &str) -> String {
    let mut text = String::new();
    let mut chars = quoted.chars();
    let quote = chars.next();
    while let Some(c) = chars.next() {
        match c {
            _ if Some(c) == quote => break,
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => break,
            },
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(source: &str) -> String {
        Source::of(source).unwrap().text().to_owned()
    }

    #[test]
    fn generation_tags_become_conditions_and_keep_their_dashes() {
        assert_eq!(
            rewritten("a{%- generation -%}b{% endgeneration %}{% if generation %}c"),
            "a{%- if true -%}b{% endif %}{% if generation %}c"
        );
        for kept in ["add_generation {% open", "{% %}{{}}{%-%}{{ - }}", "{% set", "{{ ( [ {"] {
            assert_eq!(rewritten(kept), kept);
        }
    }

    #[test]
    fn formats_of_constants_become_a_filter() {
        assert_eq!(rewritten("{{ '%s' % a.b[0]|trim ~ 'c' }}"), "{{ '%s' |__percent( a.b[0]|trim) ~ 'c' }}");
        assert_eq!(
            rewritten("{% if '%d-%d' % (a, -b) == c %}"),
            "{% if '%d-%d' |__percent( ((a, -b)|__not_too_deep)) == c %}"
        );
        assert_eq!(rewritten("{{ a % 2 }}{{ '%' }}{{ x['a'] % 3 }}"), "{{ a % 2 }}{{ '%' }}{{ x['a'] % 3 }}");
    }

    #[test]
    fn operands_of_concatenations_become_texts() {
        assert_eq!(rewritten("{{ a.b ~ c ~ d[0] ~ 'e' }}"), "{{ a.b|__text ~ c|__text ~ d[0]|__text ~ 'e' }}");
        for left_alone in ["{{ a * b ~ 'c' }}", "{{ 'c' ~ a * b }}", "{{ 'c' ~ a is defined }}", "{{ 'c' ~ -a }}"] {
            assert_eq!(rewritten(left_alone), left_alone);
        }
    }

    #[test]
    fn lists_can_change_only_where_a_template_changes_lists() {
        assert_eq!(
            rewritten("{% set x = [[], a[0]] %}{% set _ = x.append([1]) %}{% for y in [] %}"),
            "{% set x = ([([]|__growing_list), a[0]]|__growing_list) %}\
             {% set _ = x.append(([1]|__growing_list)) %}{% for y in ([]|__growing_list) %}"
        );
        assert_eq!(rewritten("{% set x = [] %}"), "{% set x = [] %}");
    }

    #[test]
    fn what_is_written_down_of_other_values_looks_how_deep_they_are() {
        assert_eq!(
            rewritten("{{ [x] + {'a': (x, [1])} }}{{ f(x, y) + (x) + [1][0] }}{% for (a, b) in c %}"),
            "{{ ([x]|__not_too_deep) + ({'a': ((x, [1])|__not_too_deep)}|__not_too_deep) }}\
             {{ f(x, y) + (x) + [1][0] }}{% for (a, b) in c %}"
        );
        assert_eq!(
            rewritten("{%- set a = namespace(b=c) -%}{%- set a.b = c.d -%}{% set a.b = c + 1 %}{{ namespace() }}"),
            "{%- set a = (namespace(b=c)|__not_too_deep) -%}{%- set a.b = c.d|__not_too_deep_for_an_attribute -%}\
             {% set a.b = c + 1 %}{{ namespace() }}"
        );
    }

    #[test]
    fn sources_and_tags_that_are_too_long_are_refused() {
        let refused = |source: &str| match Source::of(source) {
            Err(Error::Template(reason)) => reason,
            other => panic!("{other:?}"),
        };
        assert!(refused(&format!("a\n{{{{ 1{} }}}}", "+1".repeat(1000))).contains("line 2"));
        assert!(refused(&"{% elif x %}".repeat(501)).contains("elif"));
        assert!(refused(&" ".repeat(MAX_SOURCE + 1)).contains("bytes"));
    }

    #[test]
    fn constants_are_found_with_their_place() {
        let source = r#"'no' {# '{% "x" %}' #}{% if a == "x\"%}\n" %}{{ 'y' + b['k'] }}{ '' }"#;
        assert_eq!(
            Source::of(source).unwrap().constants(),
            [
                (Place::Statement, "x\"%}\n".to_owned()),
                (Place::Expression, "y".to_owned()),
                (Place::Expression, "k".to_owned()),
            ]
        );
        assert_eq!(Source::of("{{ 'open").unwrap().constants(), [(Place::Expression, "open".to_owned())]);
    }
}
