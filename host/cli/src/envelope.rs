//! How errors of the host look to clients of the API that was asked.

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use nala_http::{Asked, HostError, ResponseBody};

/// Where Anthropic's API begins.
const ANTHROPIC: &str = "/v1/messages";

/// An error as the clients of the API read it that stands under the path. `challenge` says
/// how to get in where more than a key will do.
pub(crate) fn present(asked: &Asked, error: HostError, challenge: Option<HeaderValue>) -> Response<ResponseBody> {
    let status = error.status();
    let mut response = match is_anthropic(asked.uri.path()) {
        true => {
            let json = anthropic(&error);
            error.into_response_with(json)
        }
        false => error.into_response(),
    };
    let headers = response.headers_mut();
    let plain = (status == StatusCode::UNAUTHORIZED).then_some(HeaderValue::from_static("Bearer"));
    if let Some(challenge) = challenge.or(plain) {
        headers.insert(WWW_AUTHENTICATE, challenge);
    }
    if asked.by_page {
        // Without it a page learns of any error only that there was one.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("retry-after, www-authenticate, x-request-id"),
        );
    }
    response
}

/// A tenant's prefix may stand before it.
fn is_anthropic(path: &str) -> bool {
    path.split_once(ANTHROPIC).is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('/'))
}

/// Anthropic's envelope (Anthropic API reference, "Errors").
fn anthropic(error: &HostError) -> String {
    let kind = match error.status().as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        ..500 => "invalid_request_error",
        _ => "api_error",
    };
    serde_json::json!({ "type": "error", "error": { "type": kind, "message": error.to_string() } }).to_string()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn shown(path: &str, by_page: bool, status: u16) -> (http::HeaderMap, serde_json::Value) {
        let asked = Asked { uri: path.parse().unwrap(), by_page };
        let error = HostError::new(StatusCode::from_u16(status).unwrap(), "code", "A text.");
        let (head, body) = present(&asked, error, None).into_parts();
        assert_eq!(head.status.as_u16(), status);
        (head.headers, serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap())
    }

    #[tokio::test]
    async fn each_api_has_its_envelope() {
        for path in ["/v1/messages", "/v1/messages/count_tokens?beta=true", "/t/acme/v1/messages"] {
            let (_, json) = shown(path, false, 429).await;
            assert_eq!(json["type"], "error", "{path}");
            assert_eq!(json["error"]["type"], "rate_limit_error", "{path}");
        }
        for path in ["/v1/chat/completions", "/v1/messages2", "/"] {
            let (headers, json) = shown(path, false, 401).await;
            assert_eq!(json["error"]["code"], "code", "{path}");
            assert_eq!(headers["www-authenticate"], "Bearer");
        }
    }

    #[tokio::test]
    async fn a_page_may_read_what_went_wrong() {
        let (headers, _) = shown("/v1/models", true, 413).await;
        assert_eq!(headers["access-control-allow-origin"], "*");
        let (headers, _) = shown("/v1/models", false, 413).await;
        assert!(!headers.contains_key("access-control-allow-origin"));
    }
}
