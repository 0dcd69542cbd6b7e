//! Messages as JSON-RPC 2.0 has them.

use nala_sdk::http::Response;
use serde_json::{Map, Value, json};

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// It wants an answer.
    Request(Call),
    /// It wants none.
    Notification { method: String, params: Map<String, Value> },
    /// It answers something that it was asked.
    Reply { id: Value, outcome: Result<Value, Value> },
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
    /// The status of HTTP where it is the whole response.
    pub(crate) status: u16,
}

impl Failure {
    fn new(status: u16, code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, status }
    }

    /// The body is no JSON.
    pub(crate) fn no_json(message: impl Into<String>) -> Self {
        Self::new(400, -32700, message)
    }

    /// It is JSON, and no message, or not one that may come now.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(400, -32600, message)
    }

    /// There is no such method.
    pub(crate) fn no_method(method: &str) -> Self {
        let method: String = method.chars().take(100).collect();
        Self::new(404, -32601, format!("there is no method {method:?}"))
    }

    /// Its parameters are wrong. The request itself was in order.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(200, -32602, message)
    }

    /// The headers do not say what the body says.
    pub(crate) fn headers(message: impl Into<String>) -> Self {
        Self::new(400, -32020, message)
    }

    /// The client would have to be able to do more.
    pub(crate) fn lacks(capabilities: Value) -> Self {
        let message = "this needs capabilities that the client does not have";
        Self { data: Some(json!({ "requiredCapabilities": capabilities })), ..Self::new(400, -32021, message) }
    }

    /// The version of the protocol is not spoken here.
    pub(crate) fn version(requested: &str, supported: &[&str]) -> Self {
        let requested: String = requested.chars().take(100).collect();
        let message = format!("version {requested:?} of the protocol is not spoken here");
        let data = json!({ "supported": supported, "requested": requested });
        Self { data: Some(data), ..Self::new(400, -32022, message) }
    }

    /// Something on this side failed.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(200, -32603, message)
    }

    pub(crate) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The message that says so. Where the id could not be read there is none: the protocol
    /// has it so, other than JSON-RPC, which has null.
    pub(crate) fn json(&self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let (Value::Object(error), Some(data)) = (&mut error, &self.data) {
            error.insert("data".to_owned(), data.clone());
        }
        let mut message = json!({ "jsonrpc": "2.0", "error": error });
        if let (Value::Object(message), false) = (&mut message, id.is_null()) {
            message.insert("id".to_owned(), id.clone());
        }
        message
    }

    /// The same as a whole response.
    pub(crate) fn response(&self, id: &Value) -> Response {
        Response::new(self.status, "application/json", self.json(id).to_string())
    }
}

/// The message with a result.
pub(crate) fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// A message as a whole response.
pub(crate) fn whole(message: &Value) -> Response {
    Response::new(200, "application/json", message.to_string())
}

/// The message that tells something.
pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The id of what may be no message, so that whoever sent it hears of it.
pub(crate) fn id(body: &[u8]) -> Value {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let id = message.get("id").filter(|id| id.is_string() || id.is_number());
    id.filter(|_| message.get("method").is_some()).cloned().unwrap_or_default()
}

/// Reads a message.
pub(crate) fn read(body: &[u8]) -> Result<Incoming, Failure> {
    let message: Value =
        serde_json::from_slice(body).map_err(|error| Failure::no_json(format!("the body is no JSON: {error}")))?;
    let mut message = match message {
        Value::Object(message) => message,
        Value::Array(_) => return Err(Failure::invalid_request("send one message a request, and no batches")),
        _ => return Err(Failure::invalid_request("a message is a JSON object")),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Failure::invalid_request("a message says \"jsonrpc\": \"2.0\""));
    }
    let id = message.remove("id");
    if let Some(id) = &id
        && !matches!(id, Value::String(_) | Value::Number(_))
    {
        return Err(Failure::invalid_request("`id` is a string or a number"));
    }
    let Some(method) = message.remove("method") else {
        let outcome = match (message.remove("result"), message.remove("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            _ => return Err(Failure::invalid_request("a message has a `method`, a `result` or an `error`")),
        };
        let id = id.ok_or_else(|| Failure::invalid_request("a reply has the `id` of what it replies to"))?;
        return Ok(Incoming::Reply { id, outcome });
    };
    let Value::String(method) = method else {
        return Err(Failure::invalid_request("`method` is a string"));
    };
    let params = match message.remove("params") {
        // Many write null for none.
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(Failure::invalid_request("`params` is an object")),
    };
    Ok(match id {
        Some(id) => Incoming::Request(Call { id, method, params }),
        None => Incoming::Notification { method, params },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let request = read(br#"{"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": 1}}"#).unwrap();
        let Incoming::Request(call) = request else { panic!("{request:?}") };
        assert_eq!((call.id, call.method.as_str(), call.params.len()), (json!(1), "m", 1));
        let told = read(br#"{"jsonrpc": "2.0", "method": "m"}"#).unwrap();
        assert_eq!(told, Incoming::Notification { method: "m".to_owned(), params: Map::new() });
        let reply = read(br#"{"jsonrpc": "2.0", "id": "a", "result": {}}"#).unwrap();
        assert_eq!(reply, Incoming::Reply { id: json!("a"), outcome: Ok(json!({})) });
        let reply = read(br#"{"jsonrpc": "2.0", "id": "a", "error": {}}"#).unwrap();
        assert_eq!(reply, Incoming::Reply { id: json!("a"), outcome: Err(json!({})) });
    }

    #[test]
    fn who_sent_something_wrong_hears_of_it_by_its_id() {
        assert_eq!(id(br#"{"id": 7, "method": "m", "params": []}"#), json!(7));
        assert_eq!(id(br#"{"id": {}, "method": "m"}"#), Value::Null);
        assert_eq!(id(br#"{"id": 7, "result": {}, "error": {}}"#), Value::Null, "it was no request");
        assert_eq!(id(b"{"), Value::Null);
        assert!(read(br#"{"jsonrpc": "2.0", "id": 1, "method": "m", "params": null}"#).is_ok());
    }

    #[test]
    fn what_is_no_message_is_told_why() {
        for (body, code, said) in [
            ("", -32700, "no JSON"),
            ("{", -32700, "no JSON"),
            ("[]", -32600, "batches"),
            ("1", -32600, "JSON object"),
            ("{}", -32600, "jsonrpc"),
            (r#"{"jsonrpc": "1.0"}"#, -32600, "jsonrpc"),
            (r#"{"jsonrpc": "2.0"}"#, -32600, "a `method`"),
            (r#"{"jsonrpc": "2.0", "result": {}}"#, -32600, "the `id`"),
            (r#"{"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}"#, -32600, "a `method`"),
            (r#"{"jsonrpc": "2.0", "id": null, "method": "a"}"#, -32600, "a string or a number"),
            (r#"{"jsonrpc": "2.0", "id": {}, "method": "a"}"#, -32600, "a string or a number"),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": 1}"#, -32600, "`method` is a string"),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": []}"#, -32600, "`params` is an object"),
        ] {
            let failure = read(body.as_bytes()).unwrap_err();
            assert!(failure.code == code && failure.message.contains(said), "{body}: {failure:?}");
        }
    }
}
