//! How bytes become text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::kind::Kind;

/// How far into a body its own word on its encoding is looked for (HTML, 13.2.3.2).
const PRESCAN: usize = 1024;

/// Whether bytes go on behind those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// A character may be cut at the end, which is left out then.
    Cut,
}

/// The text that bytes are. What is none becomes U+FFFD.
pub(crate) fn decode(bytes: &[u8], charset: Option<&str>, kind: Kind, extent: Extent) -> String {
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((encoding, len)) => (encoding, bytes.get(len..).unwrap_or_default()),
        None => (said(bytes, charset, kind).unwrap_or_else(|| guessed(bytes, extent)), bytes),
    };
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or_default());
    // There is room for all of it, so once is enough.
    let _ = decoder.decode_to_string(bytes, &mut text, extent == Extent::Whole);
    text
}

/// The encoding that the server or the document names.
fn said(bytes: &[u8], charset: Option<&str>, kind: Kind) -> Option<&'static Encoding> {
    let by_server = charset.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()));
    let by_itself = || {
        let start = bytes.get(..bytes.len().min(PRESCAN)).unwrap_or_default().to_ascii_lowercase();
        let name: &[u8] = match kind {
            Kind::Html => b"charset",
            Kind::Xml if start.starts_with(b"<?xml") => b"encoding",
            _ => return None,
        };
        let encoding = Encoding::for_label_no_replacement(named(&start, name)?)?;
        // It was read as ASCII, so it is not that.
        Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
    };
    by_server.or_else(by_itself)
}

/// The value behind the first `name=`.
fn named<'a>(start: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let ends = |byte: &u8| matches!(byte, b'"' | b'\'' | b'>' | b';' | b'?') || byte.is_ascii_whitespace();
    let at = |at: usize| {
        let value = start.get(at..)?.strip_prefix(name)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        let value = value.strip_prefix(b"\"").or(value.strip_prefix(b"'")).unwrap_or(value);
        value.split(ends).next()
    };
    (0..start.len()).find_map(at)
}

/// The encoding of bytes that nobody said anything of.
fn guessed(bytes: &[u8], extent: Extent) -> &'static Encoding {
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        Err(error) if error.error_len().is_none() && extent == Extent::Cut => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_in_the_order_of_the_standard() {
        let table: [(&[u8], Option<&str>, Kind, &str); 15] = [
            ("grün".as_bytes(), None, Kind::Text, "grün"),
            (b"gr\xFCn", None, Kind::Text, "grün"),
            (b"gr\xFCn", Some("ISO-8859-1"), Kind::Html, "grün"),
            (b"\xCF\xCF\xC9", Some("koi8-r"), Kind::Text, "оои"),
            (b"\x93\xFA\x96\x7B", Some("Shift_JIS"), Kind::Text, "日本"),
            (b"\xEF\xBB\xBFgr\xC3\xBCn", Some("iso-8859-1"), Kind::Text, "grün"),
            (b"\xFF\xFEa\0\xFC\0", Some("utf-8"), Kind::Text, "aü"),
            (b"\xFE\xFF\0a\0\xFC", None, Kind::Text, "aü"),
            (b"<meta charset=koi8-r>\xCF", None, Kind::Html, "<meta charset=koi8-r>о"),
            (b"<META Content='a; Charset = \"koi8-r\"'>\xCF", Some("no-such"), Kind::Html, {
                "<META Content='a; Charset = \"koi8-r\"'>о"
            }),
            (b"<meta charset=utf-16>\xC3\xBC", None, Kind::Html, "<meta charset=utf-16>ü"),
            (b"charset=koi8-r \xC3\xBC", None, Kind::Text, "charset=koi8-r ü"),
            (b"<?xml encoding='koi8-r'?>\xCF", None, Kind::Xml, "<?xml encoding='koi8-r'?>о"),
            (b"\xC3\xBC\xFF", Some("utf8"), Kind::Text, "ü\u{FFFD}"),
            (b"hz", Some("hz-gb-2312"), Kind::Text, "hz"),
        ];
        for (bytes, charset, kind, text) in table {
            assert_eq!(decode(bytes, charset, kind, Extent::Whole), text, "{bytes:?} {charset:?}");
        }
    }

    #[test]
    fn a_character_that_is_cut_is_left_out() {
        let whole = "aü€😀".as_bytes();
        for (len, text) in
            [(2, "a"), (3, "aü"), (4, "aü"), (5, "aü"), (6, "aü€"), (7, "aü€"), (9, "aü€"), (10, "aü€😀")]
        {
            for charset in [None, Some("utf-8")] {
                assert_eq!(decode(&whole[..len], charset, Kind::Text, Extent::Cut), text, "{len} {charset:?}");
            }
        }
        assert_eq!(decode(b"a\0\xFC", Some("utf-16le"), Kind::Text, Extent::Cut), "a");
        assert_eq!(decode(&whole[..2], Some("utf-8"), Kind::Text, Extent::Whole), "a\u{FFFD}");
    }

    #[test]
    fn what_names_an_encoding_is_not_looked_for_without_end() {
        let mut bytes = vec![b' '; PRESCAN];
        bytes.extend_from_slice(b"<meta charset=koi8-r>\xCF");
        assert!(decode(&bytes, None, Kind::Html, Extent::Whole).ends_with("Ï"));
        for hostile in ["charset", "charset=", "charset=\"", "charset=charset=charset", "charset = '"] {
            assert_eq!(decode(hostile.as_bytes(), None, Kind::Html, Extent::Whole), hostile);
        }
    }
}
