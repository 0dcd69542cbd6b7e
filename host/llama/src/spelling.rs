//! Which characters a vocabulary can express.
//!
//! A SentencePiece vocabulary spells unknown characters byte by byte. Where a
//! byte has no token, llama.cpp throws a C++ exception, which would end the
//! process; so such text is refused before.

use std::collections::HashSet;

use llama_cpp_2::vocab::{LlamaVocab, VocabType};

/// Which characters a vocabulary can express.
pub(crate) enum Spelling {
    /// All of them.
    Complete,
    /// Those whose bytes all have tokens, or that have one themselves.
    Partial {
        /// Bytes that have a token.
        bytes: HashSet<u8>,
        /// Characters that have one.
        characters: HashSet<char>,
    },
}

impl Spelling {
    pub(crate) fn new(kind: VocabType, vocab: &LlamaVocab<'_>) -> Self {
        // Other kinds have a token for "unknown", or all bytes by construction.
        if !matches!(kind, VocabType::SPM | VocabType::PLAMO2) {
            return Self::Complete;
        }
        let texts = vocab.tokens().filter_map(|token| vocab.text(token));
        Self::of(texts.map(std::ffi::CStr::to_bytes))
    }

    fn of<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut bytes = HashSet::new();
        let mut characters = HashSet::new();
        for text in texts {
            if let Some(byte) = named_byte(text) {
                bytes.insert(byte);
            }
            if let Ok(text) = std::str::from_utf8(text) {
                let mut all = text.chars();
                if let (Some(only), None) = (all.next(), all.next()) {
                    characters.insert(only);
                }
            }
        }
        if bytes.len() == 256 { Self::Complete } else { Self::Partial { bytes, characters } }
    }

    /// The first character of a text that cannot be expressed.
    pub(crate) fn inexpressible(&self, text: &str) -> Option<char> {
        let Self::Partial { bytes, characters } = self else {
            return None;
        };
        let mut buffer = [0; 4];
        text.chars().find(|&character| {
            // Spaces are written as U+2581.
            let written = if character == ' ' { '\u{2581}' } else { character };
            let spelled = written.encode_utf8(&mut buffer);
            !characters.contains(&written) && !spelled.bytes().all(|byte| bytes.contains(&byte))
        })
    }
}

/// The byte that `<0x41>` stands for.
fn named_byte(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2)?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_without_a_spelling_are_found() {
        let texts = ["<0x41>", "b", "\u{2581}", "lo"];
        let spelling = Spelling::of(texts.iter().map(|text| text.as_bytes()));
        assert_eq!(spelling.inexpressible("A b"), None);
        assert_eq!(spelling.inexpressible("A c"), Some('c'));
    }

    #[test]
    fn a_vocabulary_of_all_bytes_is_complete() {
        let texts: Vec<String> = (0..256).map(|byte| format!("<0x{byte:02X}>")).collect();
        let spelling = Spelling::of(texts.iter().map(|text| text.as_bytes()));
        assert_eq!(spelling.inexpressible("anything 語"), None);
    }
}
