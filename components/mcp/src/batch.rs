//! Several messages in one request, which the version of 2025-03-26 alone has.

use nala_sdk::http::{Request, Response};
use serde_json::Value;

use crate::wire::Failure;

/// The version, which is also that of clients that say none.
const VERSION: &str = "2025-03-26";
/// The messages of a batch.
const MOST: usize = 16;

/// Whether a body is a batch of a client that may send one.
pub(crate) fn is_one(head: &Request, body: &[u8]) -> bool {
    let may = head.header("mcp-protocol-version").is_none_or(|version| version == VERSION);
    may && body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Answers them one after the other, all at once.
pub(crate) fn answer(body: &[u8], one: impl Fn(&[u8]) -> Response) -> Response {
    let refuse = |failure: Failure| failure.response(&Value::Null);
    let messages: Vec<Value> = match serde_json::from_slice(body) {
        Ok(messages) => messages,
        Err(error) => return refuse(Failure::no_json(format!("the body is no JSON: {error}"))),
    };
    if messages.is_empty() || messages.len() > MOST {
        return refuse(Failure::invalid_request(format!("a batch has 1 to {MOST} messages")));
    }
    if messages.iter().any(|message| message.get("method").and_then(Value::as_str) == Some("initialize")) {
        return refuse(Failure::invalid_request("`initialize` is sent alone"));
    }
    let mut answers = Vec::new();
    for message in messages {
        match one(message.to_string().as_bytes()).into_bytes() {
            Ok(body) => answers.extend(said(&body)),
            Err(error) => return refuse(Failure::internal(error.to_string())),
        }
    }
    match answers.is_empty() {
        true => Response::empty(202),
        false => Response::new(200, "application/json", Value::Array(answers).to_string()),
    }
}

/// The messages of a body: one, those of a stream, or none.
fn said(body: &[u8]) -> Vec<Value> {
    match serde_json::from_slice(body) {
        Ok(message) => vec![message],
        Err(_) => {
            let lines = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
            lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use nala_sdk::http::Method;

    use super::*;

    #[test]
    fn each_message_is_answered_and_notifications_are_not() {
        let one = |body: &[u8]| match body {
            b"1" => Response::empty(202),
            b"2" => Response::events(|out| out.write("event: message\ndata: {\"a\":1}\n\ndata: {\"b\":2}\n\n")),
            _ => Response::new(200, "application/json", "{\"c\":3}"),
        };
        let body = |response: Response| String::from_utf8(response.into_bytes().unwrap()).unwrap();
        assert_eq!(body(answer(b"[1, 2, 3]", one)), r#"[{"a":1},{"b":2},{"c":3}]"#);
        assert_eq!(answer(b"[1, 1]", one).status(), 202);
        for wrong in [&b"["[..], b"[]", br#"[{"method": "initialize"}]"#, b"[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"] {
            assert_eq!(answer(wrong, one).status(), 400);
        }
        let head = |version: Option<&str>| match version {
            Some(version) => Request::new(Method::Post, "/mcp").with_header("MCP-Protocol-Version", version),
            None => Request::new(Method::Post, "/mcp"),
        };
        assert!(is_one(&head(None), b" [1]") && is_one(&head(Some(VERSION)), b"[1]"));
        assert!(!is_one(&head(Some("2025-11-25")), b"[1]") && !is_one(&head(None), b"{}"));
    }
}
