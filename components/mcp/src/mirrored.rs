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
pub(crate) fn check(headers: Headers<'_>, tool: &Tool, arguments: Option<&Map<String, Value>>) -> Result<(), Failure> {
    // Most tools have none, and then there is nothing to be read.
    if !tool.input_schema.contains(KEYWORD) {
        return Ok(());
    }
    let schema: Value = serde_json::from_str(&tool.input_schema).unwrap_or_default();
    check_object(headers, &schema, arguments)
}

/// The properties of a schema, and those in them. `arguments` are None where they are not
/// there.
fn check_object(headers: Headers<'_>, schema: &Value, arguments: Option<&Map<String, Value>>) -> Result<(), Failure> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let argument = arguments.and_then(|arguments| arguments.get(name));
        check_object(headers, property, argument.and_then(Value::as_object))?;
        let Some(suffix) = property.get(KEYWORD).and_then(Value::as_str) else { continue };
        let header = format!("{PREFIX}{}", suffix.to_ascii_lowercase());
        match argument {
            Some(Value::String(text)) => headers.check(&header, text)?,
            Some(Value::Bool(value)) => headers.check(&header, &value.to_string())?,
            Some(Value::Number(number)) => headers.check_number(&header, number)?,
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
            "deep": { "type": "object", "properties": { "zone": { "type": "string", "x-mcp-header": "Zone" } } },
        } });
        let tool = Tool::new("t", "d", schema.to_string());
        let check = |headers: &[(&str, &str)], arguments: Value| {
            let request = headers
                .iter()
                .fold(Request::new(Method::Post, "/mcp"), |request, (name, value)| request.with_header(name, value));
            super::check(Headers::Of(&request), &tool, arguments.as_object())
        };
        let region = ("Mcp-Param-Region", "=?base64?SGVsbG8=?=");
        assert!(check(&[region], json!({ "region": "Hello", "other": "x" })).is_ok());
        for (said, count) in [("3", json!(3)), ("3.0", json!(3)), ("3", json!(3.0))] {
            assert!(check(&[("Mcp-Param-Count", said)], json!({ "count": count })).is_ok(), "{said} {count}");
        }
        assert!(check(&[("Mcp-Param-Zone", "a")], json!({ "deep": { "zone": "a" } })).is_ok());
        assert!(check(&[], json!({ "other": "x" })).is_ok());
        for (headers, arguments) in [
            (&[][..], json!({ "region": "Hello" })),
            (&[region][..], json!({ "region": "hello" })),
            (&[region][..], json!({})),
            (&[][..], json!({ "deep": { "zone": "a" } })),
            (&[("Mcp-Param-Zone", "a")][..], json!({ "deep": {} })),
            (&[("Mcp-Param-Count", "4")][..], json!({ "count": 3 })),
            (&[("Mcp-Param-Count", "9007199254740993")][..], json!({ "count": 9_007_199_254_740_992_u64 })),
            (&[("Mcp-Param-Region", "=?base64?SGVsbG8?=")][..], json!({ "region": "Hello" })),
        ] {
            assert_eq!(check(headers, arguments).unwrap_err().code, -32020);
        }
    }
}
