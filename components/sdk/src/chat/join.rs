//! From pieces of text to the tokens of all of them.

use super::{Origin, Piece};
use crate::llm::{Error, Model, Token};

/// What tokenises; the model, or a small vocabulary in tests.
pub(super) trait Vocabulary {
    /// The tokens of a text, with nothing added.
    fn encode(&self, text: &str, origin: Origin) -> Result<Vec<Token>, Error>;
    /// The bytes of a token.
    fn decode(&self, token: Token) -> Result<Vec<u8>, Error>;
    /// Whether a space belongs before a text that does not go on from another.
    fn begins_with_space(&self) -> bool;
}

impl Vocabulary for Model {
    fn encode(&self, text: &str, origin: Origin) -> Result<Vec<Token>, Error> {
        match origin {
            Origin::Template => self.encode_template(text),
            Origin::User => self.encode(text),
        }
    }

    fn decode(&self, token: Token) -> Result<Vec<u8>, Error> {
        self.decode(&[token])
    }

    fn begins_with_space(&self) -> bool {
        // `llama` is GGUF's name for SentencePiece, which adds the space unless
        // the file says otherwise.
        self.metadata("tokenizer.ggml.model").as_deref() == Some("llama")
            && self.metadata("tokenizer.ggml.add_space_prefix").as_deref() != Some("false")
    }
}

/// The tokens of all pieces, one behind the other.
pub(super) fn pieces(vocabulary: &impl Vocabulary, pieces: &[Piece]) -> Result<Vec<Token>, Error> {
    let spaced = vocabulary.begins_with_space();
    let mut tokens: Vec<Token> = Vec::new();
    for piece in pieces.iter().filter(|piece| !piece.text.is_empty()) {
        let mut next = vocabulary.encode(&piece.text, piece.origin)?;
        if spaced && starts_anew(vocabulary, tokens.last(), next.first())? {
            next = vocabulary.encode(&format!(" {}", piece.text), piece.origin)?;
        }
        tokens.append(&mut next);
    }
    Ok(tokens)
}

/// Whether text begins here that does not go on from text before.
fn starts_anew(vocabulary: &impl Vocabulary, last: Option<&Token>, first: Option<&Token>) -> Result<bool, Error> {
    let control = |token: Option<&Token>| token.map_or(Ok(false), |token| is_control(vocabulary, *token));
    Ok((last.is_none() || control(last)?) && !control(first)?)
}

/// A control token is one whose name makes it in a template and nowhere else.
fn is_control(vocabulary: &impl Vocabulary, token: Token) -> Result<bool, Error> {
    let Ok(name) = String::from_utf8(vocabulary.decode(token)?) else { return Ok(false) };
    Ok(vocabulary.encode(&name, Origin::Template)? == [token] && vocabulary.encode(&name, Origin::User)? != [token])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token a character, and one for `<s>`.
    struct Letters {
        spaced: bool,
    }

    const BOS: Token = 1;

    impl Vocabulary for Letters {
        fn encode(&self, text: &str, origin: Origin) -> Result<Vec<Token>, Error> {
            let text = if origin == Origin::Template { text.replace("<s>", "\u{1}") } else { text.to_owned() };
            Ok(text.chars().map(Token::from).collect())
        }

        fn decode(&self, token: Token) -> Result<Vec<u8>, Error> {
            let character = char::from_u32(token).unwrap();
            Ok(if token == BOS { b"<s>".to_vec() } else { character.to_string().into_bytes() })
        }

        fn begins_with_space(&self) -> bool {
            self.spaced
        }
    }

    fn joined(spaced: bool, texts: &[(Origin, &str)]) -> String {
        let all: Vec<Piece> =
            texts.iter().map(|(origin, text)| Piece { origin: *origin, text: (*text).to_owned() }).collect();
        let tokens = pieces(&Letters { spaced }, &all).unwrap();
        tokens.into_iter().map(|token| char::from_u32(token).unwrap()).collect::<String>().replace('\u{1}', "<s>")
    }

    #[test]
    fn only_a_start_is_given_a_space() {
        use Origin::{Template, User};
        let goes_on = [(Template, "[I]"), (User, "Hi"), (Template, "[/I]"), (Template, ""), (User, "there")];
        assert_eq!(joined(true, &goes_on), " [I]Hi[/I]there");
        assert_eq!(joined(false, &goes_on), "[I]Hi[/I]there");
    }

    #[test]
    fn a_control_token_makes_a_new_start() {
        use Origin::{Template, User};
        // What the user wrote is no control token, whatever it looks like.
        let pieces = [(Template, "<s>"), (User, "<s>"), (User, "Hi"), (Template, "<s>")];
        assert_eq!(joined(true, &pieces), "<s> <s>Hi<s>");
        assert_eq!(joined(false, &pieces), "<s><s>Hi<s>");
    }
}
