//! Paths that cannot lead out of where they start.

use std::fmt;
use std::str::FromStr;

/// A path or pattern from the manifest's folder that stays in it: without a
/// slash at its ends, `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelativePath(String);

/// An absolute path for a component: without a slash at its end, `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestPath(String);

/// Why a text is no such path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It begins with a slash, or with the letter of a drive.
    #[error("it is absolute, and must begin in the manifest's folder")]
    Absolute,
    /// It begins without a slash.
    #[error("it is not absolute")]
    NotAbsolute,
    /// Its `..` lead out.
    #[error("its `..` leads out of the folder that it starts in")]
    Leaves,
    /// A `..` behind a pattern, of which nobody can tell where it leads.
    #[error("`..` cannot stand behind a pattern")]
    BehindPattern,
    /// A backslash or a character that no path has.
    #[error("a path has `/` between its segments, and no `\\` or control characters")]
    Character,
}

impl RelativePath {
    /// With slashes, as it is matched.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the folder that it starts in.
    #[must_use]
    pub fn is_folder_itself(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for RelativePath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        if text.starts_with('/') || names_drive(text) {
            return Err(InvalidPath::Absolute);
        }
        match normal(text)? {
            // What is left of `./c:/a`, which would be absolute when read again.
            path if names_drive(&path) => Err(InvalidPath::Absolute),
            path => Ok(Self(path)),
        }
    }
}

impl GuestPath {
    /// The path, beginning with a slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of what is `below` here.
    pub(super) fn join(&self, below: &str) -> Self {
        match (self.0.as_str(), below) {
            (_, "") => self.clone(),
            ("/", below) => Self(format!("/{below}")),
            (path, below) => Self(format!("{path}/{below}")),
        }
    }

    /// The folders that it is in, without `/`.
    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').skip(1).filter_map(|(at, _)| self.0.get(..at))
    }

    pub(super) fn root() -> Self {
        Self("/".to_owned())
    }
}

impl FromStr for GuestPath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        match text.strip_prefix('/').map(|below| below.trim_start_matches('/')) {
            Some("") => Ok(Self::root()),
            Some(below) => normal(below).map(|below| Self(format!("/{below}"))),
            None if text.is_empty() => Err(InvalidPath::Empty),
            None => Err(InvalidPath::NotAbsolute),
        }
    }
}

/// The same order as its text has, so that a map can be asked by text.
impl std::borrow::Borrow<str> for GuestPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a path begins with the letter of a drive.
fn names_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic())
}

/// Resolves `.` and `..` as they are written; what links make of them is
/// checked when files are looked for.
fn normal(text: &str) -> Result<String, InvalidPath> {
    if text.is_empty() {
        return Err(InvalidPath::Empty);
    }
    if text.contains(|c: char| c.is_control() || c == '\\') {
        return Err(InvalidPath::Character);
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.split('/') {
        match segment {
            "" | "." => {}
            ".." => match segments.pop() {
                None => return Err(InvalidPath::Leaves),
                Some(before) if has_pattern(before) => return Err(InvalidPath::BehindPattern),
                Some(_) => {}
            },
            segment => segments.push(segment),
        }
    }
    Ok(segments.join("/"))
}

/// Whether a segment can match others than itself.
pub(super) fn has_pattern(segment: &str) -> bool {
    segment.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_stay_where_they_start() {
        for (text, expected) in
            [("a", "a"), ("./a//b/", "a/b"), ("a/../b", "b"), (".", ""), ("a/..", ""), ("*/a", "*/a")]
        {
            assert_eq!(text.parse::<RelativePath>().unwrap().as_str(), expected, "{text}");
        }
        for (text, expected) in [
            ("", InvalidPath::Empty),
            ("/a", InvalidPath::Absolute),
            ("c:/a", InvalidPath::Absolute),
            ("c:/../a", InvalidPath::Absolute),
            ("./c:/a", InvalidPath::Absolute),
            ("a/../c:", InvalidPath::Absolute),
            ("..", InvalidPath::Leaves),
            ("a/../../b", InvalidPath::Leaves),
            ("./..", InvalidPath::Leaves),
            ("*/../a", InvalidPath::BehindPattern),
            ("a\\b", InvalidPath::Character),
            ("a\0", InvalidPath::Character),
        ] {
            assert_eq!(text.parse::<RelativePath>(), Err(expected), "{text}");
        }
        for (text, expected) in [("/", "/"), ("//", "/"), ("/a/./b/", "/a/b"), ("/a/../b", "/b")] {
            let read = text.parse::<GuestPath>();
            assert_eq!(read.map(|path| path.to_string()), Ok(expected.to_owned()), "{text}");
        }
        for (text, expected) in
            [("", InvalidPath::Empty), ("a", InvalidPath::NotAbsolute), ("/..", InvalidPath::Leaves)]
        {
            assert_eq!(text.parse::<GuestPath>(), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_becomes_a_path_that_leads_out(text in "[./a*\\[:\\\\]{0,16}") {
            if let Ok(path) = text.parse::<RelativePath>() {
                let path = path.as_str();
                prop_assert!(!path.starts_with('/') && !path.ends_with('/'), "{path}");
                prop_assert!(path.is_empty() || path.split('/').all(|s| !matches!(s, "" | "." | "..")), "{path}");
                prop_assert!(path.is_empty() || path.parse::<RelativePath>().unwrap().as_str() == path);
            }
            if let Ok(path) = text.parse::<GuestPath>() {
                prop_assert!(path.as_str().starts_with('/'));
                prop_assert!(path.as_str().split('/').all(|s| !matches!(s, "." | "..")));
            }
        }
    }
}
