//! `POST /v1/rerank` (also `/rerank`, `/v1/reranking`, `/reranking`): how well documents
//! answer a query, the best first. The shape is the one that Jina, Cohere and llama.cpp's
//! server share.
//!
//! What judges is a [`Scorer`]: the host's models that have a head for it, in
//! [`respond`].

mod model;
mod parameters;
mod write;

use nala_sdk::llm::Token;

use crate::error::ApiError;

pub use model::respond;
pub use parameters::{MAX_DOCUMENTS, READ};
pub use write::{Documents, write};

/// A model that judges whether a document answers a query.
pub trait Scorer {
    /// The longest pair, in tokens.
    fn longest(&self) -> u32;

    /// What the model wants around a document that is to answer a query.
    ///
    /// # Errors
    /// For a text that cannot be expressed.
    fn frame(&self, query: &str) -> Result<Frame, ApiError>;

    /// The tokens of a document.
    ///
    /// # Errors
    /// As [`Scorer::frame`].
    fn document(&self, text: &str) -> Result<Vec<Token>, ApiError>;

    /// A score for each pair, in their order: the higher the better.
    ///
    /// # Errors
    /// Whatever the model fails with.
    fn score(&self, pairs: Vec<Vec<Token>>) -> Result<Vec<f32>, ApiError>;
}

/// What stands around a document, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame(pub Vec<Piece>);

/// A piece of what is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The same for all documents.
    Tokens(Vec<Token>),
    /// The document.
    Document,
}

impl Frame {
    fn around(&self, document: &[Token]) -> Vec<Token> {
        let tokens = |piece| match piece {
            &Piece::Document => document,
            Piece::Tokens(tokens) => tokens,
        };
        self.0.iter().flat_map(tokens).copied().collect()
    }
}

/// A checked request for an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The name of the model.
    pub model: String,
    /// What the documents should answer.
    pub query: String,
    /// The documents.
    pub documents: Vec<String>,
    /// How many to name, the best ones.
    pub top: usize,
    /// Whether their texts are in the answer.
    pub returned: Documents,
}

/// Documents in their order and what that cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The places that they had in the request, with their scores, the best first.
    pub ranks: Vec<(usize, f32)>,
    /// Tokens of all pairs.
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
    /// Has the documents judged, and orders them. Of equals the earlier one is first.
    ///
    /// # Errors
    /// 400 for a document that is too long, and whatever the model fails with.
    pub fn run(&self, model: &impl Scorer) -> Result<Ranking, ApiError> {
        let frame = model.frame(&self.query)?;
        let mut pairs = Vec::with_capacity(self.documents.len());
        for (index, document) in self.documents.iter().enumerate() {
            let pair = frame.around(&model.document(document)?);
            if u32::try_from(pair.len()).is_ok_and(|length| length <= model.longest()) {
                pairs.push(pair);
            } else {
                let mut error = ApiError::context_length(&format!("documents[{index}]"), pair.len(), model.longest());
                error.message = format!("together with the query {}", error.message);
                return Err(error);
            }
        }
        let tokens = pairs.iter().map(|pair| pair.len() as u64).sum();
        let scores = model.score(pairs)?;
        if scores.len() != self.documents.len() || scores.iter().any(|score| !score.is_finite()) {
            return Err(nala_sdk::llm::Error::Backend("the model did not judge every document".to_owned()).into());
        }
        let mut ranks: Vec<(usize, f32)> = scores.into_iter().enumerate().collect();
        ranks.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranks.truncate(self.top);
        Ok(Ranking { ranks, tokens })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A token a byte; a document is as good as its first byte is high.
    struct Bytes;

    impl Scorer for Bytes {
        fn longest(&self) -> u32 {
            6
        }
        fn frame(&self, query: &str) -> Result<Frame, ApiError> {
            Ok(Frame(vec![Piece::Document, Piece::Tokens(self.document(query)?)]))
        }
        fn document(&self, text: &str) -> Result<Vec<Token>, ApiError> {
            Ok(text.bytes().map(Token::from).collect())
        }
        fn score(&self, pairs: Vec<Vec<Token>>) -> Result<Vec<f32>, ApiError> {
            Ok(pairs.iter().map(|pair| if pair[0] == 63 { f32::NAN } else { pair[0] as f32 }).collect())
        }
    }

    fn run(more: Value) -> Result<Ranking, ApiError> {
        let mut body = json!({"model": "m", "query": "q"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(body.to_string().as_bytes())?.run(&Bytes)
    }

    #[test]
    fn the_best_are_first_and_equals_keep_their_order() {
        let ranking = run(json!({"documents": ["b", "d", "b", "a"]})).unwrap();
        assert_eq!(ranking.ranks, [(1, 100.0), (0, 98.0), (2, 98.0), (3, 97.0)]);
        assert_eq!(ranking.tokens, 8);
        let best = run(json!({"documents": ["b", {"text": "d"}, "b"], "top_n": 1})).unwrap();
        assert_eq!((best.ranks, best.tokens), (vec![(1, 100.0)], 6));
        assert_eq!(run(json!({"documents": ["b"], "top_n": 9})).unwrap().ranks.len(), 1);
    }

    #[test]
    fn a_document_that_is_too_long_is_named() {
        let error = run(json!({"documents": ["b", "dddddd"]})).unwrap_err();
        assert_eq!((error.status, error.param.as_deref()), (400, Some("documents[1]")));
        assert!(error.message.contains("7 tokens, but only 6 fit"), "{}", error.message);
    }

    #[test]
    fn what_is_not_judged_is_an_error() {
        assert_eq!(run(json!({"documents": ["?"]})).unwrap_err().status, 500);
    }
}
