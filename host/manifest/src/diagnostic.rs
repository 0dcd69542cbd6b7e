//! What is wrong in a manifest: shown with its place and the way out.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

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
    Invalid(#[from] Diagnostics),
}

/// All that was found in a manifest that cannot be used: one error at least,
/// and the warnings, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// None if there is no error among them.
    pub(crate) fn of(found: &[Diagnostic]) -> Option<Self> {
        found.iter().any(|one| one.severity == Severity::Error).then(|| Self(found.to_vec()))
    }

    /// One error, of a manifest that nothing else is known about.
    pub(crate) fn always(found: Vec<Diagnostic>) -> Self {
        Self(found)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&self.0))
    }
}

impl std::error::Error for Diagnostics {}

/// Diagnostics for a reader at a terminal, an empty line between them.
#[must_use]
pub fn plain(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

/// Diagnostics for a program: a JSON array of objects with the fields of
/// [`Diagnostic`], `severity` being `"error"` or `"warning"`.
#[must_use]
pub fn json(diagnostics: &[Diagnostic]) -> String {
    serde_json::json!(diagnostics).to_string()
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The manifest cannot be used.
    Error,
    /// It can, but this is probably not meant.
    Warning,
}

/// What is wrong in a manifest, where, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
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
    /// The text of the line, or of a long one what is around the place.
    pub snippet: String,
    /// How many characters of the snippet are before the place.
    pub mark: usize,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, file, line, column, message, help, snippet, mark } = self;
        let kind = match severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        let number = line.to_string();
        let gap = " ".repeat(number.len());
        let before = " ".repeat(*mark);
        write!(f, "{file}:{line}:{column}: {kind}{message}\n{gap} |\n{number} | {snippet}\n{gap} | {before}^")?;
        if !help.is_empty() {
            write!(f, "\n{gap} = help: {help}")?;
        }
        Ok(())
    }
}

/// A place in a manifest, kept with what stands there, for errors that are
/// found when the text is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file's name as it was given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The text of the line as it can be shown, or of a long one what is around
    /// the place.
    pub snippet: String,
    /// How many characters of the snippet are before the place.
    pub mark: usize,
}

impl Place {
    /// An error here.
    #[must_use]
    pub fn error(&self, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        self.diagnostic(Severity::Error, message.into(), help.into())
    }

    /// A warning here.
    #[must_use]
    pub fn warning(&self, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        self.diagnostic(Severity::Warning, message.into(), help.into())
    }

    fn diagnostic(&self, severity: Severity, message: String, help: String) -> Diagnostic {
        Diagnostic {
            severity,
            file: self.file.clone(),
            line: self.line,
            column: self.column,
            message: printable(&message),
            help: printable(&help),
            snippet: self.snippet.clone(),
            mark: self.mark,
        }
    }
}

/// `FILE:LINE:COLUMN`
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A manifest may come from anybody; what it says must not command a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            // A tab would set the mark below a line off.
            '\t' => ' ',
            '\n' => '\n',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}
