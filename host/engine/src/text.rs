//! Text out of token bytes: whole characters, and nothing past a stop text.

/// Gathers the bytes of tokens into text that may leave.
///
/// Two things can hold text back: a character whose bytes are not all there,
/// and an ending that may turn out to be the start of a stop text.
pub(crate) struct TextAssembler {
    stops: Vec<String>,
    /// The start of a UTF-8 character, at most 3 bytes.
    bytes: Vec<u8>,
    /// Decoded text that is not yet known to be free of stop texts.
    held: String,
}

/// What [`TextAssembler::push`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Nothing special.
    Open,
    /// A stop text appeared: the run is over.
    Stopped,
}

impl TextAssembler {
    /// `stops` holds no empty text.
    pub(crate) fn new(stops: Vec<String>) -> Self {
        Self { stops, bytes: Vec::new(), held: String::new() }
    }

    /// Adds the bytes of one token and appends to `out` what may leave.
    pub(crate) fn push(&mut self, piece: &[u8], out: &mut String) -> Pushed {
        self.bytes.extend_from_slice(piece);
        self.decode();
        if let Some(at) = self.stops.iter().filter_map(|s| self.held.find(s.as_str())).min() {
            out.push_str(self.held.get(..at).unwrap_or_default());
            self.held.clear();
            self.bytes.clear();
            return Pushed::Stopped;
        }
        let keep = self.possible_stop();
        let leave = self.held.len() - keep;
        out.extend(self.held.drain(..leave));
        Pushed::Open
    }

    /// Ends the text: what was held back leaves now, an incomplete character as
    /// U+FFFD.
    pub(crate) fn finish(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
        if !self.bytes.is_empty() {
            self.bytes.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Moves what is decodable from `bytes` to `held`.
    fn decode(&mut self) {
        let mut rest = self.bytes.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.held.push_str(text);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    self.held.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    match error.error_len() {
                        Some(bad) => {
                            self.held.push(char::REPLACEMENT_CHARACTER);
                            rest = after.get(bad..).unwrap_or_default();
                        }
                        None => {
                            rest = after;
                            break;
                        }
                    }
                }
            }
        }
        let done = self.bytes.len() - rest.len();
        self.bytes.drain(..done);
    }

    /// Bytes at the end of `held` that may be the start of a stop text.
    fn possible_stop(&self) -> usize {
        self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0)
    }
}

/// The longest end of `text` that is a proper beginning of `stop`, in bytes.
fn overlap(text: &str, stop: &str) -> usize {
    (1..stop.len().min(text.len() + 1))
        .rev()
        .find(|&n| stop.is_char_boundary(n) && stop.get(..n).is_some_and(|head| text.ends_with(head)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(stops: &[&str], pieces: &[&[u8]]) -> (String, Pushed) {
        let mut assembler = TextAssembler::new(stops.iter().map(|s| (*s).to_owned()).collect());
        let mut out = String::new();
        for piece in pieces {
            if assembler.push(piece, &mut out) == Pushed::Stopped {
                return (out, Pushed::Stopped);
            }
        }
        assembler.finish(&mut out);
        (out, Pushed::Open)
    }

    #[test]
    fn characters_leave_whole() {
        let mut assembler = TextAssembler::new(Vec::new());
        let mut out = String::new();
        for byte in "é🦀".as_bytes() {
            assembler.push(&[*byte], &mut out);
            assert!("é🦀".starts_with(out.as_str()));
            assert!(!out.contains(char::REPLACEMENT_CHARACTER));
        }
        assert_eq!(out, "é🦀");
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(run(&[], &[b"a\xffb", b"\xf0\x9f"]).0, "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_stop_text_over_several_tokens_never_leaves() {
        assert_eq!(run(&["three"], &[b"one two th", b"r", b"ee four"]), ("one two ".into(), Pushed::Stopped));
    }

    #[test]
    fn the_earliest_stop_wins() {
        assert_eq!(run(&["yy", "x"], &[b"ax", b"yy"]), ("a".into(), Pushed::Stopped));
    }

    #[test]
    fn a_false_alarm_leaves_in_the_end() {
        assert_eq!(run(&["three"], &[b"two th", b"ings"]), ("two things".into(), Pushed::Open));
        assert_eq!(run(&["three"], &[b"two thr"]), ("two thr".into(), Pushed::Open));
    }

    proptest! {
        /// However the bytes are cut into tokens, the text is the lossy decoding
        /// of all of them, up to the first stop text.
        #[test]
        fn cutting_changes_nothing(
            bytes in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0xc3), Just(0xa9), any::<u8>()], 0..40),
            cuts in proptest::collection::vec(0usize..40, 0..8),
            stop in proptest::option::of("[ab]{1,3}"),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.push(0);
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let stops: Vec<&str> = stop.iter().map(String::as_str).collect();
            let whole = String::from_utf8_lossy(&bytes).into_owned();
            let expected = match stop.as_ref().and_then(|s| whole.find(s.as_str())) {
                Some(at) => whole[..at].to_owned(),
                None => whole,
            };
            prop_assert_eq!(run(&stops, &pieces).0, expected);
        }
    }
}
