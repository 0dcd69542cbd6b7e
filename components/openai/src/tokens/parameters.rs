//! The requests of these routes.

use nala_sdk::llm::Token;
use serde_json::Value;

use crate::ask::Ask;
use crate::brief::brief;
use crate::completions;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::parameters::policy::{self, Names};
use crate::parameters::{self, object};

/// The parameters of `/tokenize`.
pub const TOKENIZE: Names = &[&["model", "content", "add_special", "parse_special", "with_pieces"]];

/// The parameters of `/detokenize`.
pub const DETOKENIZE: Names = &[&["model", "tokens"]];

/// What `/tokenize` is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) model: Option<String>,
    pub(super) content: String,
    pub(super) start: Start,
    pub(super) specials: Specials,
    pub(super) pieces: Pieces,
}

/// What tokens begin with (`add_special`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// With what the model wants at the beginning of a prompt.
    OfPrompt,
    /// With the text.
    Bare,
}

/// What the name of a control token in a text is (`parse_special`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Specials {
    /// Text.
    Text,
    /// The token.
    Control,
}

/// How tokens are told (`with_pieces`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pieces {
    /// By their ids alone.
    Absent,
    /// With the text of each.
    Reported,
}

pub(super) fn text(body: &[u8]) -> Result<Text, ApiError> {
    let map = policy::given(body, TOKENIZE, &[])?;
    let fields = Fields(&map);
    let is = |name| Ok::<bool, ApiError>(fields.boolean(name)?.unwrap_or(false));
    Ok(Text {
        model: fields.text("model")?,
        content: fields.text("content")?.ok_or_else(|| ApiError::missing("content", "the text"))?,
        start: if is("add_special")? { Start::OfPrompt } else { Start::Bare },
        specials: if is("parse_special")? { Specials::Control } else { Specials::Text },
        pieces: if is("with_pieces")? { Pieces::Reported } else { Pieces::Absent },
    })
}

/// The model's name and the tokens for `/detokenize`.
pub(super) fn tokens(body: &[u8]) -> Result<(Option<String>, Vec<Token>), ApiError> {
    let map = policy::given(body, DETOKENIZE, &[])?;
    let tokens = match map.get("tokens") {
        None => return Err(ApiError::missing("tokens", "a list of token ids")),
        Some(Value::Array(list)) => completions::tokens(list, "tokens")?,
        Some(other) => {
            let message = format!("'tokens' must be a list of token ids, not {}", brief(other));
            return Err(ApiError::invalid("tokens", message));
        }
    };
    Ok((Fields(&map).text("model")?, tokens))
}

/// Refuses tokens that a vocabulary of `n_vocab` does not have.
pub(super) fn known(tokens: &[Token], n_vocab: u32) -> Result<(), ApiError> {
    match tokens.iter().position(|token| *token >= n_vocab) {
        None => Ok(()),
        Some(at) => {
            let last = n_vocab.saturating_sub(1);
            let param = format!("tokens[{at}]");
            Err(ApiError::invalid(&*param, format!("'{param}' is no token of the model, whose last is {last}")))
        }
    }
}

/// A chat completion that may leave out the model.
pub(super) fn conversation(body: &[u8], first: impl FnOnce() -> Result<String, ApiError>) -> Result<Ask, ApiError> {
    let mut map = object::read(body)?;
    if map.get("model").is_none_or(Value::is_null) {
        map.insert("model".to_owned(), first()?.into());
    }
    Ok(parameters::read_fields(map)?.ask)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_text_unless_said_otherwise() {
        let read = |value: Value| text(value.to_string().as_bytes()).unwrap();
        let least = read(json!({"content": "", "model": null}));
        assert_eq!((least.model, least.start, least.specials), (None, Start::Bare, Specials::Text));
        assert_eq!(least.pieces, Pieces::Absent);
        let most = read(json!({
            "content": "x", "model": "m", "add_special": true, "parse_special": true, "with_pieces": true
        }));
        assert_eq!((most.start, most.specials, most.pieces), (Start::OfPrompt, Specials::Control, Pieces::Reported));
        assert_eq!(most.model.as_deref(), Some("m"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, param) in [
            (json!({}), "content"),
            (json!({"content": 1}), "content"),
            (json!({"content": "", "add_special": 1}), "add_special"),
            (json!({"content": "", "tokens": []}), "tokens"),
        ] {
            let error = text(body.to_string().as_bytes()).expect_err(&body.to_string());
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{body}");
        }
        for (body, param) in [
            (json!({}), "tokens"),
            (json!({"tokens": "1"}), "tokens"),
            (json!({"tokens": [1, null]}), "tokens[1]"),
            (json!({"tokens": [], "model": 1}), "model"),
        ] {
            let error = tokens(body.to_string().as_bytes()).expect_err(&body.to_string());
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{body}");
        }
        assert_eq!(known(&[0, 9], 10), Ok(()));
        let error = known(&[0, 10], 10).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("tokens[1]"));
        assert!(error.message.contains('9'), "{}", error.message);
    }

    #[test]
    fn a_conversation_may_leave_out_the_model() {
        let first = || Ok("first".to_owned());
        let messages = json!([{"role": "user", "content": "hi"}]);
        let name = |body: Value| conversation(body.to_string().as_bytes(), first).map(|ask| ask.model);
        assert_eq!(name(json!({"messages": messages})), Ok("first".to_owned()));
        assert_eq!(name(json!({"messages": messages, "model": null})), Ok("first".to_owned()));
        assert_eq!(name(json!({"messages": messages, "model": "m"})), Ok("m".to_owned()));
        assert_eq!(name(json!({})).unwrap_err().param.as_deref(), Some("messages"));
    }
}
