//! Something that was found.

use std::fmt;
use std::path::Path;

use nala_manifest::{Diagnostic, Severity};
use serde::Serialize;

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Finding {
    /// At a place in a file.
    Placed(Diagnostic),
    /// About a file as a whole.
    OfFile(OfFile),
}

/// What is wrong with a file, with the fields of [`Diagnostic`] that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct OfFile {
    severity: Severity,
    file: String,
    message: String,
    help: String,
}

impl Finding {
    pub(super) fn severity(&self) -> Severity {
        match self {
            Self::Placed(diagnostic) => diagnostic.severity,
            Self::OfFile(of_file) => of_file.severity,
        }
    }

    /// An error of a file as a whole.
    pub(super) fn error(file: &Path, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::of_file(Severity::Error, file, message.into(), help.into())
    }

    /// A warning of a file as a whole.
    pub(super) fn warning(file: &Path, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::of_file(Severity::Warning, file, message.into(), help.into())
    }

    fn of_file(severity: Severity, file: &Path, message: String, help: String) -> Self {
        Self::OfFile(OfFile { severity, file: file.display().to_string(), message, help })
    }
}

impl From<Diagnostic> for Finding {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Placed(diagnostic)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placed(diagnostic) => diagnostic.fmt(f),
            Self::OfFile(OfFile { severity, file, message, help }) => {
                let kind = match severity {
                    Severity::Error => "",
                    Severity::Warning => "warning: ",
                };
                write!(f, "{file}: {kind}{message}")?;
                if !help.is_empty() {
                    write!(f, "\n  = help: {help}")?;
                }
                Ok(())
            }
        }
    }
}
