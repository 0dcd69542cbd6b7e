//! Embeddings: one vector for a text.
//!
//! They have a context of their own beside the one of the sequences, of the same
//! weights, made when the first is asked for. It holds one text at a time. The
//! vectors of tokens come from llama.cpp and are pooled here, so that a text can
//! be decoded in parts: llama.cpp gives the logits of every token along with its
//! vector, a row as long as the vocabulary.

use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use nala_engine::{BatchEntry, DecodeError, EmbeddingInfo, Pooling, SeqId, Token};

use crate::batch::Batch;
use crate::context::{Context, Vectors};
use crate::options::LoadOptions;

/// Tokens that are decoded at once where vectors are of tokens.
const PART: u32 = 32;

/// Computes embeddings of one kind.
pub(crate) struct Embedder {
    context: Context,
    batch: Batch,
    of: Vectors,
    /// The most tokens that are decoded at once.
    part: u32,
    info: EmbeddingInfo,
}

impl Embedder {
    fn new(model: Arc<LlamaModel>, options: &LoadOptions, info: EmbeddingInfo, of: Vectors) -> Result<Self, String> {
        let part = match of {
            Vectors::OfTokens => PART.min(info.max_tokens),
            // The head is given what the batch at hand holds.
            Vectors::OfTheHead => info.max_tokens,
        };
        let context = Context::for_vectors(model, options, part, of)?;
        let batch = Batch::new(part).ok_or("not enough memory for a batch")?;
        Ok(Self { context, batch, of, part, info })
    }

    /// The vector of one text.
    fn vector(&mut self, input: &[Token], pooling: Pooling) -> Result<Vec<f32>, DecodeError> {
        let failed = |text: &str| DecodeError::Failed(text.to_owned());
        self.context.clear();
        let width = self.info.width as usize;
        let mut pooled = vec![0.0_f32; width];
        let mut position = 0;
        for part in input.chunks(self.part as usize) {
            let entries: Vec<BatchEntry> = (position..)
                .zip(part)
                .map(|(position, &token)| BatchEntry { token, position, seq: SeqId(0), logits: true })
                .collect();
            if !self.batch.fill(&entries) {
                return Err(failed("a part of a text is too long"));
            }
            self.context.decode(&self.batch).map_err(|(code, errors)| {
                DecodeError::Failed(format!("llama_decode returned {code} for an embedding: {errors}"))
            })?;
            if self.of == Vectors::OfTheHead {
                let count = self.info.scores.unwrap_or(0) as usize;
                let scores = self.context.scores(count).ok_or_else(|| failed("llama.cpp gave no scores"))?;
                return Ok(scores.to_vec());
            }
            for (index, position) in (0..).zip(position..).take(part.len()) {
                let ends = position as usize + 1 == input.len();
                let wanted = match pooling {
                    Pooling::Mean | Pooling::Rank => true,
                    Pooling::First => position == 0,
                    Pooling::Last => ends,
                };
                if wanted {
                    let row = self.context.vector(index, width).ok_or_else(|| failed("llama.cpp gave no vector"))?;
                    pooled.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
            }
            position += u32::try_from(part.len()).unwrap_or(0);
        }
        // A mean of length 1 is a sum of length 1.
        let length = pooled.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        if !length.is_finite() || length == 0.0 {
            return Err(failed("the model computed a vector that has no direction"));
        }
        pooled.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
        Ok(pooled)
    }
}

/// Makes embeddings when they are asked for.
pub(crate) struct Embeddings {
    model: Arc<LlamaModel>,
    options: LoadOptions,
    info: Option<EmbeddingInfo>,
    /// The one that was used last: one context is kept, not one of each kind.
    embedder: Option<Embedder>,
}

impl Embeddings {
    pub(crate) fn new(model: Arc<LlamaModel>, options: &LoadOptions, info: Option<EmbeddingInfo>) -> Self {
        Self { model, options: options.clone(), info, embedder: None }
    }

    /// See `Backend::embed`.
    pub(crate) fn embed(
        &mut self,
        inputs: &[Vec<Token>],
        pooling: Pooling,
        vocab: u32,
    ) -> Result<Vec<Vec<f32>>, DecodeError> {
        let Some(info) = self.info else {
            return Err(DecodeError::Unsupported("this model gives no embeddings; use another model for them".into()));
        };
        if pooling == Pooling::Rank && info.scores.is_none() {
            let text = "this model has no classification head, so it cannot rank; use a reranker model";
            return Err(DecodeError::Unsupported(text.into()));
        }
        for (index, input) in inputs.iter().enumerate() {
            check(index, input, info.max_tokens, vocab).map_err(DecodeError::InvalidBatch)?;
        }
        let of = if pooling == Pooling::Rank { Vectors::OfTheHead } else { Vectors::OfTokens };
        let mut embedder = match self.embedder.take().filter(|embedder| embedder.of == of) {
            Some(embedder) => embedder,
            None => Embedder::new(Arc::clone(&self.model), &self.options, info, of).map_err(DecodeError::Failed)?,
        };
        let vectors = inputs.iter().map(|input| embedder.vector(input, pooling)).collect();
        self.embedder = Some(embedder);
        vectors
    }
}

fn check(index: usize, input: &[Token], most: u32, vocab: u32) -> Result<(), String> {
    if input.is_empty() {
        return Err(format!("input {index} is empty; leave it out"));
    }
    if input.len() > most as usize {
        return Err(format!(
            "input {index} has {} tokens, but {most} is the most for an embedding; split the text",
            input.len()
        ));
    }
    match input.iter().find(|&&token| token >= vocab) {
        Some(token) => Err(format!("input {index} has token {token} of a vocabulary of {vocab}")),
        None => Ok(()),
    }
}
