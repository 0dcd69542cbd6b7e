//! Path prefixes: whole segments, and the same whoever reads the path.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The beginning of a path that belongs to a tenant, such as `/t/acme`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(String);

/// A text is no prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrefix {
    /// It does not begin with `/`, ends with one, or is nothing else.
    #[error("a prefix begins with `/`, has something behind it, and does not end with `/`")]
    Slashes,
    /// A segment that readers of a path may drop or change.
    #[error("the parts of a prefix have letters, digits, `-`, `_`, `.` and `~`, and are not `.` or `..`")]
    Segment,
}

impl Prefix {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        let inner = text.strip_prefix('/').ok_or(InvalidPrefix::Slashes)?;
        if inner.is_empty() || inner.ends_with('/') {
            return Err(InvalidPrefix::Slashes);
        }
        // What RFC 3986, section 2.3 calls unreserved: nobody encodes it.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        let good = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
        if !inner.split('/').all(good) {
            return Err(InvalidPrefix::Segment);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All that a path begins with, up to whole segments, the longest first:
/// `/a/b/c`, `/a/b`, `/a`.
pub(crate) fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    let inner = path.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
    let mut ends: Vec<usize> = inner.collect();
    ends.push(path.len());
    ends.into_iter().rev().filter_map(|end| path.get(..end))
}

/// How others may read a path: with empty segments dropped, `.` and `..`
/// followed, backslashes taken for slashes, and what is encoded decoded, once
/// and twice. A prefix that a path has by one reading and not by all is an
/// attempt to be taken for somebody else along the way.
pub(crate) fn readings(path: &str) -> impl Iterator<Item = String> {
    let once = decode(path.as_bytes());
    let twice = decode(&once).into_owned();
    [Cow::Borrowed(path.as_bytes()), once, Cow::Owned(twice)].into_iter().map(|bytes| followed(&bytes))
}

fn decode(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.contains(&b'%') {
        return Cow::Borrowed(bytes);
    }
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        let mut byte = [0];
        match behind.get(..2) {
            Some(digits) if *first == b'%' && hex::decode_to_slice(digits, &mut byte).is_ok() => {
                decoded.extend(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            _ => {
                decoded.push(*first);
                rest = behind;
            }
        }
    }
    Cow::Owned(decoded)
}

fn followed(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut way: Vec<&str> = Vec::new();
    for part in text.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                way.pop();
            }
            _ => way.push(part),
        }
    }
    format!("/{}", way.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_whole_plain_segments() {
        for good in ["/t", "/t/acme", "/t/acme-2_x.y~z", "/.well-known", "/..."] {
            assert!(good.parse::<Prefix>().is_ok(), "{good}");
        }
        for bad in ["", "/", "t", "/t/", "//t", "/t//a", "/./a", "/t/..", "/%74", "/t a", "/t?x", "/é", "/a\\b"] {
            assert!(bad.parse::<Prefix>().is_err(), "{bad}");
        }
    }

    #[test]
    fn beginnings_are_whole_segments_the_longest_first() {
        let all = |path| beginnings(path).collect::<Vec<_>>();
        assert_eq!(all("/a/b/c"), ["/a/b/c", "/a/b", "/a"]);
        assert_eq!(all("/a/"), ["/a/", "/a"]);
        assert_eq!(all("/"), ["/"]);
        assert_eq!(all("//a"), ["//a", "/"]);
        assert_eq!(all(""), [""]);
    }

    #[test]
    fn readings_are_what_others_make_of_a_path() {
        let all = |path| readings(path).collect::<Vec<_>>();
        assert_eq!(all("/a//b/../c"), ["/a/c"; 3]);
        assert_eq!(all("/a/%2e%2e/b"), ["/a/%2e%2e/b", "/b", "/b"]);
        assert_eq!(all("/a%252fb%zz%"), ["/a%252fb%zz%", "/a%2fb%zz%", "/a/b%zz%"]);
        assert_eq!(all("\\a\\..\\..\\b"), ["/b"; 3]);
        assert_eq!(all("/%ff"), ["/%ff", "/\u{fffd}", "/\u{fffd}"]);
    }
}
