//! Reading TOML with a place for every mistake. Reading goes on behind a
//! mistake, so that one look at a manifest tells all that is wrong in it.
//!
//! A function that reads a part gives None when something is wrong there; by
//! then the [`Document`] knows what.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Place, Severity, printable};

/// The text that mistakes are looked for in, and those that were found.
pub(crate) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
    /// How many characters are before each block of [`BLOCK`] bytes: a place
    /// far behind in a long line is found as fast as any.
    characters: Vec<usize>,
    /// What must not be shown, in bytes.
    hidden: RefCell<Vec<Range<usize>>>,
    found: RefCell<Vec<Diagnostic>>,
}

const BLOCK: usize = 1024;

/// How many bytes of a line are shown on each side of a place in it. A manifest
/// can be one long line, and each place keeps what is shown of it.
const SHOWN: usize = 160;

impl<'a> Document<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let blocks = text.as_bytes().chunks(BLOCK).map(characters);
        let characters = blocks.scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count))).collect();
        Self { file, text, lines, characters, hidden: RefCell::default(), found: RefCell::default() }
    }

    /// The place of a span of bytes. A span from the parser lies on character
    /// bounds; if one ever does not, its place is that of the character.
    pub(crate) fn place(&self, span: Range<usize>) -> Place {
        let at = self.text.floor_char_boundary(span.start);
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let (snippet, mark) = self.snippet(start, at);
        Place { file: self.file.to_owned(), line, column: self.before(at) - self.before(start) + 1, snippet, mark }
    }

    /// How many characters are before a byte.
    fn before(&self, at: usize) -> usize {
        let block = at / BLOCK;
        let rest = self.text.as_bytes().get(block * BLOCK..at).unwrap_or_default();
        self.characters.get(block).copied().unwrap_or(0) + characters(rest)
    }

    /// What is shown of the line that begins at `start`, and how many
    /// characters of it are before `at`.
    fn snippet(&self, start: usize, at: usize) -> (String, usize) {
        let line = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or("");
        let from = self.text.ceil_char_boundary(at.saturating_sub(SHOWN)).max(start);
        let to = self.text.floor_char_boundary(at + SHOWN).min(start + line.len());
        let all_hidden = self.hidden.borrow();
        let hidden: Vec<_> = all_hidden.iter().filter(|span| span.start < to && span.end > from).collect();
        let mut snippet = String::new();
        if from > start {
            snippet.push('…');
        }
        let mut mark = snippet.chars().count();
        for (offset, c) in self.text.get(from..to).unwrap_or("").char_indices() {
            mark += usize::from(from + offset < at);
            let is_hidden = hidden.iter().any(|span| span.contains(&(from + offset)));
            snippet.push(if is_hidden { '*' } else { c });
        }
        if to < start + line.len() {
            snippet.push('…');
        }
        (printable(&snippet), mark)
    }

    /// Never shows what is at `span`, not even as a part of a line with an
    /// error in it.
    pub(crate) fn hide(&self, span: Range<usize>) {
        self.hidden.borrow_mut().push(span);
    }

    /// The span, in the source of the string at `span`, of the appearance
    /// number `nth` of `what`; the whole string where escapes hide it.
    pub(crate) fn within(&self, span: Range<usize>, what: &str, nth: usize) -> Range<usize> {
        let source = self.text.get(span.clone()).unwrap_or("");
        match source.match_indices(what).nth(nth) {
            Some((at, _)) => span.start + at..span.start + at + what.len(),
            None => span,
        }
    }

    pub(crate) fn error(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(self.place(span).error(message, help));
    }

    pub(crate) fn warning(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(self.place(span).warning(message, help));
    }

    pub(crate) fn push(&self, diagnostic: Diagnostic) {
        self.found.borrow_mut().push(diagnostic);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.found.borrow().iter().any(|one| one.severity == Severity::Error)
    }

    /// What was found, in the order of the text, each thing once: what stands
    /// in a profile is read with every component that is made of it.
    pub(crate) fn into_found(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|one| (one.line, one.column));
        found.dedup();
        found
    }
}

