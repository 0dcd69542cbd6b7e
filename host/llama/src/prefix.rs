//! The space that SentencePiece vocabularies have in front of a text.
//!
//! Where the vocabulary asks for it (`tokenizer.ggml.add_space_prefix`, on by
//! default), llama.cpp puts a space before the first text of every call. A
//! prompt is tokenised here piece by piece, so every piece would gain one that
//! nobody wrote. Texts are therefore tokenised behind a character that stands
//! for itself alone, whose tokens are dropped: nothing is added at the start of
//! a text, and the tokens spell what was given. Who joins pieces adds the space
//! where the model expects it, at the start of a prompt.
//!
//! Within a text llama.cpp still puts a space behind every special token, as it
//! does for a prompt that is tokenised as a whole.

use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::{LlamaVocab, VocabType};

use crate::spelling::Spelling;

/// Takes the space that llama.cpp puts before a text.
pub(crate) struct Shield {
    character: char,
    /// The space and the character.
    tokens: Vec<LlamaToken>,
}

impl Shield {
    /// None where llama.cpp puts nothing before a text, or where the vocabulary
    /// has no character that would do; then its texts are as llama.cpp makes
    /// them.
    pub(crate) fn new(kind: VocabType, vocab: &LlamaVocab<'_>, spelling: &Spelling) -> Option<Self> {
        if kind != VocabType::SPM {
            return None;
        }
        // No white space: special tokens may swallow that.
        let mut candidates = ('\u{1}'..='\u{8}').chain('\u{e}'..='\u{1f}');
        let character = candidates.find(|&character| {
            let mut buffer = [0; 4];
            let text: &str = character.encode_utf8(&mut buffer);
            spelling.inexpressible(text).is_none() && stands_alone(vocab, text)
        })?;
        let once = tokenize(vocab, character, 1);
        let twice = tokenize(vocab, character, 2);
        // What comes before the first of them comes once.
        let before = (once.len() * 2).checked_sub(twice.len()).filter(|before| *before > 0)?;
        let again = once.get(before..)?;
        (twice.strip_prefix(once.as_slice()) == Some(again)).then_some(Self { character, tokens: once })
    }

    /// The text to give to llama.cpp.
    pub(crate) fn before(&self, text: &str) -> String {
        let mut shielded = String::with_capacity(text.len() + self.character.len_utf8());
        shielded.push(self.character);
        shielded.push_str(text);
        shielded
    }

    /// The tokens of the text alone.
    pub(crate) fn strip(&self, mut tokens: Vec<LlamaToken>) -> Option<Vec<LlamaToken>> {
        if !tokens.starts_with(&self.tokens) {
            return None;
        }
        tokens.drain(..self.tokens.len());
        Some(tokens)
    }
}

/// Whether no token joins the character with what stands beside it.
fn stands_alone(vocab: &LlamaVocab<'_>, character: &str) -> bool {
    let character = character.as_bytes();
    !vocab.tokens().filter_map(|token| vocab.text(token)).any(|text| {
        let text = text.to_bytes();
        text != character && text.windows(character.len()).any(|part| part == character)
    })
}

