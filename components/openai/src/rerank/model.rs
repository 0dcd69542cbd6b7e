//! The host's models as what judges documents.

use nala_sdk::http;
use nala_sdk::llm::{self, Model, Ranking, Token};

use super::{Frame, Piece, Scorer, read, write};
use crate::begin;
use crate::embeddings::{calls, end, says};
use crate::error::ApiError;

/// A model with a head for ranking.
struct Head {
    model: Model,
    ranking: Ranking,
}

impl Scorer for Head {
    fn longest(&self) -> u32 {
        self.ranking.max_tokens
    }

    /// By the template for it where the model file has one, else as encoders were
    /// trained: beginning, query, end, separator, document, end, each control token as
    /// far as the model file wants it (llama.cpp, `format_prompt_rerank`).
    fn frame(&self, query: &str) -> Result<Frame, ApiError> {
        let model = &self.model;
        if let Some(template) = model.metadata("tokenizer.chat_template.rerank") {
            return templated(model, &template, query);
        }
        let end = end(model).filter(|_| says(model, "tokenizer.ggml.add_eos_token"));
        // The key is misspelt in the format itself.
        let separator = model.metadata("tokenizer.ggml.seperator_token_id").and_then(|id| id.parse::<Token>().ok());
        let mut before = Vec::new();
        before.extend(model.bos_token().filter(|_| model.adds_bos()));
        before.extend(model.encode(query)?);
        before.extend(end);
        before.extend(separator.filter(|_| says(model, "tokenizer.ggml.add_sep_token")));
        Ok(Frame(vec![Piece::Tokens(before), Piece::Document, Piece::Tokens(end.into_iter().collect())]))
    }

    fn document(&self, text: &str) -> Result<Vec<Token>, ApiError> {
        Ok(self.model.encode(text)?)
    }

    fn score(&self, pairs: Vec<Vec<Token>>) -> Result<Vec<f32>, ApiError> {
        let mut scores = Vec::with_capacity(pairs.len());
        for call in calls(&pairs) {
            // Of several classes the first one is "it answers".
            scores.extend(llm::rank(&self.model, call)?.iter().filter_map(|classes| classes.first()));
        }
        Ok(scores)
    }
}

/// The template's own text may name control tokens, the rest may not.
fn templated(model: &Model, template: &str, query: &str) -> Result<Frame, ApiError> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        pieces.push(Piece::Tokens(model.encode_template(before)?));
        let (piece, length) = match from {
            _ if from.starts_with("{query}") => (Piece::Tokens(model.encode(query)?), "{query}".len()),
            _ if from.starts_with("{document}") => (Piece::Document, "{document}".len()),
            _ => (Piece::Tokens(model.encode_template("{")?), 1),
        };
        pieces.push(piece);
        rest = from.get(length..).unwrap_or_default();
    }
    pieces.push(Piece::Tokens(model.encode_template(rest)?));
    Ok(Frame(pieces))
}

/// Answers a request.
///
/// # Errors
/// [`ApiError`]; 400 for a model without a head for ranking.
pub fn respond(request: http::Request) -> Result<http::Response, ApiError> {
    let request = read(&request.bytes()?)?;
    let model = begin::open(&request.model)?;
    let Some(ranking) = model.embeddings().and_then(|offer| offer.ranking) else {
        let message = format!("the model '{}' has no head that ranks documents; send one that does", request.model);
        return Err(ApiError::unsupported("model", message));
    };
    let ordered = request.run(&Head { model, ranking })?;
    Ok(http::Response::new(200, "application/json", write(&request, &ordered)))
}
