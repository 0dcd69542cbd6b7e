//! The vocabulary of a model, ready for any thread.
//!
//! The bytes of all tokens are copied out of llama.cpp once, so that turning
//! tokens into text is a copy out of one arena.

use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::VocabType;
use nala_engine::{Error, Token, Tokenizer};

use crate::prefix::Shield;
use crate::spelling::Spelling;
use crate::stack;

/// The longest text that is tokenised, in bytes. llama.cpp counts in `i32` and
/// needs some 100 bytes of memory a byte of text.
const MAX_TEXT: usize = 64 << 20;

/// A model's vocabulary.
pub(crate) struct Vocabulary {
    model: Arc<LlamaModel>,
    /// The bytes of all tokens, one behind the other.
    arena: Vec<u8>,
    /// Where each token begins in the arena, and where the last one ends.
    starts: Vec<u32>,
    /// Whether a token has bytes only as a special one.
    hidden: Vec<bool>,
    end_tokens: Vec<Token>,
    bos: Option<Token>,
    adds_bos: bool,
    spelling: Spelling,
    shield: Option<Shield>,
}

impl Vocabulary {
    /// Copies the vocabulary of a model. None if it has none that can be used.
    pub(crate) fn new(model: Arc<LlamaModel>) -> Option<Self> {
        let vocab = model.vocab();
        let kind = vocab.vocab_type();
        if kind == VocabType::NONE || vocab.n_tokens() <= 0 {
            return None;
        }
        let count = usize::try_from(vocab.n_tokens()).ok()?;
        let mut arena = Vec::with_capacity(count * 8);
        let mut starts = Vec::with_capacity(count + 1);
        let mut hidden = Vec::with_capacity(count);
        let mut visible = Vec::with_capacity(256);
        for token in vocab.tokens() {
            starts.push(u32::try_from(arena.len()).ok()?);
            let begin = arena.len();
            // llama-cpp-2 writes into spare room and grows it exactly.
            arena.reserve(256);
            vocab.token_to_piece_into(token, &mut arena, true, None);
            visible.clear();
            vocab.token_to_piece_into(token, &mut visible, false, None);
            hidden.push(visible.is_empty() && arena.len() > begin);
        }
        starts.push(u32::try_from(arena.len()).ok()?);
        arena.shrink_to_fit();

        let known = |token: LlamaToken| Token::try_from(token.0).ok().filter(|&t| (t as usize) < count);
        let mut end_tokens: Vec<Token> = Vec::new();
        let ends = vocab.tokens().filter(|&token| vocab.is_eog(token));
        for token in [vocab.eos(), vocab.eot()].into_iter().chain(ends).filter_map(known) {
            if !end_tokens.contains(&token) {
                end_tokens.push(token);
            }
        }
        let bos = known(vocab.bos());
        let adds_bos = vocab.should_add_bos() && bos.is_some();
        let spelling = Spelling::new(kind, &vocab);
        let shield = Shield::new(kind, &vocab, &spelling);
        Some(Self { arena, starts, hidden, end_tokens, bos, adds_bos, spelling, shield, model })
    }

    fn bytes(&self, token: Token) -> Option<&[u8]> {
        let index = token as usize;
        let begin = *self.starts.get(index)? as usize;
        let end = *self.starts.get(index.checked_add(1)?)? as usize;
        self.arena.get(begin..end)
    }

    fn tokenize(&self, text: &str, parse_special: bool) -> Result<Vec<LlamaToken>, Error> {
        let work = || self.model.vocab().tokenize(text.as_bytes(), false, parse_special);
        stack::with_room_for(text.len(), work).map_err(Error::Backend)
    }
}

impl Tokenizer for Vocabulary {
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<Token>, Error> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        if text.len() > MAX_TEXT {
            return Err(Error::InvalidArgument(format!(
                "the text has {} bytes, but {MAX_TEXT} is the most that is tokenised at once",
                text.len()
            )));
        }
        if let Some(character) = self.spelling.inexpressible(text) {
            return Err(Error::InvalidArgument(format!(
                "the model's vocabulary cannot express the character {character:?}"
            )));
        }
        let tokens = match &self.shield {
            None => self.tokenize(text, parse_special)?,
            Some(shield) => shield
                .strip(self.tokenize(&shield.before(text), parse_special)?)
                .ok_or_else(|| Error::Backend("llama.cpp tokenised a text other than its own start".into()))?,
        };
        tokens
            .into_iter()
            .map(|token| {
                Token::try_from(token.0)
                    .map_err(|_| Error::InvalidArgument("the model's vocabulary cannot express the text".into()))
            })
            .collect()
    }

    fn piece(&self, token: Token, special: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        let bytes = self.bytes(token).ok_or_else(|| {
            Error::InvalidArgument(format!("token {token} is outside of the vocabulary of {} tokens", self.vocab()))
        })?;
        if special || !self.hidden.get(token as usize).copied().unwrap_or(true) {
            out.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn vocab(&self) -> u32 {
        u32::try_from(self.hidden.len()).unwrap_or(u32::MAX)
    }

    fn bos(&self) -> Option<Token> {
        self.bos
    }

    fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    fn end_tokens(&self) -> &[Token] {
        &self.end_tokens
    }
}