fn tokenize(vocab: &LlamaVocab<'_>, character: char, count: usize) -> Vec<LlamaToken> {
    let text: String = std::iter::repeat_n(character, count).collect();
    vocab.tokenize(text.as_bytes(), false, false)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use llama_cpp_2::model::LlamaModel;
    use llama_cpp_2::model::params::LlamaModelParams;
    use nala_engine::Tokenizer;

    use crate::tokenizer::Vocabulary;

    /// Behind the special tokens and the bytes, the likeliest first.
    const WORDS: [&str; 11] = ["▁", "H", "e", "l", "o", "He", "ll", "Hell", "Hello", "▁Hello", "▁▁"];
    const BOS: u32 = 1;

    /// The place of a word in the vocabulary.
    fn word(text: &str) -> u32 {
        3 + 256 + u32::try_from(WORDS.iter().position(|word| *word == text).unwrap()).unwrap()
    }

    fn text(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    }

    fn array(out: &mut Vec<u8>, key: &str, kind: u32, len: usize) {
        text(out, key);
        out.extend([9_u32.to_le_bytes(), kind.to_le_bytes()].concat());
        out.extend((len as u64).to_le_bytes());
    }

    /// A GGUF file with a SentencePiece vocabulary and nothing else.
    fn vocabulary(add_space_prefix: Option<bool>) -> Vocabulary {
        let mut tokens: Vec<(String, i32)> = vec![("<unk>".into(), 2), ("<s>".into(), 3), ("</s>".into(), 3)];
        tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6)));
        tokens.extend(WORDS.iter().map(|word| ((*word).to_owned(), 1)));
        let mut out = b"GGUF\x03\0\0\0".to_vec();
        out.extend(0_u64.to_le_bytes());
        out.extend((5 + u64::from(add_space_prefix.is_some())).to_le_bytes());
        for (key, value) in [("general.architecture", "llama"), ("tokenizer.ggml.model", "llama")] {
            text(&mut out, key);
            out.extend(8_u32.to_le_bytes());
            text(&mut out, value);
        }
        if let Some(add) = add_space_prefix {
            text(&mut out, "tokenizer.ggml.add_space_prefix");
            out.extend(7_u32.to_le_bytes());
            out.push(u8::from(add));
        }
        array(&mut out, "tokenizer.ggml.tokens", 8, tokens.len());
        for (token, _) in &tokens {
            text(&mut out, token);
        }
        array(&mut out, "tokenizer.ggml.scores", 6, tokens.len());
        for index in 0..tokens.len() {
            out.extend((-(index as f32)).to_le_bytes());
        }
        array(&mut out, "tokenizer.ggml.token_type", 5, tokens.len());
        for (_, kind) in &tokens {
            out.extend(kind.to_le_bytes());
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), out).unwrap();
        let params = LlamaModelParams::default().with_vocab_only(true);
        let model = LlamaModel::load_from_file(crate::system::backend().unwrap(), file.path(), &params).unwrap();
        Vocabulary::new(Arc::new(model)).unwrap()
    }

    fn spelled(vocabulary: &Vocabulary, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        for token in tokens {
            vocabulary.piece(*token, true, &mut bytes).unwrap();
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_piece_gains_a_space() {
        for add_space_prefix in [None, Some(true), Some(false)] {
            let vocabulary = vocabulary(add_space_prefix);
            assert_eq!(vocabulary.encode("Hello", false).unwrap(), [word("Hello")], "{add_space_prefix:?}");
            assert_eq!(vocabulary.encode(" Hello", false).unwrap(), [word("▁Hello")], "{add_space_prefix:?}");
            assert_eq!(vocabulary.encode("Hello Hello", false).unwrap(), [word("Hello"), word("▁Hello")]);
            let long = "Hello".repeat(1000);
            for text in ["Hello", " Hello", "  Hello", " ", "\n", "\u{1}", "\u{1}\u{1}Hello", "l", "ö\0", "<s>", &long]
            {
                let tokens = vocabulary.encode(text, false).unwrap();
                assert_eq!(spelled(&vocabulary, &tokens), text, "{add_space_prefix:?}");
            }
        }
    }

    #[test]
    fn behind_a_special_token_it_is_as_llama_cpp_has_it() {
        let spaced = vocabulary(None);
        assert_eq!(spaced.encode("<s>Hello", true).unwrap(), [BOS, word("▁Hello")]);
        assert_eq!(spaced.encode("Hello<s>", true).unwrap(), [word("Hello"), BOS]);
        let plain = vocabulary(Some(false));
        assert_eq!(plain.encode("<s>Hello", true).unwrap(), [BOS, word("Hello")]);
    }
}
