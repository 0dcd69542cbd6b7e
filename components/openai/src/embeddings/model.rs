//! The host's models as what makes vectors.

use nala_sdk::http;
use nala_sdk::llm::{self, Model, Offer, Token};

use super::{Embedder, Request, read, write};
use crate::begin;
use crate::error::ApiError;

/// The most tokens of one call of the host.
const CALL_TOKENS: usize = 1 << 19;

/// A model that gives vectors.
struct Vectors {
    model: Model,
    offer: Offer,
}

impl Embedder for Vectors {
    fn width(&self) -> u32 {
        self.offer.width
    }

    fn longest(&self) -> u32 {
        self.offer.max_tokens
    }

    fn vocabulary(&self) -> u32 {
        self.model.info().n_vocab
    }

    /// With a token at the beginning and one at the end where the model file says so,
    /// as llama.cpp tokenises what it embeds.
    fn tokens(&self, text: &str) -> Result<Vec<Token>, ApiError> {
        let mut tokens = Vec::new();
        tokens.extend(self.model.bos_token().filter(|_| self.model.adds_bos()));
        tokens.extend(self.model.encode(text)?);
        tokens.extend(end(&self.model).filter(|_| says(&self.model, "tokenizer.ggml.add_eos_token")));
        Ok(tokens)
    }

    fn embed(&self, texts: Vec<Vec<Token>>) -> Result<Vec<Vec<f32>>, ApiError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for call in calls(&texts) {
            vectors.extend(llm::embed(&self.model, call)?);
        }
        Ok(vectors)
    }
}

/// The token that ends a text.
pub(crate) fn end(model: &Model) -> Option<Token> {
    let named = model.metadata("tokenizer.ggml.eos_token_id").and_then(|id| id.parse().ok());
    named.or_else(|| model.end_tokens().first().copied())
}

/// Whether the model file says yes to something.
pub(crate) fn says(model: &Model, key: &str) -> bool {
    model.metadata(key).is_some_and(|value| value == "true")
}

/// Cuts a list into what one call of the host takes each.
pub(crate) fn calls(mut texts: &[Vec<Token>]) -> Vec<&[Vec<Token>]> {
    let most = usize::try_from(llm::max_inputs()).unwrap_or(usize::MAX);
    let mut calls = Vec::new();
    while !texts.is_empty() {
        let mut tokens = 0;
        let fits = texts.iter().take(most).take_while(|text| {
            tokens += text.len();
            tokens <= CALL_TOKENS
        });
        // A single one that is too long is the host's to refuse.
        let (call, rest) = texts.split_at(fits.count().max(1));
        calls.push(call);
        texts = rest;
    }
    calls
}

/// Answers a request.
///
/// # Errors
/// [`ApiError`]; 400 for a model that gives no vectors.
pub fn respond(request: http::Request) -> Result<http::Response, ApiError> {
    let request = read(&request.bytes()?)?;
    let model = begin::open(&request.model)?;
    let Some(offer) = model.embeddings() else {
        let message = format!("the model '{}' gives no vectors of texts", request.model);
        return Err(ApiError::unsupported("model", message));
    };
    refuse_what_is_too_much(&request, &offer)?;
    let (name, form) = (request.model.clone(), request.form);
    let vectors = request.run(&Vectors { model, offer })?;
    Ok(http::Response::new(200, "application/json", write(&name, form, &vectors)))
}

/// Refuses more vectors than this component has memory to write: about 25 bytes a
/// number, of which the answer's text has most.
fn refuse_what_is_too_much(request: &Request, offer: &Offer) -> Result<(), ApiError> {
    const NUMBER_BYTES: u64 = 25;
    let most = llm::limits().memory_bytes / 2 / (u64::from(offer.width).max(1) * NUMBER_BYTES);
    let count = request.inputs.len();
    if count as u64 <= most.max(1) {
        return Ok(());
    }
    let message =
        format!("'input' has {count} texts, but vectors of {} numbers fit for {most}; send fewer", offer.width);
    Err(ApiError::invalid("input", message))
}
