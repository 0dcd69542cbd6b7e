//! Reading the parameters of a request.

use serde_json::{Map, Value};

use crate::wire::Failure;

/// A text that has to be there.
pub(crate) fn text<'a>(params: &'a Map<String, Value>, key: &str) -> Result<&'a str, Failure> {
    let text = params.get(key).and_then(Value::as_str);
    text.ok_or_else(|| Failure::invalid_params(format!("`{key}` has to be a string")))
}

/// An object that has to be there.
pub(crate) fn object<'a>(params: &'a Map<String, Value>, key: &str) -> Result<&'a Map<String, Value>, Failure> {
    let object = params.get(key).and_then(Value::as_object);
    object.ok_or_else(|| Failure::invalid_params(format!("`{key}` has to be an object")))
}

/// Texts by their names, if there are any.
pub(crate) fn texts(params: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, Failure> {
    let Some(all) = params.get(key) else { return Ok(Vec::new()) };
    let wrong = || Failure::invalid_params(format!("`{key}` has to be an object of strings"));
    let all = all.as_object().ok_or_else(wrong)?;
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    all.iter().map(pair).collect::<Option<_>>().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_of_another_kind_is_told_by_its_name() {
        let params = json!({ "a": "x", "b": 1, "c": { "d": "e" }, "f": { "g": 1 } });
        let params = params.as_object().unwrap();
        assert_eq!(text(params, "a"), Ok("x"));
        assert!(text(params, "b").unwrap_err().message.contains("`b`"));
        assert_eq!(object(params, "c").unwrap().len(), 1);
        assert!(object(params, "a").is_err());
        assert_eq!(texts(params, "c").unwrap(), [("d".to_owned(), "e".to_owned())]);
        assert_eq!(texts(params, "none").unwrap(), []);
        assert!(texts(params, "f").is_err() && texts(params, "a").is_err());
    }
}
