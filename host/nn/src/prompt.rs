//! Prompts, and how they become tokens.

use nala_engine::{Engine, Error, Token, Tokenizer};

/// A part of a prompt, by who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// From outside: what looks like a control token in it is only text.
    Text(String),
    /// Written by the program itself: names of control tokens are those tokens.
    Template(String),
}

impl Piece {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Template(text) => text,
        }
    }
}

/// A prompt: pieces one behind the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt(Vec<Piece>);

impl Prompt {
    /// Of these pieces, in this order.
    #[must_use]
    pub fn new(pieces: Vec<Piece>) -> Self {
        Self(pieces)
    }

    /// Of one text from outside.
    #[must_use]
    pub fn text(text: String) -> Self {
        Self(vec![Piece::Text(text)])
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|piece| piece.text().len()).sum()
    }

    /// Its text without the difference, for models that read no control tokens.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.0.iter().map(Piece::text).collect()
    }

    /// Its tokens, behind the one that the model expects at a beginning.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for text that the vocabulary cannot express, and
    /// for a prompt of nothing.
    pub fn tokens(&self, tokenizer: &dyn Tokenizer) -> Result<Vec<Token>, Error> {
        let mut tokens = Vec::new();
        for piece in &self.0 {
            tokens.extend(match piece {
                Piece::Text(text) => tokenizer.encode(text, false)?,
                Piece::Template(text) => tokenizer.encode(text, true)?,
            });
        }
        let begin = tokenizer.bos().filter(|_| tokenizer.adds_bos());
        if let Some(begin) = begin.filter(|begin| tokens.first() != Some(begin)) {
            tokens.insert(0, begin);
        }
        match tokens.is_empty() {
            true => Err(Error::InvalidArgument("the prompt is empty; give it some text to go on from".into())),
            false => Ok(tokens),
        }
    }
}

/// The tokens of a text that is to become a vector, with one at the beginning and
/// one at the end where the model file says so, as llama.cpp tokenises what it
/// embeds.
///
/// # Errors
/// [`Error::InvalidArgument`] for text that the vocabulary cannot express.
pub fn embedding_tokens(engine: &Engine, text: &str) -> Result<Vec<Token>, Error> {
    let (tokenizer, metadata) = (engine.tokenizer(), &engine.info().metadata);
    let mut tokens: Vec<Token> = tokenizer.bos().filter(|_| tokenizer.adds_bos()).into_iter().collect();
    tokens.extend(tokenizer.encode(text, false)?);
    if metadata.get("tokenizer.ggml.add_eos_token").is_some_and(|value| value == "true") {
        let named = metadata.get("tokenizer.ggml.eos_token_id").and_then(|id| id.parse().ok());
        tokens.extend(named.or_else(|| tokenizer.end_tokens().first().copied()));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use nala_engine::fake::{BOS, Fake, USER};

    use super::*;

    #[test]
    fn only_what_the_program_wrote_names_control_tokens() {
        let tokenizer = Fake::default().load().tokenizer;
        let [template, text] = [Piece::Template("<user>".into()), Piece::Text("<user>".into())];
        let tokens = Prompt::new(vec![template, text]).tokens(&*tokenizer).unwrap();
        let control: Vec<_> = tokens.iter().filter(|&&token| token == USER).collect();
        assert_eq!(control.len(), 1, "{tokens:?}");
        assert_eq!(tokens.len(), usize::from(tokenizer.adds_bos()) + 1 + "<user>".len());
    }

    #[test]
    fn a_prompt_that_brings_its_own_beginning_gets_no_second_one() {
        let tokenizer = Fake::default().load().tokenizer;
        let own = Prompt::new(vec![Piece::Template("<bos>a".into())]).tokens(&*tokenizer).unwrap();
        assert_eq!(own, [BOS, u32::from(b'a')]);
    }
}
