//! What a body is, by its type and its first bytes.

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page.
    Html,
    /// XML, which says its own encoding.
    Xml,
    /// Any other text.
    Text,
    /// A picture that a model may be shown, with its type.
    Image(&'static str),
    /// The server does not say.
    Unsaid,
    /// None of these.
    Binary,
}

/// A type, as `Content-Type` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentType {
    /// In lower case, without parameters.
    pub(crate) essence: String,
    /// The parameter `charset`.
    pub(crate) charset: Option<String>,
}

impl ContentType {
    pub(crate) fn read(text: &str) -> Self {
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']);
            name.trim().eq_ignore_ascii_case("charset").then(|| value.to_owned())
        });
        Self { essence, charset }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.essence.as_str() {
            // The last two are what servers say of what they know nothing of.
            "" | "application/octet-stream" | "unknown/unknown" => Kind::Unsaid,
            "text/html" | "application/xhtml+xml" => Kind::Html,
            "text/xml" | "application/xml" => Kind::Xml,
            "image/png" => Kind::Image("image/png"),
            "image/jpeg" | "image/jpg" => Kind::Image("image/jpeg"),
            "image/gif" => Kind::Image("image/gif"),
            "image/webp" => Kind::Image("image/webp"),
            essence if essence.ends_with("+xml") => Kind::Xml,
            essence if essence.starts_with("text/") || essence.ends_with("+json") => Kind::Text,
            essence if essence.strip_prefix("application/").is_some_and(|rest| TEXTS.contains(&rest)) => Kind::Text,
            _ => Kind::Binary,
        }
    }
}

/// Types below `application` that are text.
const TEXTS: [&str; 20] = [
    "ecmascript",
    "graphql",
    "javascript",
    "json",
    "json5",
    "json-seq",
    "jsonl",
    "jsonlines",
    "mbox",
    "ndjson",
    "sql",
    "toml",
    "x-javascript",
    "x-ndjson",
    "x-sh",
    "x-subrip",
    "x-tex",
    "x-www-form-urlencoded",
    "x-yaml",
    "yaml",
];

/// What a body without a type is.
pub(crate) fn sniffed(bytes: &[u8]) -> Kind {
    if let Some(image) = picture(bytes) {
        return Kind::Image(image);
    }
    let start = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
    let wide = start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF");
    // What no text has: of the standard on sniffing, section 3.
    if !wide && start.iter().any(|byte| matches!(byte, 0..=8 | 11 | 14..=26 | 28..=31)) {
        return Kind::Binary;
    }
    let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start().to_ascii_lowercase();
    match () {
        () if start.starts_with(b"<!doctype html") || start.starts_with(b"<html") => Kind::Html,
        () if start.starts_with(b"<?xml") => Kind::Xml,
        () => Kind::Text,
    }
}

/// The type of a picture, by what it begins with.
pub(crate) fn picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read() {
        let table = [
            ("text/html; charset=utf-8", Kind::Html),
            (" Text/HTML ;", Kind::Html),
            ("application/json", Kind::Text),
            ("application/problem+json", Kind::Text),
            ("application/rss+xml", Kind::Xml),
            ("image/svg+xml", Kind::Xml),
            ("text/plain", Kind::Text),
            ("application/x-yaml", Kind::Text),
            ("image/jpg", Kind::Image("image/jpeg")),
            ("image/tiff", Kind::Binary),
            ("application/pdf", Kind::Binary),
            ("application/", Kind::Binary),
            ("json", Kind::Binary),
            (";", Kind::Unsaid),
            ("application/octet-stream", Kind::Unsaid),
        ];
        for (text, kind) in table {
            assert_eq!(ContentType::read(text).kind(), kind, "{text}");
        }
    }

    #[test]
    fn a_charset_is_found() {
        let table = [
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html; boundary=x; CharSet = \"ISO-8859-1\" ", Some("ISO-8859-1")),
            ("text/html; charset", None),
            ("text/html; xcharset=a", None),
            ("charset=a", None),
        ];
        for (text, charset) in table {
            assert_eq!(ContentType::read(text).charset.as_deref(), charset, "{text}");
        }
    }

    #[test]
    fn what_has_no_type_is_sniffed() {
        let table: [(&[u8], Kind); 9] = [
            (b"", Kind::Text),
            (b"plain", Kind::Text),
            (b"\xEF\xBB\xBF \n<!DOCTYPE HTML>", Kind::Html),
            (b"<?xml version='1.0'?>", Kind::Xml),
            (b"\xFF\xFEa\0", Kind::Text),
            (b"PK\x03\x04", Kind::Binary),
            (b"a\0b", Kind::Binary),
            (b"GIF89a....", Kind::Image("image/gif")),
            (b"RIFF1234WEBPVP8 ", Kind::Image("image/webp")),
        ];
        for (bytes, kind) in table {
            assert_eq!(sniffed(bytes), kind, "{bytes:?}");
        }
    }
}