/// How many characters begin in these bytes: all but the second and later bytes
/// of one, which are `10……` in UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// A value and the name of the key that has it.
#[derive(Clone, Copy)]
pub(crate) struct Node<'d> {
    pub(crate) document: &'d Document<'d>,
    pub(crate) key: &'d str,
    value: &'d Spanned<DeValue<'d>>,
}

impl<'d> Node<'d> {
    pub(crate) fn span(self) -> Range<usize> {
        self.value.span()
    }

    pub(crate) fn place(self) -> Place {
        self.document.place(self.span())
    }

    /// Notes an error here; None, for the reader to return.
    pub(crate) fn fail<T>(self, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.document.error(self.span(), message, help);
        None
    }

    pub(crate) fn is_text(self) -> bool {
        self.value.get_ref().is_str()
    }

    pub(crate) fn is_table(self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(crate) fn is_list(self) -> bool {
        self.value.get_ref().is_array()
    }

    /// Whether it is an empty list or table or `false`: it says what is the
    /// case anyway.
    pub(crate) fn says_nothing(self) -> bool {
        match self.value.get_ref() {
            DeValue::Array(list) => list.is_empty(),
            DeValue::Table(table) => table.is_empty(),
            DeValue::Boolean(value) => !value,
            _ => false,
        }
    }

    pub(crate) fn text(self) -> Option<&'d str> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => self.mistyped("a string", "\"…\""),
        }
    }

    /// A text that says something.
    pub(crate) fn full_text(self) -> Option<&'d str> {
        let text = self.text()?;
        match text.trim().is_empty() {
            true => self.fail(format!("`{}` is empty", self.key), "write a text, or remove it"),
            false => Some(text),
        }
    }

    pub(crate) fn boolean(self) -> Option<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.mistyped("a boolean", "true or false"),
        }
    }

    pub(crate) fn integer(self) -> Option<i64> {
        let DeValue::Integer(number) = self.value.get_ref() else {
            return self.mistyped("an integer", "16");
        };
        match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Some(number),
            Err(_) => self.fail(format!("`{}` is too large a number", self.key), "write a smaller one"),
        }
    }

    pub(crate) fn list(self) -> Option<Vec<Self>> {
        match self.value.get_ref() {
            DeValue::Array(list) => Some(list.iter().map(|value| Self { value, ..self }).collect()),
            _ => self.mistyped("a list", "[\"…\"]"),
        }
    }

    /// A list of strings; those that are none are noted and left out.
    pub(crate) fn texts(self) -> Option<Vec<(&'d str, Self)>> {
        Some(self.list()?.into_iter().filter_map(|node| Some((node.text()?, node))).collect())
    }

    /// A table; `name` says in messages which.
    pub(crate) fn table(self, name: impl Into<String>) -> Option<Table<'d>> {
        match self.value.get_ref() {
            DeValue::Table(entries) => Some(Table {
                document: self.document,
                name: name.into(),
                span: self.span(),
                entries,
                known: RefCell::default(),
            }),
            _ => self.mistyped("a table", "{ … }"),
        }
    }

    /// A table without rules for its keys, or an empty one where it is not
    /// there or no table.
    pub(crate) fn entries(self) -> Vec<(Name<'d>, Self)> {
        self.table(self.key).map(|table| table.entries()).unwrap_or_default()
    }

    fn mistyped<T>(self, wanted: &str, example: &str) -> Option<T> {
        let found = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let key = self.key;
        self.fail(format!("`{key}` must be {wanted}, but here is {found}"), format!("write {example}"))
    }
}

/// A key with its place.
#[derive(Clone, Copy)]
pub(crate) struct Name<'d> {
    document: &'d Document<'d>,
    key: &'d Spanned<toml::de::DeString<'d>>,
}

impl<'d> Name<'d> {
    pub(crate) fn text(self) -> &'d str {
        self.key.get_ref()
    }

    pub(crate) fn place(self) -> Place {
        self.document.place(self.key.span())
    }

    pub(crate) fn fail<T>(self, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.document.error(self.key.span(), message, help);
        None
    }
}

/// A table whose keys are known: each is asked for, and [`Table::close`]
/// refuses what was never asked for.
pub(crate) struct Table<'d> {
    document: &'d Document<'d>,
    name: String,
    span: Range<usize>,
    entries: &'d DeTable<'d>,
    known: RefCell<BTreeSet<&'static str>>,
}

