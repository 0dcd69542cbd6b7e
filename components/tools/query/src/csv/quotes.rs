//! Quotes that are never closed. The reader takes such a cell to go on to the end, which
//! would swallow the rest of the table without a word.

/// The line of the quote that is not closed, if there is one.
pub(super) fn unclosed(text: &str, delimiter: u8) -> Option<usize> {
    enum At {
        Start,
        Bare,
        Quoted,
        Quote,
    }
    let (mut at, mut line, mut opened) = (At::Start, 1, 1);
    for byte in text.bytes() {
        at = match (at, byte) {
            (At::Start, b'"') => {
                opened = line;
                At::Quoted
            }
            (At::Quoted, b'"') => At::Quote,
            // Two of them are one in the cell.
            (At::Quoted, _) | (At::Quote, b'"') => At::Quoted,
            (_, b'\n' | b'\r') => At::Start,
            (_, byte) if byte == delimiter => At::Start,
            _ => At::Bare,
        };
        if byte == b'\n' {
            line += 1;
        }
    }
    matches!(at, At::Quoted).then_some(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_that_stays_open_is_found() {
        let table = [
            ("", None),
            ("a,b\n\"x\",\"y\"\"\"\n", None),
            ("a\n\"x\ny\"\n", None),
            ("a\nx\"y\n5\" pipe\n", None),
            ("a\n\"x\"y\"z\n", None),
            ("a,b\n1,\"2\n3,4\n", Some(2)),
            ("\"", Some(1)),
            ("a\n\"x\"\"\n", Some(2)),
            ("a\n\"x\ny\",\"z", Some(3)),
        ];
        for (text, line) in table {
            assert_eq!(unclosed(text, b','), line, "{text:?}");
        }
        assert_eq!(unclosed("a,\"b", b';'), None);
    }
}
