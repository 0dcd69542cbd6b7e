//! The text of a file, for errors that show where they are.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::reader::Document;

/// A file that is being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    /// Its name as it was given.
    pub(crate) file: &'a str,
    /// What stands in it.
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// An error at a span of bytes.
    pub(crate) fn error(self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Document::new(self.file, self.text).place(span).error(message, help)
    }
}
