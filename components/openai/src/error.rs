//! OpenAI's error envelope: `{"error": {"message", "type", "param", "code"}}`.
//!
//! Clients choose their exception by the status alone (openai-python and
//! openai-node, `error.py` and `error.ts`) and honour `Retry-After`.

use nala_sdk::http::{IntoResponse, Method, Response};
use nala_sdk::{chat, llm};
use serde_json::json;

use crate::brief::short;

/// An answer that says what was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// What was wrong and what to do about it.
    pub message: String,
    /// The parameter that was wrong.
    pub param: Option<String>,
    /// What programs may compare with.
    pub code: Option<&'static str>,
    /// The methods that the route knows, with a 405.
    pub allow: Option<String>,
}

impl ApiError {
    fn new(status: u16, code: Option<&'static str>, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code, allow: None }
    }

    /// 400: the request is malformed, though no single parameter is to blame.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(400, None, message)
    }

    /// 400: a parameter has a value that it must not have.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::malformed(message).of(param).with_code("invalid_value")
    }

    /// 400: a parameter asks for what is not supported.
    pub fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::malformed(message).of(param).with_code("unsupported_parameter")
    }

    /// 400: nothing is known by this name.
    pub fn unknown(param: impl Into<String>) -> Self {
        let param = param.into();
        Self::malformed(format!("unknown parameter '{param}'")).of(param).with_code("unknown_parameter")
    }

    /// 400: a parameter is missing.
    pub fn missing(param: impl Into<String>, what: &str) -> Self {
        let param = param.into();
        Self::malformed(format!("'{param}' is required: {what}")).of(param).with_code("missing_required_parameter")
    }

    /// 400: the prompt has no room in the context. `fit` tokens would.
    pub fn context_length(param: &str, tokens: usize, fit: u32) -> Self {
        Self::malformed(format!("'{param}' makes {tokens} tokens, but only {fit} fit into the context; shorten it"))
            .of(param)
            .with_code("context_length_exceeded")
    }

    /// 400: the conversation is so long that its tokens need not be counted.
    pub fn too_long(param: &str, bytes: usize, most: usize, context: u32) -> Self {
        Self::malformed(format!(
            "'{param}' has {bytes} bytes of text, but the context of {context} tokens cannot hold more than \
             {most} bytes; shorten it"
        ))
        .of(param)
        .with_code("context_length_exceeded")
    }

    /// 413: the conversation might fit, but is too much for the component that
    /// renders it.
    pub fn too_long_to_render(param: &str, bytes: usize, reason: &str) -> Self {
        let message = format!("'{param}' has {bytes} bytes of text, too much to be rendered: {reason}; shorten it");
        Self::new(413, Some("body_too_large"), message).of(param)
    }

    /// 415: the body is encoded in a way that is not undone here.
    pub fn content_encoding(value: &str) -> Self {
        let message = format!(
            "the header Content-Encoding is {:?}, but only bodies that are not encoded are read; leave it out or send \
             identity",
            short(value)
        );
        Self::new(415, Some("unsupported_content_encoding"), message)
    }

    /// 404: there is no such model, or none for this client.
    pub fn model_not_found(name: &str, available: &[String]) -> Self {
        let name = short(name);
        let message = match available {
            [] => format!("the model '{name}' does not exist, and no other is available"),
            names => format!("the model '{name}' does not exist; available: {}", names.join(", ")),
        };
        Self::new(404, Some("model_not_found"), message).of("model")
    }

    /// 503: the model is not loaded, and cannot be at the moment. Other than a 429 this
    /// is nothing that the client did too often.
    pub fn not_loaded(name: &str) -> Self {
        let message = format!(
            "the model '{}' is not loaded yet: it is being loaded, or models in use take the memory that it needs; try \
             again in a moment",
            short(name)
        );
        Self::new(503, Some("model_loading"), message).of("model")
    }

    /// 404: there is no such route. `known` are those that there are, for people.
    pub fn unknown_route(method: &Method, path: &str, known: &str) -> Self {
        let message =
            format!("unknown request: {} {}; this server knows {known}", short(&method.to_string()), short(path));
        Self::new(404, Some("unknown_url"), message)
    }

    /// 405: the route knows other methods.
    ///
    /// `allowed` is the value of the header `Allow`.
    pub fn method_not_allowed(method: &Method, path: &str, allowed: &str) -> Self {
        let message = format!("{} is not allowed for {}; use {allowed}", short(&method.to_string()), short(path));
        let mut error = Self::new(405, Some("method_not_allowed"), message);
        error.allow = Some(allowed.to_owned());
        error
    }

    /// The same, naming the parameter.
    #[must_use]
    pub fn of(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The same, naming this parameter where it names another one of the same
    /// meaning: what is `messages` to one API is `input` to another.
    #[must_use]
    pub(crate) fn about(mut self, param: &str) -> Self {
        if self.param.as_deref() == Some("messages") {
            self.param = Some(param.to_owned());
        }
        self
    }

    fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    fn kind(&self) -> &'static str {
        match self.status {
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The envelope.
    #[must_use]
    pub fn body(&self) -> String {
        json!({
            "error": {
                "message": self.message,
                "type": self.kind(),
                "param": self.param,
                "code": self.code,
            }
        })
        .to_string()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let response = Response::new(self.status, "application/json", self.body());
        let response = match &self.allow {
            Some(method) => response.with_header("allow", method.as_str()),
            None => response,
        };
        match self.status {
            429 | 503 => response.with_header("retry-after", "1"),
            _ => response,
        }
    }
}

impl From<llm::Error> for ApiError {
    fn from(error: llm::Error) -> Self {
        nala_sdk::Error::from(error).into()
    }
}

impl From<nala_sdk::Error> for ApiError {
    fn from(error: nala_sdk::Error) -> Self {
        use nala_sdk::Error::{BodyTooLarge, Chat, Llm};
        let code = match &error {
            BodyTooLarge { .. } => Some("body_too_large"),
            Llm(llm::Error::Busy) => Some("busy"),
            Llm(llm::Error::Quota(_)) => Some("rate_limit_exceeded"),
            Llm(llm::Error::ContextFull(_)) => Some("context_length_exceeded"),
            Llm(llm::Error::Cancelled) => Some("cancelled"),
            Llm(llm::Error::Evicted) => Some("evicted"),
            Llm(llm::Error::Unsupported(_)) => Some("unsupported"),
            Llm(llm::Error::Constraint(_)) => Some("grammar_failed"),
            Chat(chat::Error::Refused(_) | chat::Error::Invalid(_)) => Some("invalid_messages"),
            Chat(chat::Error::Template(_) | chat::Error::Failed(_)) => Some("template_error"),
            _ => None,
        };
        let status = match &error {
            Llm(llm::Error::Unsupported(_)) => 400,
            other => other.status(),
        };
        let mut converted = Self::new(status, code, error.to_string());
        if matches!(error, Chat(chat::Error::Refused(_) | chat::Error::Invalid(_))) {
            converted.param = Some("messages".to_owned());
        }
        converted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_host_get_their_status() {
        let cases = [
            (llm::Error::Busy, 429, "rate_limit_error"),
            (llm::Error::Quota(llm::QuotaKind::Tokens), 429, "rate_limit_error"),
            (llm::Error::Cancelled, 503, "server_error"),
            (llm::Error::Backend("x".to_owned()), 500, "server_error"),
            (llm::Error::ContextFull(3), 400, "invalid_request_error"),
            (llm::Error::Denied("x".to_owned()), 403, "permission_error"),
        ];
        for (error, status, kind) in cases {
            let response = ApiError::from(error.clone()).into_response();
            assert_eq!(response.status(), status, "{error:?}");
            assert_eq!(response.header("retry-after").is_some(), matches!(status, 429 | 503));
            let body: serde_json::Value = serde_json::from_slice(&response.into_bytes().unwrap()).unwrap();
            assert_eq!(body["error"]["type"], kind);
        }
    }

    #[test]
    fn a_body_over_the_limit_is_a_413() {
        let error = ApiError::from(nala_sdk::Error::BodyTooLarge { limit: 7 });
        assert_eq!((error.status, error.code), (413, Some("body_too_large")));
        assert!(error.message.contains('7'));
    }

    #[test]
    fn a_refusal_of_the_template_is_the_clients_fault() {
        let refused = nala_sdk::Error::from(chat::Error::Refused("no system".to_owned()));
        let error = ApiError::from(refused);
        assert_eq!((error.status, error.param.as_deref()), (400, Some("messages")));
        assert!(error.message.contains("no system"));
    }
}
