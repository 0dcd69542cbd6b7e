//! A model's vocabulary as the grammar library wants it.

use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use super::limits::ConstraintLimits;
use super::mask::TokenMask;
use super::refused;
use crate::backend::Token;
use crate::error::Error;
use crate::tokenizer::Tokenizer;

/// The longest token that the trie can hold, in bytes. Longer ones exist in no
/// vocabulary that we know; they would never be allowed.
const MAX_TOKEN: usize = 1000;

/// A model's vocabulary: its text tokens as a trie, and what forced text is made
/// into.
pub(super) struct Vocabulary {
    pub(super) factory: ParserFactory,
    /// Tokens that may ever be allowed: text and end tokens.
    pub(super) possible: TokenMask,
    pub(super) end_tokens: TokenMask,
    pub(super) size: u32,
}

impl Vocabulary {
    /// Reads the whole vocabulary; takes a fraction of a second.
    pub(super) fn new(tokenizer: Arc<dyn Tokenizer>, limits: &ConstraintLimits) -> Result<Self, Error> {
        let size = tokenizer.vocab();
        let mut end_tokens = TokenMask::none(size);
        tokenizer.end_tokens().iter().for_each(|&token| end_tokens.add(token));
        let mut possible = end_tokens.clone();
        let mut words = Vec::with_capacity(size as usize);
        for token in 0..size {
            let mut word = Vec::new();
            tokenizer.piece(token, false, &mut word)?;
            // 0xFF is in no UTF-8 text, and marks control tokens in the library.
            if word.len() > MAX_TOKEN || word.contains(&TokTrie::SPECIAL_TOKEN_MARKER) || end_tokens.allows(token) {
                word.clear();
            }
            if !word.is_empty() {
                possible.add(token);
            }
            words.push(word);
        }
        let ends: Vec<Token> = end_tokens.tokens().collect();
        let build = move || {
            let trie = TokTrie::from(&TokRxInfo::new(size, INVALID_TOKEN), &words);
            let trie = if ends.is_empty() { trie } else { trie.with_eos_tokens(&ends) };
            let env: TokEnv = Arc::new(Environment { trie, tokenizer });
            let abilities = InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
            let mut factory = ParserFactory::new(&env, abilities, &SlicedBiasComputer::general_slices())?;
            factory.quiet();
            Ok(factory)
        };
        let build = std::panic::AssertUnwindSafe(build);
        let mut factory = llguidance::panic_utils::catch_unwind(build).map_err(refused)?;
        *factory.limits_mut() = limits.parser();
        Ok(Self { factory, possible, end_tokens, size })
    }
}

struct Environment {
    trie: TokTrie,
    tokenizer: Arc<dyn Tokenizer>,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<Token> {
        // Forced text can begin and end within a character.
        let mut tokens = Vec::new();
        for chunk in bytes.utf8_chunks() {
            tokens.extend(self.text(chunk.valid()));
            tokens.extend(self.trie.greedy_tokenize(chunk.invalid()));
        }
        tokens
    }

    fn tokenize_bytes_marker(&self, bytes: &[u8]) -> (Vec<Token>, usize) {
        // No text names a control token.
        (self.tokenize_bytes(bytes), 0)
    }
}

impl Environment {
    fn text(&self, text: &str) -> Vec<Token> {
        if text.is_empty() {
            return Vec::new();
        }
        self.exact("", text)
            // A SentencePiece vocabulary puts a space before a text; not after a
            // line break.
            .or_else(|| self.exact("\n", text))
            // Right, if not what the model is used to.
            .unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
    }

    /// The tokens of `text` where it comes behind `before`. None unless they spell
    /// exactly that.
    fn exact(&self, before: &str, text: &str) -> Option<Vec<Token>> {
        let mut tokens = self.tokenizer.encode(&format!("{before}{text}"), false).ok()?;
        let mut rest = text.as_bytes();
        let mut first = tokens.len();
        while !rest.is_empty() {
            first = first.checked_sub(1)?;
            let word = self.trie.token(*tokens.get(first)?);
            rest = rest.strip_suffix(word).filter(|_| !word.is_empty())?;
        }
        // Nothing may be left of the text's own beginning.
        if before.is_empty() && first > 0 {
            return None;
        }
        Some(tokens.split_off(first))
    }
}
