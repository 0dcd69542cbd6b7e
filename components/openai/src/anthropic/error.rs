//! Anthropic's error envelope:
//! `{"type": "error", "error": {"type", "message"}, "request_id"}`.
//!
//! The official client chooses its exception by the status (`_client.py`,
//! `_make_status_error`), and by `error.type` only where an error comes in the middle
//! of a stream, whose status was 200. The envelope has no field for the parameter, so
//! the message names it.

use nala_sdk::http::Response;

use crate::error::ApiError;
use crate::json;

/// Anthropic's word for a status.
fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// The parameter by which the official client's tool runner asks for conversations
/// that the server stores. Told by `details` that there are none, it sends the whole
/// conversation with each turn (npm's `ThreadState.mjs`, `unsupportedFeatures`); an
/// error without them ends the runner.
const THREAD: &str = "thread";

/// The envelope. `request_id` is what the operator finds the request by.
#[must_use]
pub fn envelope(error: &ApiError, request_id: Option<&str>) -> Vec<u8> {
    let mut out = b"{\"type\":\"error\",\"error\":{\"type\":".to_vec();
    json::string(kind(error.status), &mut out);
    out.extend_from_slice(b",\"message\":\"");
    if let Some(param) = error.param.as_deref().filter(|param| !error.message.contains(param)) {
        json::escaped(param, &mut out);
        out.extend_from_slice(b": ");
    }
    json::escaped(&error.message, &mut out);
    out.push(b'"');
    if error.param.as_deref() == Some(THREAD) {
        out.extend_from_slice(
            b",\"details\":{\"error_code\":\"thread_unsupported_request\",\"unsupported\":[\"thread\"]}",
        );
    }
    out.push(b'}');
    if let Some(id) = request_id {
        out.extend_from_slice(b",\"request_id\":");
        json::string(id, &mut out);
    }
    out.push(b'}');
    out
}

/// The response that says what was wrong.
#[must_use]
pub fn response(error: &ApiError, request_id: Option<&str>) -> Response {
    let mut response = Response::new(error.status, "application/json", envelope(error, request_id));
    if let Some(methods) = &error.allow {
        response = response.with_header("allow", methods.as_str());
    }
    if let Some(id) = request_id {
        response = response.with_header("request-id", id);
    }
    match error.status {
        429 | 503 | 529 => response.with_header("retry-after", "1"),
        _ => response,
    }
}

#[cfg(test)]
mod tests {
    use nala_sdk::http::{IntoResponse, Method};
    use nala_sdk::llm;
    use serde_json::{Value, json};

    use super::*;

    fn body(response: Response) -> Value {
        serde_json::from_slice(&response.into_bytes().unwrap()).unwrap()
    }

    #[test]
    fn clients_that_ask_for_threads_are_told_to_do_without() {
        let details =
            |param: &str| body(response(&ApiError::unsupported(param, "x"), None))["error"]["details"].clone();
        assert_eq!(details("thread"), json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]}));
        assert_eq!(details("container"), Value::Null);
    }

    #[test]
    fn each_status_has_its_word() {
        for (status, word) in [
            (400, "invalid_request_error"),
            (401, "authentication_error"),
            (402, "billing_error"),
            (403, "permission_error"),
            (404, "not_found_error"),
            (405, "invalid_request_error"),
            (413, "request_too_large"),
            (415, "invalid_request_error"),
            (429, "rate_limit_error"),
            (500, "api_error"),
            (502, "api_error"),
            (503, "overloaded_error"),
            (504, "timeout_error"),
            (529, "overloaded_error"),
        ] {
            let error = ApiError { status, ..ApiError::malformed("so \"bad\"\n") };
            let response = response(&error, None);
            assert_eq!(response.status(), status);
            assert_eq!(response.header("content-type"), Some("application/json"));
            assert_eq!(body(response), json!({"type": "error", "error": {"type": word, "message": "so \"bad\"\n"}}));
        }
    }

    #[test]
    fn the_parameter_is_named_once() {
        let message = |error: ApiError| body(response(&error, None))["error"]["message"].clone();
        assert_eq!(message(ApiError::unknown("tempreature")), "unknown parameter 'tempreature'");
        assert_eq!(message(ApiError::malformed("too long").of("messages")), "messages: too long");
    }

    #[test]
    fn what_a_client_can_act_on_is_in_the_headers() {
        let wrong_method = ApiError::method_not_allowed(&Method::Get, "/v1/messages", "POST");
        assert_eq!(response(&wrong_method, None).header("allow"), Some("POST"));
        let busy = ApiError::from(llm::Error::Busy);
        let with_id = response(&busy, Some("req_1"));
        assert_eq!(with_id.header("retry-after"), busy.into_response().header("retry-after"));
        assert_eq!(with_id.header("request-id"), Some("req_1"));
        assert_eq!(body(with_id)["request_id"], "req_1");
    }
}
