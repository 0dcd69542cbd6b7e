//! The answer to a request for an order.

use serde_json::{Value, json};

use super::{Ranking, Request};

/// Whether the texts of documents are in the answer (`return_documents`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Documents {
    /// They are, as objects with a `text`.
    Returned,
    /// The places in the request must do.
    Absent,
}

/// Writes the documents that are named, the best first.
#[must_use]
pub fn write(request: &Request, ranking: &Ranking) -> Vec<u8> {
    let result = |(index, score): &(usize, f32)| {
        let mut result = json!({"index": index, "relevance_score": score});
        let text = request.documents.get(*index).filter(|_| request.returned == Documents::Returned);
        if let (Some(text), Value::Object(fields)) = (text, &mut result) {
            fields.insert("document".to_owned(), json!({ "text": text }));
        }
        result
    };
    json!({
        "model": request.model,
        "object": "list",
        "usage": {"prompt_tokens": ranking.tokens, "total_tokens": ranking.tokens},
        "results": ranking.ranks.iter().map(result).collect::<Vec<_>>(),
    })
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_named_by_their_place_and_with_their_text_if_wanted() {
        let mut request = Request {
            model: "m".to_owned(),
            query: "q".to_owned(),
            documents: vec!["a".to_owned(), "b".to_owned()],
            top: 2,
            returned: Documents::Returned,
        };
        let ranking = Ranking { ranks: vec![(1, 0.5), (0, -2.0)], tokens: 9 };
        let body: Value = serde_json::from_slice(&write(&request, &ranking)).unwrap();
        assert_eq!(
            body,
            json!({
                "model": "m", "object": "list", "usage": {"prompt_tokens": 9, "total_tokens": 9},
                "results": [
                    {"index": 1, "relevance_score": 0.5, "document": {"text": "b"}},
                    {"index": 0, "relevance_score": -2.0, "document": {"text": "a"}},
                ],
            })
        );
        request.returned = Documents::Absent;
        assert!(!String::from_utf8(write(&request, &ranking)).unwrap().contains("document"));
    }
}
