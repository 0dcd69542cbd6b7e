//! What threads beside the engine's may ask of a model: its vocabulary.

use crate::Token;
use crate::error::Error;

/// A model's vocabulary.
pub trait Tokenizer: Send + Sync {
    /// Turns text into tokens, adding none of its own (no BOS).
    ///
    /// With `parse_special` the text may name control tokens. Everything a user
    /// wrote is tokenised without.
    ///
    /// What another thread does for it is [lent](nala_machine::note_lent) to the calling
    /// one: whoever has the text tokenised pays for the time.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for text this vocabulary cannot express.
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<Token>, Error>;

    /// Appends the bytes of a token, which may be a part of a UTF-8 character.
    /// Control tokens have bytes only if `special` is set.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a token outside the vocabulary.
    fn piece(&self, token: Token, special: bool, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Entries of the vocabulary.
    fn vocab(&self) -> u32;

    /// The token that begins a sequence.
    fn bos(&self) -> Option<Token>;

    /// Whether prompts are expected to start with [`Tokenizer::bos`].
    fn adds_bos(&self) -> bool;

    /// The tokens that end the model's turn; the main one first.
    fn end_tokens(&self) -> &[Token];
}
