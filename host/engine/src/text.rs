//! Text out of token bytes: whole characters, and nothing past a stop text.

/// Gathers the bytes of tokens into text that may leave.
///
/// Two things can hold text back: a character whose bytes are not all there,
/// and an ending that may turn out to be the start of a stop text.
pub(crate) struct TextAssembler {
    stops: Vec<Stop>,
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
    /// The stop text of this number appeared: the run is over.
    Stopped(u32),
}

impl TextAssembler {
    /// `stops` holds no empty text.
    pub(crate) fn new(stops: Vec<String>) -> Self {
        let stops = stops.into_iter().map(Stop::new).collect();
        Self { stops, bytes: Vec::new(), held: String::new() }
    }

    /// Adds the bytes of one token and appends to `out` what may leave.
    pub(crate) fn push(&mut self, piece: &[u8], out: &mut String) -> Pushed {
        self.bytes.extend_from_slice(piece);
        let old = self.held.len();
        self.decode();
        let new = self.held.as_bytes().get(old..).unwrap_or_default();
        // The one that is complete first, as if the bytes came one by one: what
        // leaves must not depend on how the text is cut into tokens. Of those that
        // are complete at once the longest, which begins first.
        let found = (0..).zip(&mut self.stops).filter_map(|(number, stop)| {
            let (end, at) = stop.find(new, old)?;
            Some((end, at, number))
        });
        if let Some((_, at, number)) = found.min() {
            out.push_str(self.held.get(..at).unwrap_or_default());
            self.held.clear();
            self.bytes.clear();
            return Pushed::Stopped(number);
        }
        let keep = self.stops.iter().map(|stop| stop.matched).max().unwrap_or(0);
        let leave = self.held.len().saturating_sub(keep);
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
}

/// Looks for one stop text, byte by byte, as Knuth, Morris and Pratt do: the cost
/// of a token is its own length, whatever the stop text is.
struct Stop {
    text: Vec<u8>,
    /// For each n: the longest proper beginning of the text that the text's first
    /// n + 1 bytes end with.
    borders: Vec<usize>,
    /// How many bytes of the stop text the text so far ends with.
    matched: usize,
}

impl Stop {
    fn new(text: String) -> Self {
        let mut this = Self { text: text.into_bytes(), borders: Vec::new(), matched: 0 };
        this.borders.push(0);
        for n in 1..this.text.len() {
            this.step(this.text.get(n).copied().unwrap_or_default());
            this.borders.push(this.matched);
        }
        this.matched = 0;
        this
    }

    fn step(&mut self, byte: u8) {
        while self.matched > 0 && self.text.get(self.matched) != Some(&byte) {
            self.matched = self.borders.get(self.matched - 1).copied().unwrap_or(0);
        }
        if self.text.get(self.matched) == Some(&byte) {
            self.matched += 1;
        }
    }

    /// Takes in `new`, which stands at `at` of the text that is held. Where the
    /// stop text ends and begins, if it is complete now.
    fn find(&mut self, new: &[u8], at: usize) -> Option<(usize, usize)> {
        for (n, &byte) in new.iter().enumerate() {
            self.step(byte);
            if self.matched == self.text.len() {
                let end = at + n + 1;
                return Some((end, end.saturating_sub(self.matched)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(stops: &[&str], pieces: &[&[u8]]) -> (String, Pushed) {
        let mut assembler = TextAssembler::new(stops.iter().map(|s| (*s).to_owned()).collect());
        let mut out = String::new();
        for piece in pieces {
            if let stopped @ Pushed::Stopped(_) = assembler.push(piece, &mut out) {
                return (out, stopped);
            }
        }
        assembler.finish(&mut out);
        (out, Pushed::Open)
    }

    #[test]
    fn of_stop_texts_that_overlap_the_first_complete_one_counts_however_the_text_is_cut() {
        let bytewise: Vec<&[u8]> = b"xabaa".chunks(1).collect();
        assert_eq!(run(&["aba", "b"], &bytewise), ("xa".to_owned(), Pushed::Stopped(1)));
        assert_eq!(run(&["aba", "b"], &[b"xabaa"]), ("xa".to_owned(), Pushed::Stopped(1)));
        assert_eq!(run(&["ba", "aba"], &[b"xabaa"]), ("x".to_owned(), Pushed::Stopped(1)), "the longer one");
        assert_eq!(run(&["ba", "ba"], &[b"xabaa"]), ("xa".to_owned(), Pushed::Stopped(0)), "the first of equal ones");
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
        assert_eq!(run(&["three"], &[b"one two th", b"r", b"ee four"]), ("one two ".into(), Pushed::Stopped(0)));
    }

    #[test]
    fn the_earliest_stop_wins() {
        assert_eq!(run(&["yy", "x"], &[b"ax", b"yy"]), ("a".into(), Pushed::Stopped(1)));
    }

    #[test]
    fn a_stop_text_that_repeats_itself_is_found() {
        assert_eq!(run(&["aab"], &[b"aa", b"ab"]), ("a".into(), Pushed::Stopped(0)));
        assert_eq!(run(&["abcabd"], &[b"abcabca", b"bd"]), ("abc".into(), Pushed::Stopped(0)));
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