impl<'d> Table<'d> {
    /// The table of the whole document.
    pub(crate) fn root(document: &'d Document<'d>, entries: &'d DeTable<'d>) -> Self {
        Self { document, name: "the manifest".to_owned(), span: 0..0, entries, known: RefCell::default() }
    }

    pub(crate) fn get(&self, key: &'static str) -> Option<Node<'d>> {
        self.known.borrow_mut().insert(key);
        let value = self.entries.get(key)?;
        Some(Node { document: self.document, key, value })
    }

    /// The key, which must be there; `help` says what to write.
    pub(crate) fn need(&self, key: &'static str, help: &str) -> Option<Node<'d>> {
        let node = self.get(key);
        if node.is_none() {
            self.document.error(self.span.clone(), format!("{} has no `{key}`", self.name), help);
        }
        node
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    pub(crate) fn fail<T>(&self, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.document.error(self.span.clone(), message, help);
        None
    }

    pub(crate) fn push(&self, diagnostic: Diagnostic) {
        self.document.push(diagnostic);
    }

    pub(crate) fn place(&self) -> Place {
        self.document.place(self.span.clone())
    }

    /// All there is, for a table of names that its writer chose.
    pub(crate) fn entries(&self) -> Vec<(Name<'d>, Node<'d>)> {
        let document = self.document;
        let entry = |(key, value): (&'d Spanned<toml::de::DeString<'d>>, &'d Spanned<DeValue<'d>>)| {
            (Name { document, key }, Node { document, key: key.get_ref(), value })
        };
        self.entries.iter().map(entry).collect()
    }

    /// Refuses the keys that nobody asked for.
    pub(crate) fn close(self) {
        let known = self.known.into_inner();
        for key in self.entries.keys() {
            let text = key.get_ref().as_ref();
            if known.contains(text) {
                continue;
            }
            let help = match likeliest(text, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if known.is_empty() => "remove it".to_owned(),
                None => format!("remove it; known are {}", listed(known.iter().copied())),
            };
            self.document.error(key.span(), format!("unknown key `{text}` in {}", self.name), help);
        }
    }
}

/// The most names that are compared or listed for a message.
const NAMES: usize = 500;
const LISTED: usize = 20;

/// The one of `known` that was probably meant by `text`.
pub(crate) fn likeliest<'k>(text: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known
        .take(NAMES)
        .map(|name| (strsim::jaro_winkler(name, &text.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= 0.85)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// Names for a message, in quotes.
pub(crate) fn listed<'k>(mut names: impl Iterator<Item = &'k str>) -> String {
    let mut listed = names.by_ref().take(LISTED).map(|name| format!("`{name}`")).collect::<Vec<_>>();
    listed.extend(names.next().map(|_| "…".to_owned()));
    listed.join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_place_in_a_long_line_shows_what_is_around_it() {
        let text = format!("é\n{}X{}\n", "é".repeat(5_000), "b".repeat(5_000));
        let place = Document::new("f", &text).place(3 + 10_000..3 + 10_001);
        assert_eq!((place.line, place.column), (2, 5_001));
        assert_eq!(place.snippet.chars().nth(place.mark), Some('X'), "{}", place.snippet);
        assert!(place.snippet.len() < 500 && place.snippet.starts_with('…') && place.snippet.ends_with('…'));
        let shown = place.error("m", "").to_string();
        let mut lines = shown.lines().rev();
        let (mark, line) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(mark.chars().position(|c| c == '^'), line.chars().position(|c| c == 'X'), "{shown}");
    }

    proptest! {
        #[test]
        fn a_place_is_where_it_is_counted(text in "[aé\n\r]{0,40}", long in 0_usize..3, at in any::<prop::sample::Index>()) {
            let text = format!("{}{text}", "é\n".repeat(long * 600));
            let at = text.floor_char_boundary(at.index(text.len() + 1));
            let place = Document::new("f", &text).place(at..at);
            let before = &text[..at];
            prop_assert_eq!(place.line, before.matches('\n').count() + 1);
            prop_assert_eq!(place.column, before.rsplit('\n').next().unwrap().chars().count() + 1);
        }
    }
}
