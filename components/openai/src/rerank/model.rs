//! The host's models as what judges documents.

use nala_sdk::http;
use nala_sdk::llm::{self, Model, Ranking, Token};

use super::{Scorer, read, write};
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
    fn pair(&self, query: &str, document: &str) -> Result<Vec<Token>, ApiError> {
        let model = &self.model;
        if let Some(template) = model.metadata("tokenizer.chat_template.rerank") {
            return templated(model, &template, query, document);
        }
        let end = || end(model).filter(|_| says(model, "tokenizer.ggml.add_eos_token"));
        let separator = || {
            // The key is misspelt in the format itself.
            let id = model.metadata("tokenizer.ggml.seperator_token_id")?;
            id.parse::<Token>().ok().filter(|_| says(model, "tokenizer.ggml.add_sep_token"))
        };
        let mut tokens = Vec::new();
        tokens.extend(model.bos_token().filter(|_| model.adds_bos()));
        tokens.extend(model.encode(query)?);
        tokens.extend(end());
        tokens.extend(separator());
        tokens.extend(model.encode(document)?);
        tokens.extend(end());
        Ok(tokens)
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
fn templated(model: &Model, template: &str, query: &str, document: &str) -> Result<Vec<Token>, ApiError> {
    let mut tokens = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        tokens.extend(model.encode_template(before)?);
        let (text, length) = match from {
            _ if from.starts_with("{query}") => (model.encode(query)?, "{query}".len()),
            _ if from.starts_with("{document}") => (model.encode(document)?, "{document}".len()),
            _ => (model.encode_template("{")?, 1),
        };
        tokens.extend(text);
        rest = from.get(length..).unwrap_or_default();
    }
    tokens.extend(model.encode_template(rest)?);
    Ok(tokens)
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
