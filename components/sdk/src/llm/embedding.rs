//! Vectors and scores for whole texts.

use super::{Error, Model, Offer, Pooling, Token};
use crate::bindings::nala::llm::embedding;

impl Model {
    /// The vectors and scores that it offers. None: it gives neither.
    #[must_use]
    pub fn embeddings(&self) -> Option<Offer> {
        embedding::offers(&self.0)
    }
}

/// The most inputs of one call of [`embed`] or [`rank`].
#[must_use]
pub fn max_inputs() -> u32 {
    embedding::max_inputs()
}

/// One vector for each input, pooled as the model file says ([`Offer::pooling`]).
/// Their length is 1: the sum of the products of two of them is the cosine of their
/// angle.
///
/// ```
/// use nala_sdk::llm::{self, Error, Model};
///
/// /// Which of the texts is nearest to what is asked.
/// fn nearest(model: &Model, asked: &str, texts: &[String]) -> Result<Option<usize>, Error> {
///     let texts = std::iter::once(asked).chain(texts.iter().map(String::as_str));
///     let inputs = texts.map(|text| model.encode(text)).collect::<Result<Vec<_>, _>>()?;
///     let vectors = llm::embed(model, &inputs)?;
///     let Some((asked, texts)) = vectors.split_first() else { return Ok(None) };
///     let cosine = |text: &Vec<f32>| text.iter().zip(asked).map(|(x, y)| x * y).sum::<f32>();
///     let best = texts.iter().map(cosine).enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
///     Ok(best.map(|(index, _)| index))
/// }
/// ```
///
/// # Errors
/// [`Error::Unsupported`] for a model that gives no vectors, [`Error::ContextFull`]
/// with the most tokens of an input where one is too long ([`Offer::max_tokens`]),
/// [`Error::InvalidArgument`] for inputs that are empty or too many
/// ([`max_inputs`]), [`Error::Busy`] where too much waits for the component already.
pub fn embed(model: &Model, inputs: &[Vec<Token>]) -> Result<Vec<Vec<f32>>, Error> {
    embedding::embed(&model.0, inputs, None)
}

/// The same with a pooling of one's own.
///
/// # Errors
/// As [`embed`].
pub fn embed_with(model: &Model, inputs: &[Vec<Token>], pooling: Pooling) -> Result<Vec<Vec<f32>>, Error> {
    embedding::embed(&model.0, inputs, Some(pooling))
}

/// What the model's head says of each input: a question and a document, put together
/// as the model was trained for. One score each, or one a class
/// ([`Ranking::scores`](super::Ranking::scores)).
///
/// # Errors
/// As [`embed`]; [`Error::Unsupported`] for a model without such a head.
pub fn rank(model: &Model, inputs: &[Vec<Token>]) -> Result<Vec<Vec<f32>>, Error> {
    embedding::rank(&model.0, inputs)
}
