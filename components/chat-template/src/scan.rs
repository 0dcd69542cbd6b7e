//! The tags of a template and the tokens in them, without parsing either.

use std::ops::Range;

/// What a tag does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A statement, `{% … %}`: its constants are mostly compared with.
    Statement,
    /// An expression, `{{ … }}`: its constants are mostly printed.
    Expression,
}

/// A kind of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or keyword.
    Word,
    /// The start of a number, up to a dot.
    Number,
    /// A string constant, its quotes included.
    String,
    /// An opening bracket of any kind.
    Open,
    /// A closing bracket of any kind.
    Close,
    /// Any other character but white space.
    Sign,
}

/// A token of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Where it stands in the source.
    pub(crate) range: Range<usize>,
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) place: Place,
    pub(crate) tokens: Vec<Token>,
}

impl Tag {
    /// Its only word, if it is a statement of one word.
    pub(crate) fn word<'a>(&self, source: &'a str) -> Option<(&'a str, Range<usize>)> {
        let mut bare = self.tokens.iter().filter(|token| !source.get(token.range.clone()).is_some_and(is_dash));
        let first = bare.next().filter(|token| token.kind == Kind::Word && self.place == Place::Statement)?;
        match bare.next() {
            Some(_) => None,
            None => Some((source.get(first.range.clone())?, first.range.clone())),
        }
    }
}

/// The signs at a tag's ends that tell what to do with white space around it.
fn is_dash(text: &str) -> bool {
    matches!(text, "-" | "+")
}

/// The tags of a template, in order. Comments and raw blocks have none; a tag that
/// is not closed goes to the end.
pub(crate) fn tags(source: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut at = 0;
    let mut raw = false;
    while let Some(open) = find(source, at, "{") {
        at = open + 1;
        let (place, close) = match source.get(at..).and_then(|rest| rest.chars().next()) {
            Some('%') => (Place::Statement, "%}"),
            Some('{') if !raw => (Place::Expression, "}}"),
            Some('#') if !raw => {
                at = find(source, at, "#}").map_or(source.len(), |end| end + 2);
                continue;
            }
            _ => continue,
        };
        let (tokens, end) = tokens(source, at + 1, close);
        let tag = Tag { place, tokens };
        match tag.word(source).map(|(word, _)| word) {
            Some("raw") => raw = true,
            Some("endraw") => raw = false,
            _ if raw => continue,
            _ => tags.push(tag),
        }
        at = end;
    }
    tags
}

fn find(source: &str, from: usize, text: &str) -> Option<usize> {
    source.get(from..)?.find(text).map(|at| from + at)
}

/// The tokens from a place to where a tag closes, and where that is. Brackets of
/// dictionaries are closed before a tag is.
fn tokens(source: &str, from: usize, close: &str) -> (Vec<Token>, usize) {
    let mut tokens: Vec<Token> = Vec::new();
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(close) && (depth == 0 || close == "%}") {
            return (tokens, at + close.len());
        }
        let c = rest.chars().next().unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let run = || rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let (kind, length) = match c {
            _ if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '"' | '\'' => (Kind::String, string(rest, c)),
            '(' | '[' | '{' => {
                depth += 1;
                (Kind::Open, 1)
            }
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                (Kind::Close, 1)
            }
            _ if c.is_ascii_digit() => (Kind::Number, run()),
            _ if is_word(c) => (Kind::Word, run()),
            _ => (Kind::Sign, c.len_utf8()),
        };
        tokens.push(Token { kind, range: at..at + length });
        at += length;
    }
    (tokens, source.len())
}

/// How long a string constant is, its quotes included.
fn string(source: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in source.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    source.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> Vec<Vec<&str>> {
        let text = |token: &Token| source.get(token.range.clone()).unwrap();
        tags(source).iter().map(|tag| tag.tokens.iter().map(text).collect()).collect()
    }

    #[test]
    fn tags_end_where_they_are_closed_outside_of_constants_and_brackets() {
        assert_eq!(shown("a{{ x['}}'] }}b{%- if y -%}"), [vec!["x", "[", "'}}'", "]"], vec!["-", "if", "y", "-"]]);
        assert_eq!(shown("{{ {'a': {}}}}"), [vec!["{", "'a'", ":", "{", "}", "}"]]);
        assert_eq!(shown(r#"{{ "\"}}" }}"#), [vec![r#""\"}}""#]]);
        assert_eq!(shown("{{ 'open"), [vec!["'open"]]);
    }

    #[test]
    fn comments_and_raw_blocks_have_no_tags() {
        assert_eq!(shown("{# {{ a }} #}{% raw %}{{ b }}{% c %}{% endraw %}{{ d }}"), [vec!["d"]]);
    }
}
