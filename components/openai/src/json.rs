//! Writing JSON without building it first, for what is sent once a token.

/// Appends a JSON string, quotes included.
pub fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escaped(text, out);
    out.push(b'"');
}

/// Appends the inside of a JSON string.
pub fn escaped(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_read_back_as_they_were() {
        let all: String = (0..=0x2ff).filter_map(char::from_u32).chain("世\u{2028}🌍".chars()).collect();
        let mut out = Vec::new();
        string(&all, &mut out);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), all);
        assert!(!out.contains(&b'\n'), "a line break would end the event");
    }
}
