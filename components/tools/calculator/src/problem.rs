//! What is wrong with an expression, for a model to read.

use std::fmt;

/// What is wrong where nothing is known of the expression.
pub(crate) type Fallible<T> = Result<T, String>;

/// What is wrong and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Characters before it; none for the expression as a whole.
    at: Option<usize>,
    what: String,
}

impl Problem {
    pub(crate) fn at(position: usize, what: impl Into<String>) -> Self {
        Self { at: Some(position), what: what.into() }
    }

    pub(crate) fn whole(what: impl Into<String>) -> Self {
        Self { at: None, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(before) => write!(f, "at character {}: {}", before + 1, self.what),
            None => f.write_str(&self.what),
        }
    }
}
