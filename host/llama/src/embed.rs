//! Embeddings: one vector for a text.
//!
//! They have a context of their own beside the one of the sequences, of the same
//! weights, made when the first is asked for and as long as the texts need. It holds
//! one text at a time. The vectors of tokens come from llama.cpp and are pooled here,
//! so that a text can be decoded in parts: llama.cpp gives the logits of every token
//! along with its vector, a row as long as the vocabulary.
//!
//! Parts give what the whole would, since only models are loaded whose tokens look
//! at those before them and at no others. What a classification head makes of a text
//! is computed by llama.cpp from one batch, so that cannot be divided.

use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use nala_engine::{BatchEntry, DecodeError, Embedding, EmbeddingInfo, Pooling, SeqId, Token};

use crate::batch::Batch;
use crate::context::{Context, Vectors};
use crate::options::LoadOptions;
use crate::threads::Cpus;

/// Tokens that are decoded at once where vectors are of tokens. Always so many,
/// whatever a step has room for: kernels give other last digits in batches of other
/// sizes, and a text's vector is to be the same whatever else is computed.
const PART: u32 = 32;

/// The fewest cells of a context. Longer texts get one of twice as many, and so on:
/// a context is made anew only when texts have become much longer.
const FEW_CELLS: u32 = 512;

/// Computes embeddings of one kind.
struct Embedder {
    context: Context,
    batch: Batch,
    of: Vectors,
    /// The most tokens that are decoded at once.
    part: u32,
    /// The longest text.
    cells: u32,
    /// The sum of the vectors of the text that was begun.
    pooled: Vec<f32>,
    /// How many tokens of it are computed.
    computed: u32,
}

impl Embedder {
    fn new(
        model: Arc<LlamaModel>,
        options: &LoadOptions,
        cpus: &Cpus,
        of: Vectors,
        cells: u32,
    ) -> Result<Self, String> {
        let part = match of {
            Vectors::OfTokens => PART.min(cells),
            // The head is given what the batch at hand holds.
            Vectors::OfTheHead => cells,
        };
        let context = Context::for_vectors(model, options, cpus, cells, part, of)?;
        let batch = Batch::new(part).ok_or("not enough memory for a batch")?;
        Ok(Self { context, batch, of, part, cells, pooled: Vec::new(), computed: 0 })
    }

    fn begin(&mut self, width: usize) {
        self.context.clear();
        self.pooled.clear();
        self.pooled.resize(width, 0.0);
        self.computed = 0;
    }

    /// Decodes the next tokens of a text.
    fn decode(&mut self, tokens: &[Token]) -> Result<(), DecodeError> {
        let entries: Vec<BatchEntry> = (self.computed..)
            .zip(tokens)
            .map(|(position, &token)| BatchEntry { token, position, seq: SeqId(0), logits: true })
            .collect();
        if !self.batch.fill(&entries) {
            return Err(failed("a part of a text is too long"));
        }
        self.context.decode(&self.batch).map_err(|(code, errors)| {
            DecodeError::Failed(format!("llama_decode returned {code} for an embedding: {errors}"))
        })
    }

    /// Goes on with the vector of a text by as many parts as hold `most` tokens, at
    /// least one.
    fn go_on(&mut self, input: &[Token], pooling: Pooling, most: u32) -> Result<Embedding, DecodeError> {
        let mut left = most.max(1);
        while left > 0 {
            let rest = input.get(self.computed as usize..).unwrap_or_default();
            let Some(part) = rest.chunks(self.part as usize).next() else { break };
            self.decode(part)?;
            for (index, position) in (0..).zip(self.computed..).take(part.len()) {
                let wanted = match pooling {
                    Pooling::Mean | Pooling::Rank => true,
                    Pooling::First => position == 0,
                    Pooling::Last => position as usize + 1 == input.len(),
                };
                if wanted {
                    let row = self.context.vector(index, self.pooled.len());
                    let row = row.ok_or_else(|| failed("llama.cpp gave no vector"))?;
                    self.pooled.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
            }
            let tokens = u32::try_from(part.len()).unwrap_or(u32::MAX);
            self.computed = self.computed.saturating_add(tokens);
            left = left.saturating_sub(tokens);
        }
        if (self.computed as usize) < input.len() {
            return Ok(Embedding::Part(self.computed));
        }
        self.computed = 0;
        // A mean of length 1 is a sum of length 1.
        let length = self.pooled.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        if !length.is_finite() || length == 0.0 {
            return Err(failed("the model computed a vector that has no direction"));
        }
        Ok(Embedding::Whole(self.pooled.iter().map(|x| (f64::from(*x) / length) as f32).collect()))
    }

    /// What the head makes of a text.
    fn scores(&mut self, input: &[Token], count: u32) -> Result<Embedding, DecodeError> {
        self.decode(input)?;
        let scores = self.context.scores(count as usize).ok_or_else(|| failed("llama.cpp gave no scores"))?;
        Ok(Embedding::Whole(scores.to_vec()))
    }
}

fn failed(text: &str) -> DecodeError {
    DecodeError::Failed(text.to_owned())
}

/// Makes embeddings when they are asked for.
pub(crate) struct Embeddings {
    model: Arc<LlamaModel>,
    options: LoadOptions,
    cpus: Cpus,
    info: Option<EmbeddingInfo>,
    /// The one that was used last: one context is kept, not one of each kind.
    embedder: Option<Embedder>,
}

impl Embeddings {
    pub(crate) fn new(model: Arc<LlamaModel>, options: &LoadOptions, cpus: Cpus, info: Option<EmbeddingInfo>) -> Self {
        Self { model, options: options.clone(), cpus, info, embedder: None }
    }

