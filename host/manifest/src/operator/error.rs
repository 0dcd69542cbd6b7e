//! Why the operator's file cannot be used.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::source::Source;
use crate::diagnostic::Diagnostic;

/// Why the operator's file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("{}: {source}; give the path of a nala.toml, and in it that of its file of keys", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Everybody on the machine may write to the file of keys, and so become
    /// any tenant.
    #[error("{}: everybody may write to this file of keys; run `chmod o-w` on it", .0.display())]
    Writable(PathBuf),
    /// Something in a file is wrong.
    #[error(transparent)]
    Invalid(#[from] Box<Diagnostic>),
}

/// An error at `span`, in bytes of the text. A key that stands there by mistake
/// is not repeated, since errors go into logs.
pub(super) fn at(source: Source<'_>, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Error {
    let mut diagnostic = source.error(span, without_secrets(&message.into()), help);
    diagnostic.snippet = without_secrets(&diagnostic.snippet);
    diagnostic.mark = diagnostic.mark.min(diagnostic.snippet.chars().count());
    Error::Invalid(Box::new(diagnostic))
}

/// An error at `span` that shows nothing of what stands there.
pub(super) fn hidden(
    source: Source<'_>,
    span: Range<usize>,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Error {
    let mut diagnostic = source.error(span, message, help);
    diagnostic.snippet = String::from("…");
    diagnostic.mark = 0;
    Error::Invalid(Box::new(diagnostic))
}

/// A text with all that looks like a key cut off behind its beginning.
fn without_secrets(text: &str) -> String {
    const BEGINNING: &str = "nala_";
    let mut parts = text.split(BEGINNING);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        shown.push_str(BEGINNING);
        shown.push('…');
        shown.push_str(part.get(end..).unwrap_or_default());
    }
    shown
}

/// Refuses a file that strangers may write to, where the system says so. What is
/// not there is told when it is read.
#[cfg(unix)]
pub(super) fn refuse_writable(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;

    const WRITABLE_BY_OTHERS: u32 = 0o002;
    match std::fs::metadata(path) {
        Ok(meta) if meta.mode() & WRITABLE_BY_OTHERS != 0 => Err(Error::Writable(path.to_owned())),
        _ => Ok(()),
    }
}

/// Other systems have no such bits.
#[cfg(not(unix))]
pub(super) fn refuse_writable(_: &Path) -> Result<(), Error> {
    Ok(())
}
