//! The source of a template, rewritten where minijinja's language lacks something
//! of Python's and transformers' that templates use.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::scan::{Kind, Place, Tag, Token, tags};
use crate::{list, percent, print};

/// The source of a template, as the engine can run it.
#[derive(Debug, Clone)]
pub struct Source<'a>(Cow<'a, str>);

/// A text to be put in the place of a range of the source.
type Edit = (std::ops::Range<usize>, String);

/// Methods that change a list.
const CHANGES: [&str; 4] = ["append", "extend", "insert", "pop"];

/// Words before which and after which an expression begins.
const KEYWORDS: [&str; 12] = ["in", "and", "or", "not", "if", "else", "elif", "is", "set", "do", "print", "return"];

impl<'a> Source<'a> {
    /// Rewrites
    /// - `{% generation %}` and `{% endgeneration %}` of transformers, which mark the
    ///   assistant's text for training and print nothing, into conditions that
    ///   always hold;
    /// - `'…' % values` into a filter;
    /// - operands of `~` that are no constants into their texts as Python has them;
    /// - lists that are written down, in a template that changes lists, into lists
    ///   that can be changed.
    #[must_use]
    pub fn of(source: &'a str) -> Self {
        let changes = source.contains('.') && CHANGES.iter().any(|method| source.contains(&format!(".{method}(")));
        let mut edits: Vec<Edit> = Vec::new();
        for tag in tags(source) {
            match tag.word(source) {
                Some(("generation", range)) => edits.push((range, "if true".to_owned())),
                Some(("endgeneration", range)) => edits.push((range, "endif".to_owned())),
                Some(_) => {}
                None => {
                    let tag = Read { source, tag: &tag };
                    tag.formats(&mut edits);
                    tag.joins(&mut edits);
                    if changes {
                        tag.lists(&mut edits);
                    }
                }
            }
        }
        if edits.is_empty() {
            return Self(Cow::Borrowed(source));
        }
        edits.sort_by_key(|(range, _)| range.start);
        // An operand between two `~` is found twice.
        edits.dedup_by(|a, b| a == b && a.1.ends_with(print::FILTER));
        let mut out = String::with_capacity(source.len() + edits.len() * 24);
        let mut done = 0;
        for (range, text) in edits {
            out.push_str(source.get(done..range.start).unwrap_or_default());
            out.push_str(&text);
            done = range.end;
        }
        out.push_str(source.get(done..).unwrap_or_default());
        Self(Cow::Owned(out))
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
            edits.push((sign.range.clone(), format!("|{}(", percent::FILTER)));
            edits.push((last.range.end..last.range.end, ")".to_owned()));
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
                    edits.push((last.range.end..last.range.end, text.clone()));
                }
            }
            // On the left, names alone, with nothing before them that binds.
            let Some(mut start) = index.checked_sub(1).filter(|before| simple(*before)) else { continue };
            let end = self.token(start).map_or(0, |token| token.range.end);
            while start >= 2 && self.text(start - 1) == "." && simple(start - 2) {
                start -= 2;
            }
            let before = start.checked_sub(1).map_or("", |before| self.text(before));
            if matches!(before, "" | "(" | "[" | "{" | "," | "=" | ":" | "+" | "if" | "else" | "in" | "and" | "or" | "not") {
                edits.push((end..end, text.clone()));
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

    /// Rewrites lists that are written down.
    fn lists(&self, edits: &mut Vec<Edit>) {
        for index in 0..self.tag.tokens.len() {
            let looks_up = index.checked_sub(1).is_some_and(|before| match self.token(before) {
                Some(token) => match token.kind {
                    Kind::Word => !KEYWORDS.contains(&self.text(before)),
                    Kind::Number | Kind::String | Kind::Close => true,
                    Kind::Open | Kind::Sign => false,
                },
                None => false,
            });
            if self.text(index) != "[" || looks_up {
                continue;
            }
            let end = self.closing(index).and_then(|end| self.token(end));
            if let (Some(open), Some(close)) = (self.token(index), end) {
                edits.push((open.range.start..open.range.start, "(".to_owned()));
                edits.push((close.range.end..close.range.end, format!("|{})", list::FILTER)));
            }
        }
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
        Source::of(source).text().to_owned()
    }

    #[test]
    fn generation_tags_become_conditions_and_keep_their_dashes() {
        assert_eq!(
            rewritten("a{%- generation -%}b{% endgeneration %}{% if generation %}c"),
            "a{%- if true -%}b{% endif %}{% if generation %}c"
        );
        assert_eq!(rewritten("add_generation {% open"), "add_generation {% open");
    }

    #[test]
    fn formats_of_constants_become_a_filter() {
        assert_eq!(rewritten("{{ '%s' % a.b[0]|trim ~ 'c' }}"), "{{ '%s' |__percent( a.b[0]|trim) ~ 'c' }}");
        assert_eq!(rewritten("{% if '%d-%d' % (a, -b) == c %}"), "{% if '%d-%d' |__percent( (a, -b)) == c %}");
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
    fn constants_are_found_with_their_place() {
        let source = r#"'no' {# '{% "x" %}' #}{% if a == "x\"%}\n" %}{{ 'y' + b['k'] }}{ '' }"#;
        assert_eq!(
            Source::of(source).constants(),
            [
                (Place::Statement, "x\"%}\n".to_owned()),
                (Place::Expression, "y".to_owned()),
                (Place::Expression, "k".to_owned()),
            ]
        );
        assert_eq!(Source::of("{{ 'open").constants(), [(Place::Expression, "open".to_owned())]);
    }
}
