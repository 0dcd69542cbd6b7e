//! The lines of a file `.env`, read as Spin's dotenvy reads them, but for a `$`.
//!
//! There it stands for a variable of the process's environment before one of the file. The
//! file comes with an application, which may be a stranger's, and would have the operator's
//! secrets that way: here nothing of the environment is ever read, and a `$` that asks for
//! it is an error, since the value without it would be another one.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// What is wrong with a line, counted from one. Nothing of the line itself is in it, which
/// may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    #[error("line {0} is no NAME=VALUE")]
    Malformed(usize),
    #[error("the quote that begins in line {0} does not end")]
    Unended(usize),
    #[error("line {0} has a `$` outside of single quotes, in whose place nothing is put: the environment is not read")]
    Substitution(usize),
}

impl Wrong {
    pub(super) fn help(self) -> &'static str {
        match self {
            Self::Malformed(_) => "put a value with spaces or a `\\` in single quotes",
            Self::Unended(_) => "end it, or write \\' or \\\" for one that is part of an unquoted value",
            Self::Substitution(_) => {
                "use single quotes where the value has a `$`; where a variable was meant, write its value, or give \
                 it with --variable"
            }
        }
    }
}

/// What each name is given; the last line of a name counts.
///
/// # Errors
/// The first line that is wrong.
pub(super) fn read(text: &str) -> Result<BTreeMap<String, String>, Wrong> {
    let mut lines = Lines { rest: text.chars().peekable(), line: 1 };
    let mut values = BTreeMap::new();
    while let Some((name, value)) = lines.entry()? {
        values.insert(name, value);
    }
    Ok(values)
}

struct Lines<'a> {
    rest: Peekable<Chars<'a>>,
    /// The line of what comes next.
    line: usize,
}

impl Lines<'_> {
    fn entry(&mut self) -> Result<Option<(String, String)>, Wrong> {
        loop {
            self.skip(char::is_whitespace);
            match self.rest.peek() {
                None => return Ok(None),
                Some('#') => self.skip(|sign| sign != '\n'),
                Some(_) => break,
            }
        }
        let mut name = self.name()?;
        // It is a name as well.
        if name == "export" && self.rest.peek() != Some(&'=') {
            name = self.name()?;
        }
        if self.rest.peek() != Some(&'=') {
            return Err(Wrong::Malformed(self.line));
        }
        self.next();
        self.blank();
        let value = if self.rest.peek() == Some(&'#') { self.end().map(|()| String::new()) } else { self.value() };
        Ok(Some((name, value?)))
    }

    /// A name, and the blanks behind it.
    fn name(&mut self) -> Result<String, Wrong> {
        let mut name = String::new();
        while let Some(&sign) = self.rest.peek() {
            let begins = sign.is_ascii_alphabetic() || sign == '_';
            if !begins && (name.is_empty() || !(sign.is_ascii_digit() || sign == '.')) {
                break;
            }
            name.extend(self.next());
        }
        self.blank();
        if name.is_empty() { Err(Wrong::Malformed(self.line)) } else { Ok(name) }
    }

    fn value(&mut self) -> Result<String, Wrong> {
        let mut value = String::new();
        // Each takes all that is its own; what stands between them is unquoted.
        while let Some(&sign) = self.rest.peek() {
            match sign {
                '\'' | '"' => self.quoted(&mut value)?,
                ' ' | '\t' | '\r' | '\n' => break,
                _ => self.one(&mut value)?,
            }
        }
        self.end()?;
        Ok(value)
    }

    /// What stands in quotes, over as many lines as it likes.
    fn quoted(&mut self, value: &mut String) -> Result<(), Wrong> {
        let begin = self.line;
        let quote = self.next();
        loop {
            match self.rest.peek() {
                None => return Err(Wrong::Unended(begin)),
                Some(&sign) if Some(sign) == quote => {
                    self.next();
                    return Ok(());
                }
                Some(_) if quote == Some('\'') => value.extend(self.next()),
                Some(_) => self.one(value)?,
            }
        }
    }

    /// One sign of a value outside of single quotes.
    fn one(&mut self, value: &mut String) -> Result<(), Wrong> {
        let line = self.line;
        let sign = match self.next() {
            Some('$') => return Err(Wrong::Substitution(line)),
            Some('\\') => match self.next() {
                Some('n') => Some('\n'),
                Some(sign @ ('\\' | '\'' | '"' | '$' | ' ')) => Some(sign),
                _ => return Err(Wrong::Malformed(line)),
            },
            sign => sign,
        };
        value.extend(sign);
        Ok(())
    }

    /// The end of an entry's last line: nothing but a comment.
    fn end(&mut self) -> Result<(), Wrong> {
        self.blank();
        match self.rest.peek() {
            None | Some('\n') => Ok(()),
            Some('#') => {
                self.skip(|sign| sign != '\n');
                Ok(())
            }
            Some(_) => Err(Wrong::Malformed(self.line)),
        }
    }

    fn blank(&mut self) {
        self.skip(|sign| sign.is_whitespace() && sign != '\n');
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.rest.peek().is_some_and(|&sign| is_skipped(sign)) {
            self.next();
        }
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.rest.next()?;
        self.line += usize::from(sign == '\n');
        Some(sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of A, which is the first line's name.
    fn value(text: &str) -> Result<String, Wrong> {
        read(text).map(|values| values["A"].clone())
    }

    #[test]
    fn values_are_read_as_spin_reads_them() {
        for (line, is) in [
            ("A=b", "b"),
            ("  export \t A = b \r\n", "b"),
            ("A=", ""),
            ("A=   # notes", ""),
            ("A=b # notes", "b"),
            ("A=b#c", "b#c"),
            ("A='b c' # notes 'and' \"more\"", "b c"),
            ("A=\"b 'c'\"", "b 'c'"),
            ("A='b \"c\" \\n ${d}'", "b \"c\" \\n ${d}"),
            ("A=b\\ c\\$d\\\\", "b c$d\\"),
            ("A=\"b\\nc\\$d\\\"\"", "b\nc$d\""),
            ("A=b'c d'\"e f\"g", "bc de fg"),
            ("A=\"b\n# c\n\"\nB=d", "b\n# c\n"),
            ("A=b\nA=c", "c"),
            ("A=b=c", "b=c"),
        ] {
            assert_eq!(value(line).as_deref(), Ok(is), "{line}");
        }
        let names = read("export=1\n_A.b2=2\n\n\t# C=3\n").unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [("_A.b2", "2"), ("export", "1")].map(owned));
    }

    fn owned((name, value): (&str, &str)) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn what_is_wrong_has_the_number_of_its_line() {
        for (text, wrong) in [
            ("A=b\nA=b c", Wrong::Malformed(2)),
            ("A='b\nc'\nA", Wrong::Malformed(3)),
            ("A\n=b", Wrong::Malformed(1)),
            ("export\n", Wrong::Malformed(1)),
            ("# A\n2=b", Wrong::Malformed(2)),
            ("A=b\\\nB=c", Wrong::Malformed(1)),
            ("A=\\t", Wrong::Malformed(1)),
            ("A='b\nc' d", Wrong::Malformed(2)),
            ("B=c\nA=\"b\nc\n", Wrong::Unended(2)),
            ("A='b\\'\nB='c'\nC=d'", Wrong::Unended(3)),
            ("A=$b", Wrong::Substitution(1)),
            ("A=\"b\n${c}\"", Wrong::Substitution(2)),
            ("A='b'$", Wrong::Substitution(1)),
        ] {
            assert_eq!(read(text), Err(wrong), "{text}");
        }
    }
}
