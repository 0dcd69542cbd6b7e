//! Arguments that a client repeats in headers, for whoever routes requests by them.

use nala_sdk::tools::Tool;
use serde_json::{Map, Value};

use crate::era::Headers;
use crate::wire::Failure;

/// The keyword of a schema that names such a header,
const KEYWORD: &str = "x-mcp-header";
/// and what comes before that name.
const PREFIX: &str = "mcp-param-";

/// Each argument that the tool's schema has a header for is in it as well, and the same.
pub(crate) fn check(headers: Headers<'_>, tool: &Tool, arguments: &Map<String, Value>) -> Result<(), Failure> {
    // Most tools have none, and then there is nothing to be read.
    if !tool.input_schema.contains(KEYWORD) {
        return Ok(());
    }
    let schema: Value = serde_json::from_str(&tool.input_schema).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let Some(suffix) = property.get(KEYWORD).and_then(Value::as_str) else { continue };
        let header = format!("{PREFIX}{}", suffix.to_ascii_lowercase());
        match arguments.get(name) {
            Some(Value::String(text)) => headers.check(&header, text)?,
            Some(value @ (Value::Number(_) | Value::Bool(_))) => {
                headers.check(&header, &value.to_string())?;
            }
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None if headers.has(&header) => {
                return Err(Failure::headers(format!(
                    "the header `{header}` is there, and the argument `{name}` is not"
                )));
            }
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nala_sdk::http::{Method, Request};
    use serde_json::json;

    use super::*;

    #[test]
    fn headers_say_what_the_arguments_say() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "other": { "type": "string" },
        } });
        let tool = Tool::new("t", "d", schema.to_string());
        let check = |headers: &[(&str, &str)], arguments: Value| {
            let request = headers
                .iter()
                .fold(Request::new(Method::Post, "/mcp"), |request, (name, value)| request.with_header(name, value));
            super::check(Headers::Of(&request), &tool, arguments.as_object().unwrap())
        };
        let region = ("Mcp-Param-Region", "=?base64?SGVsbG8=?=");
        assert!(check(&[region], json!({ "region": "Hello", "other": "x" })).is_ok());
        assert!(check(&[("Mcp-Param-Count", "3")], json!({ "count": 3 })).is_ok());
        assert!(check(&[], json!({ "other": "x" })).is_ok());
        for (headers, arguments) in [
            (&[][..], json!({ "region": "Hello" })),
            (&[region][..], json!({ "region": "hello" })),
            (&[region][..], json!({})),
            (&[("Mcp-Param-Region", "=?base64?SGVsbG8?=")][..], json!({ "region": "Hello" })),
        ] {
            assert_eq!(check(headers, arguments).unwrap_err().code, -32020);
        }
    }
}
