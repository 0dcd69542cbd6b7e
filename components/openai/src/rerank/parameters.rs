//! The parameters of a request for an order.

use serde_json::Value;

use super::{Documents, Request};
use crate::brief::brief;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::parameters::policy::{self, Names};

/// The most documents of a request.
pub const MAX_DOCUMENTS: usize = 1024;

/// The parameters that are read.
pub const READ: Names = &[&["model", "query", "documents", "top_n", "return_documents"]];

const WHAT: &str = "a list of at least one string or object with a 'text'";

pub(super) fn read(body: &[u8]) -> Result<Request, ApiError> {
    let map = policy::given(body, READ, &[])?;
    let fields = Fields(&map);
    let documents = documents(map.get("documents"))?;
    let query = fields.text("query")?.ok_or_else(|| ApiError::missing("query", "a string"))?;
    if query.is_empty() {
        return Err(ApiError::invalid("query", "'query' is empty; it must have at least one character"));
    }
    let top = fields.integer("top_n", 1, u64::MAX)?;
    Ok(Request {
        model: fields.text("model")?.ok_or_else(|| ApiError::missing("model", "the name of a model"))?,
        query,
        top: top.map_or(documents.len(), |top| usize::try_from(top).unwrap_or(usize::MAX)),
        documents,
        returned: match fields.boolean("return_documents")? {
            Some(true) => Documents::Returned,
            _ => Documents::Absent,
        },
    })
}

fn documents(value: Option<&Value>) -> Result<Vec<String>, ApiError> {
    let value = value.ok_or_else(|| ApiError::missing("documents", WHAT))?;
    let list = match value {
        Value::Array(list) if list.len() > MAX_DOCUMENTS => {
            let message = format!("'documents' has {} texts, but at most {MAX_DOCUMENTS} are allowed", list.len());
            return Err(ApiError::invalid("documents", message));
        }
        Value::Array(list) if !list.is_empty() => list,
        other => return Err(Fields::wrong("documents", WHAT, other)),
    };
    list.iter().enumerate().map(|(index, value)| one(value, &format!("documents[{index}]"))).collect()
}

/// A document. What an object says beside its text is not judged, and clients put what
/// they like there.
fn one(value: &Value, at: &str) -> Result<String, ApiError> {
    let text = match value {
        Value::Object(fields) => fields.get("text"),
        other => Some(other),
    };
    match text {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => {
            let message = format!("'{at}' must be a string or an object with a 'text', not {}", brief(value));
            Err(ApiError::invalid(at, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_strings_or_objects() {
        let body = json!({"model": "m", "query": "q", "documents": ["a", {"text": "b", "id": 3}], "top_n": null});
        let request = read(body.to_string().as_bytes()).unwrap();
        assert_eq!((request.documents, request.top), (vec!["a".to_owned(), "b".to_owned()], 2));
        assert_eq!(request.returned, Documents::Absent);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, param) in [
            (json!({"documents": null}), "documents"),
            (json!({"documents": []}), "documents"),
            (json!({"documents": "a"}), "documents"),
            (json!({"documents": vec!["a"; 1025]}), "documents"),
            (json!({"documents": ["a", 1]}), "documents[1]"),
            (json!({"documents": [{"txt": "a"}]}), "documents[0]"),
            (json!({"query": null}), "query"),
            (json!({"query": ""}), "query"),
            (json!({"query": 1}), "query"),
            (json!({"model": null}), "model"),
            (json!({"top_n": 0}), "top_n"),
            (json!({"return_documents": "yes"}), "return_documents"),
            (json!({"texts": ["a"]}), "texts"),
        ] {
            let mut body = json!({"model": "m", "query": "q", "documents": ["a"]});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let error = read(body.to_string().as_bytes()).expect_err(param);
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{}", error.message);
        }
    }
}
