//! What is said of what cannot be done.

use std::io::{Error, ErrorKind};

/// There is no folder at all.
pub(crate) const NOTHING_GRANTED: &str = "no folder is granted to this tool. Its operator can grant files with \
    `files = [{ source = \"notes\", destination = \"/notes\" }]` in the component's table of spin.toml";

/// How to be allowed to write. What `files` grants is a copy, which stays as it is.
const TO_WRITE: &str = "Its operator has to grant the folder to be written; what `files` of spin.toml grants can only \
    be read";

/// As much of a name as is shown.
pub(crate) fn quoted(name: &str) -> String {
    let shown = |char: char| if char.is_control() { char.escape_debug().to_string() } else { char.to_string() };
    let start: String = name.chars().take(200).map(shown).collect();
    let more = if name.chars().nth(200).is_some() { "…" } else { "" };
    format!("`{start}{more}`")
}

/// Why something cannot be read.
pub(crate) fn reading(path: &str, error: &Error) -> String {
    let path = quoted(path);
    match error.kind() {
        ErrorKind::NotFound => format!("{path} is not there; list_files tells what is"),
        ErrorKind::NotADirectory => format!("{path} is no folder, or is behind something that is none"),
        ErrorKind::PermissionDenied => {
            format!("{path} may not be read: it is not within the folder that is granted, or is no file and no folder")
        }
        ErrorKind::InvalidFilename | ErrorKind::InvalidInput => format!("{path} can be the name of no file"),
        _ => format!("{path} cannot be read: {error}"),
    }
}

/// Why something cannot be written.
pub(crate) fn writing(path: &str, error: &Error) -> String {
    let path = quoted(path);
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => format!("{path} is granted to be read only. {TO_WRITE}"),
        ErrorKind::PermissionDenied => {
            format!("{path} may not be written: it is granted to be read only, or is no file. {TO_WRITE}")
        }
        ErrorKind::IsADirectory => format!("{path} is a folder; give the path of a file"),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            format!("{path} is behind a file, where no folder can be")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!("{path} has no room: {error}"),
        ErrorKind::InvalidFilename | ErrorKind::InvalidInput => format!("{path} can be the name of no file"),
        _ => format!("{path} cannot be written: {error}"),
    }
}

/// The folder is one to be read.
pub(crate) fn read_only(path: &str) -> String {
    writing(path, &ErrorKind::ReadOnlyFilesystem.into())
}
