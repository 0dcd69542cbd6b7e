//! Errors that show the place and the way out.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error(
        "{}: {source}; give the path of a spin.toml, or none to serve the built-in application",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in it is wrong.
    #[error(transparent)]
    Invalid(#[from] Box<Diagnostic>),
}

/// What is wrong in a manifest, where, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostic {
    /// The file's name as it was given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// The text of the line.
    pub snippet: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, help, snippet } = self;
        let number = line.to_string();
        let gap = " ".repeat(number.len());
        let before = " ".repeat(column.saturating_sub(1));
        write!(f, "{file}:{line}:{column}: {message}\n{gap} |\n{number} | {snippet}\n{gap} | {before}^")?;
        if !help.is_empty() {
            write!(f, "\n{gap} = help: {help}")?;
        }
        Ok(())
    }
}

/// A text that errors point into.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// `FILE:LINE` of a span, for errors that come when the text is gone.
    pub(crate) fn place(self, span: Range<usize>) -> String {
        let line = self.text.get(..span.start).unwrap_or("").matches('\n').count() + 1;
        format!("{}:{line}", self.file)
    }

    /// An error at `span`, in bytes of the text.
    pub(crate) fn error(self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Error {
        // A span from the parser lies on character bounds; if one ever does
        // not, the error points to the beginning.
        let before = self.text.get(..span.start).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_text = self.text.get(line_start..).unwrap_or("");
        Error::Invalid(Box::new(Diagnostic {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or("").chars().count() + 1,
            message: message.into(),
            help: help.into(),
            // A tab would set the mark below it off.
            snippet: line_text.lines().next().unwrap_or("").replace('\t', " "),
        }))
    }
}
