//! `POST /v1/embeddings`: vectors of texts.
//!
//! What makes the vectors is an [`Embedder`]: the host's models, in [`respond`].
//!
//! Vectors have the length 1 (L2). `dimensions` may only be the model's own width: to
//! cut a vector is sound for models that were trained for it, and which were cannot be
//! seen.

mod base64;
mod model;
mod parameters;
mod write;

use nala_sdk::llm::Token;

use crate::error::ApiError;

pub use model::respond;
pub(crate) use model::{calls, end, says};
pub use parameters::{Form, MAX_INPUTS, OTHER, READ};
pub use write::write;

use parameters::Input;

/// A model that gives a vector for a text.
pub trait Embedder {
    /// How many numbers a vector has.
    fn width(&self) -> u32;

    /// The longest text, in tokens.
    fn longest(&self) -> u32;

    /// Entries of the vocabulary.
    fn vocabulary(&self) -> u32;

    /// The tokens of a text, with those that the model wants around it.
    ///
    /// # Errors
    /// For a text that cannot be expressed.
    fn tokens(&self, text: &str) -> Result<Vec<Token>, ApiError>;

    /// A vector for each text, in their order and of any length but 0.
    ///
    /// # Errors
    /// Whatever the model fails with.
    fn embed(&self, texts: Vec<Vec<Token>>) -> Result<Vec<Vec<f32>>, ApiError>;
}

/// A checked request for vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The name of the model.
    pub model: String,
    inputs: Vec<Input>,
    /// How numbers are written.
    pub form: Form,
    dimensions: Option<u32>,
}

/// Vectors and what they cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    /// One for each input, of length 1.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all inputs.
    pub tokens: u64,
}

/// Reads and checks the body of a request.
///
/// # Errors
/// 400, with the position where it does not parse or the parameter that is wrong.
pub fn read(body: &[u8]) -> Result<Request, ApiError> {
    parameters::read(body)
}

impl Request {
    /// Has the vectors made.
    ///
    /// # Errors
    /// 400 for what the model cannot do or what is too long for it, and whatever the
    /// model fails with.
    pub fn run(self, model: &impl Embedder) -> Result<Vectors, ApiError> {
        let width = model.width();
        if let Some(dimensions) = self.dimensions.filter(|dimensions| *dimensions != width) {
            let message = format!(
                "'dimensions' is {dimensions}, but the model's vectors have {width} and are not cut; leave it out or \
                 send {width}"
            );
            return Err(ApiError::invalid("dimensions", message));
        }
        let single = self.inputs.len() == 1;
        let place = |index: usize| if single { "input".to_owned() } else { format!("input[{index}]") };
        let mut texts = Vec::with_capacity(self.inputs.len());
        for (index, input) in self.inputs.into_iter().enumerate() {
            texts.push(tokens(input, &place(index), model)?);
        }
        let count = texts.iter().map(|text| text.len() as u64).sum();
        let expected = texts.len();
        let mut vectors = model.embed(texts)?;
        if vectors.len() != expected {
            let message = format!("{expected} vectors were asked for, and {} came", vectors.len());
            return Err(nala_sdk::llm::Error::Backend(message).into());
        }
        for vector in &mut vectors {
            normalise(vector)?;
        }
        Ok(Vectors { vectors, tokens: count })
    }
}

fn tokens(input: Input, at: &str, model: &impl Embedder) -> Result<Vec<Token>, ApiError> {
    let tokens = match input {
        Input::Text(text) => model.tokens(&text)?,
        Input::Tokens(tokens) => match tokens.iter().find(|token| **token >= model.vocabulary()) {
            None => tokens,
            Some(token) => {
                let last = model.vocabulary().saturating_sub(1);
                return Err(ApiError::invalid(at, format!("'{at}' has token {token}, but the model's last is {last}")));
            }
        },
    };
    match u32::try_from(tokens.len()) {
        Ok(length) if length <= model.longest() => Ok(tokens),
        _ => Err(ApiError::context_length(at, tokens.len(), model.longest())),
    }
}

/// Brings a vector to the length 1.
fn normalise(vector: &mut [f32]) -> Result<(), ApiError> {
    // In double precision: squares of small numbers would vanish.
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return Err(nala_sdk::llm::Error::Backend("the model gave a vector without a direction".to_owned()).into());
    }
    #[allow(clippy::cast_possible_truncation, reason = "the answer is in single precision")]
    for value in vector {
        *value = (f64::from(*value) / length) as f32;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A token a byte; the vector is the length of the text, and its first token.
    struct Bytes;

    impl Embedder for Bytes {
        fn width(&self) -> u32 {
            2
        }
        fn longest(&self) -> u32 {
            4
        }
        fn vocabulary(&self) -> u32 {
            256
        }
        fn tokens(&self, text: &str) -> Result<Vec<Token>, ApiError> {
            Ok(text.bytes().map(Token::from).collect())
        }
        fn embed(&self, texts: Vec<Vec<Token>>) -> Result<Vec<Vec<f32>>, ApiError> {
            Ok(texts.iter().map(|text| vec![text.len() as f32, text[0] as f32]).collect())
        }
    }

    fn run(more: Value) -> Result<Vectors, ApiError> {
        let mut body = json!({"model": "m"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(body.to_string().as_bytes())?.run(&Bytes)
    }

    #[test]
    fn each_input_has_its_vector_of_length_one() {
        let vectors = run(json!({"input": [[4, 1, 1], [0]], "dimensions": 2})).unwrap();
        assert_eq!(vectors, Vectors { vectors: vec![vec![0.6, 0.8], vec![1.0, 0.0]], tokens: 4 });
        assert_eq!(run(json!({"input": "\u{1}"})).unwrap().tokens, 1);
    }

    #[test]
    fn what_the_model_cannot_do_is_refused() {
        for (more, param, said) in [
            (json!({"input": "aaaaa"}), "input", "5 tokens, but only 4 fit"),
            (json!({"input": ["a", "aaaaa"]}), "input[1]", "only 4 fit"),
            (json!({"input": [1, 1, 1, 1, 1]}), "input", "only 4 fit"),
            (json!({"input": [256]}), "input", "last is 255"),
            (json!({"input": "a", "dimensions": 1}), "dimensions", "send 2"),
        ] {
            let error = run(more.clone()).expect_err(&more.to_string());
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{more}");
            assert!(error.message.contains(said), "{}", error.message);
        }
    }

    #[test]
    fn a_vector_without_a_direction_is_an_error() {
        for mut vector in [vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY]] {
            assert_eq!(normalise(&mut vector).unwrap_err().status, 500);
        }
        let mut tiny = vec![1e-30, 0.0];
        assert!(normalise(&mut tiny).is_ok());
        assert_eq!(tiny, [1.0, 0.0]);
    }
}