    /// See `Backend::embed_part`.
    pub(crate) fn embed_part(
        &mut self,
        input: &[Token],
        pooling: Pooling,
        computed: u32,
        most: u32,
        vocab: u32,
    ) -> Result<Embedding, DecodeError> {
        let Some(info) = self.info else {
            return Err(DecodeError::Unsupported("this model gives no embeddings; use another model for them".into()));
        };
        let Some(longest) = info.most(pooling) else {
            let text = "this model has no classification head, so it cannot rank; use a reranker model";
            return Err(DecodeError::Unsupported(text.into()));
        };
        let of = if pooling == Pooling::Rank { Vectors::OfTheHead } else { Vectors::OfTokens };
        if computed > 0 {
            let begun = self.embedder.as_mut().filter(|embedder| embedder.of == of && embedder.computed == computed);
            let begun = begun.filter(|_| (computed as usize) < input.len() && input.len() <= longest as usize);
            let Some(embedder) = begun else {
                return Err(DecodeError::InvalidBatch(format!("no embedding has come to {computed} tokens")));
            };
            return embedder.go_on(input, pooling, most);
        }
        check(input, longest, vocab).map_err(DecodeError::InvalidBatch)?;
        let wanted = u32::try_from(input.len()).unwrap_or(u32::MAX);
        let embedder = self.embedder(of, wanted, longest).map_err(DecodeError::Failed)?;
        embedder.begin(info.width as usize);
        match info.ranking.filter(|_| pooling == Pooling::Rank) {
            Some(ranking) => embedder.scores(input, ranking.scores),
            None => embedder.go_on(input, pooling, most),
        }
    }

    /// The one for texts of `wanted` tokens, where `longest` is the longest there are.
    fn embedder(&mut self, of: Vectors, wanted: u32, longest: u32) -> Result<&mut Embedder, String> {
        let fitting = self.embedder.take().filter(|embedder| embedder.of == of && embedder.cells >= wanted);
        let embedder = match fitting {
            Some(embedder) => embedder,
            None => {
                // The head's context is computed at once and has but one size.
                let cells = if of == Vectors::OfTheHead { longest } else { cells(wanted, longest) };
                Embedder::new(Arc::clone(&self.model), &self.options, &self.cpus, of, cells)?
            }
        };
        Ok(self.embedder.insert(embedder))
    }
}

/// Cells of a context for a text of `wanted` tokens.
fn cells(wanted: u32, longest: u32) -> u32 {
    wanted.checked_next_power_of_two().unwrap_or(longest).max(FEW_CELLS).min(longest)
}

fn check(input: &[Token], most: u32, vocab: u32) -> Result<(), String> {
    if input.is_empty() {
        return Err("an input is empty; leave it out".to_owned());
    }
    if input.len() > most as usize {
        return Err(format!("an input has {} tokens, but {most} is the most; split the text", input.len()));
    }
    match input.iter().find(|&&token| token >= vocab) {
        Some(token) => Err(format!("an input has token {token} of a vocabulary of {vocab}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_as_long_as_texts_need() {
        let of = |wanted| cells(wanted, 3000);
        assert_eq!([of(1), of(512), of(513), of(1024), of(2049), of(3000)], [512, 512, 1024, 1024, 3000, 3000]);
        assert_eq!(cells(40, 40), 40);
    }
}
