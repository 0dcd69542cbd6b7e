//! What a text or a conversation is to a model, by the routes of llama.cpp's server:
//! `POST /tokenize`, `POST /detokenize`, `POST /apply-template` and
//! `POST /v1/chat/completions/input_tokens`.
//!
//! All take an optional `model`, and else the first that is available. One thing differs
//! from llama.cpp: `parse_special` is false if not given, so that `/tokenize` says what
//! becomes of a user's text, in which control tokens are text.

mod parameters;
mod write;

use nala_sdk::chat::{self, Origin, Piece};
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{Model, Token};
use serde_json::json;

use crate::begin;
use crate::error::ApiError;
use parameters::{Specials, Start, Text};

pub use parameters::{DETOKENIZE, TOKENIZE};

/// `POST /tokenize`: the tokens of a text.
///
/// # Errors
/// 400 for a request that is malformed, 404 and 503 for the model.
pub fn tokenize(request: Request) -> Result<Response, ApiError> {
    let text = parameters::text(&request.bytes()?)?;
    let model = open(text.model.as_deref())?;
    let tokens = tokens_of(&model, &text)?;
    let body = write::tokens(&tokens, text.pieces, |token| model.decode(&[token]).unwrap_or_default());
    Ok(Response::new(200, "application/json", body))
}

/// `POST /detokenize`: the text of tokens.
///
/// # Errors
/// As [`tokenize`].
pub fn detokenize(request: Request) -> Result<Response, ApiError> {
    let (name, tokens) = parameters::tokens(&request.bytes()?)?;
    let model = open(name.as_deref())?;
    parameters::known(&tokens, model.info().n_vocab)?;
    let bytes = model.decode(&tokens)?;
    let body = json!({ "content": String::from_utf8_lossy(&bytes) });
    Ok(Response::new(200, "application/json", body.to_string()))
}

/// `POST /apply-template`: the prompt that a chat completion would be made from.
///
/// # Errors
/// As a chat completion, up to where it would begin.
pub fn apply_template(request: Request) -> Result<Response, ApiError> {
    let body = json!({ "prompt": written(request)?.text });
    Ok(Response::new(200, "application/json", body.to_string()))
}

/// `POST /v1/chat/completions/input_tokens`: how many tokens that prompt has.
///
/// # Errors
/// As [`apply_template`].
pub fn input_tokens(request: Request) -> Result<Response, ApiError> {
    let body = json!({ "object": "response.input_tokens", "input_tokens": written(request)?.tokens.len() });
    Ok(Response::new(200, "application/json", body.to_string()))
}

/// Opens the model of that name, or else the first.
pub(crate) fn open(name: Option<&str>) -> Result<Model, ApiError> {
    match name {
        Some(name) => begin::open(name),
        None => begin::open(&first()?),
    }
}

/// The model that is meant where none is named.
fn first() -> Result<String, ApiError> {
    Model::available().into_iter().next().ok_or_else(|| ApiError::model_not_found("", &[]))
}

/// The prompt of a request that is one for a chat completion, but for the model's name.
fn written(request: Request) -> Result<begin::Written, ApiError> {
    let ask = parameters::conversation(&request.bytes()?, first)?;
    let model = begin::open(&ask.model)?;
    begin::write(&model, &model.info(), &ask)
}

fn tokens_of(model: &Model, text: &Text) -> Result<Vec<Token>, ApiError> {
    let origin = match text.specials {
        Specials::Text => Origin::User,
        Specials::Control => Origin::Template,
    };
    let piece = Piece { origin, text: text.content.clone() };
    // As the beginning of a prompt: some vocabularies put a space there.
    let mut tokens = chat::encode(model, &[piece])?;
    if text.start == Start::Bare && model.adds_bos() && tokens.first().copied() == model.bos_token() {
        let own = match text.specials {
            Specials::Text => None,
            Specials::Control => model.encode_template(&text.content)?.first().copied(),
        };
        // Unless it was written there, it was added.
        if own != model.bos_token() {
            tokens.remove(0);
        }
    }
    Ok(tokens)
}
