//! Serves models in the shape of OpenAI's API.
//!
//! | route | |
//! |---|---|
//! | `POST /v1/chat/completions` | an answer to a conversation, whole or streamed |
//! | `POST /v1/responses` | the same in the shape of the Responses API |
//! | `POST /v1/messages` | the same in the shape of Anthropic's API |
//! | `POST /v1/messages/count_tokens` | how many tokens it would read |
//! | `GET /v1/models` | the models that this component may open |
//! | `GET /v1/models/{id}` | one of them |
//!
//! `HEAD` is answered as `GET`; the host leaves the body out.
//!
//! Everything else, and everything that goes wrong, is answered with OpenAI's
//! error envelope ([`error`]). Which parameters mean what is in [`parameters`].
//! A head with status 200 goes out only when the first token is there: whatever
//! fails before that gets its status.

pub mod anthropic;
pub mod ask;
mod begin;
mod brief;
pub mod chat;
pub mod error;
pub mod ids;
pub mod json;
pub mod messages;
mod models;
pub mod parameters;
pub mod responses;
pub mod turn;

use nala_sdk::http::{IntoResponse, Method, Request, Response, percent_decode};

use error::ApiError;

/// Answers a request.
pub fn handle(request: Request) -> Response {
    // Each API has errors of a shape of its own.
    let anthropics = request.path().starts_with("/v1/messages") || anthropic::is_spoken_by(&request);
    match route(request) {
        Ok(response) => response,
        Err(error) if anthropics => anthropic::error::response(&error, None),
        Err(error) => error.into_response(),
    }
}

fn route(request: Request) -> Result<Response, ApiError> {
    // What is sent compressed would look like broken JSON.
    if let Some(encoding) = request.header("content-encoding")
        && !encoding.split(',').all(|coding| coding.trim().eq_ignore_ascii_case("identity"))
    {
        return Err(ApiError::content_encoding(encoding));
    }
    let path = request.path().to_owned();
    match path.as_str() {
        "/v1/chat/completions" => {
            allow(&request, &[Method::Post])?;
            chat::complete(request)
        }
        "/v1/responses" => {
            allow(&request, &[Method::Post])?;
            responses::respond(request)
        }
        "/v1/messages" => {
            allow(&request, &[Method::Post])?;
            anthropic::respond(request)
        }
        "/v1/messages/count_tokens" => {
            allow(&request, &[Method::Post])?;
            anthropic::respond_count(request)
        }
        "/v1/models" => {
            allow(&request, &READING)?;
            Ok(models::list())
        }
        _ => match path.strip_prefix("/v1/models/") {
            Some(id) if !id.is_empty() => {
                allow(&request, &READING)?;
                models::one(&percent_decode(id))
            }
            _ => Err(ApiError::unknown_route(request.method(), &path)),
        },
    }
}

/// The methods of what is only read.
const READING: [Method; 2] = [Method::Get, Method::Head];

fn allow(request: &Request, methods: &[Method]) -> Result<(), ApiError> {
    if methods.contains(request.method()) {
        return Ok(());
    }
    let allowed: Vec<String> = methods.iter().map(Method::to_string).collect();
    Err(ApiError::method_not_allowed(request.method(), request.path(), &allowed.join(", ")))
}

nala_sdk::handler!(handle);

#[cfg(test)]
mod tests {
    use super::*;

    fn body(response: Response) -> serde_json::Value {
        serde_json::from_slice(&response.into_bytes().unwrap()).unwrap()
    }

    #[test]
    fn unknown_routes_are_named() {
        let response = handle(Request::new(Method::Get, "/v1/nothing?x=1"));
        assert_eq!(response.status(), 404);
        assert_eq!(response.header("content-type"), Some("application/json"));
        let error = &body(response)["error"];
        assert!(error["message"].as_str().unwrap().contains("GET /v1/nothing"), "{error}");
        assert_eq!(error["type"], "invalid_request_error");
        assert_eq!(error["code"], "unknown_url");
    }

    #[test]
    fn wrong_methods_are_told_the_right_one() {
        for (method, uri, allowed) in [
            (Method::Get, "/v1/chat/completions", "POST"),
            (Method::Post, "/v1/models", "GET, HEAD"),
            (Method::Delete, "/v1/models/x", "GET, HEAD"),
        ] {
            let response = handle(Request::new(method, uri));
            assert_eq!((response.status(), response.header("allow")), (405, Some(allowed)));
            assert!(body(response)["error"]["message"].as_str().unwrap().contains(allowed));
        }
    }

    #[test]
    fn head_is_allowed_wherever_get_is() {
        for path in ["/v1/models", "/v1/models/x"] {
            assert_eq!(allow(&Request::new(Method::Head, path), &READING), Ok(()));
        }
        assert_eq!(handle(Request::new(Method::Head, "/v1/chat/completions")).status(), 405);
    }

    #[test]
    fn a_long_path_is_not_echoed_whole() {
        let response = handle(Request::new(Method::Get, &format!("/{}", "x".repeat(10_000))));
        let error = &body(response)["error"];
        assert!(error["message"].as_str().unwrap().len() < 300, "{error}");
    }

    #[test]
    fn encoded_bodies_are_refused_by_the_headers_name() {
        let ask = |encoding: &str| {
            handle(
                Request::new(Method::Post, "/v1/chat/completions")
                    .with_header("Content-Encoding", encoding)
                    .with_body("{}"),
            )
        };
        for encoding in ["gzip", "identity, br"] {
            let response = ask(encoding);
            assert_eq!(response.status(), 415, "{encoding}");
            let error = &body(response)["error"];
            assert!(error["message"].as_str().unwrap().contains("Content-Encoding"), "{error}");
        }
        assert_eq!(ask("Identity").status(), 400, "{{}} is no request, but it was read");
    }

    #[test]
    fn bodies_that_do_not_parse_are_told_where() {
        let request = Request::new(Method::Post, "/v1/chat/completions").with_body("{\"model\": \n oops}");
        let response = handle(request);
        assert_eq!(response.status(), 400);
        let error = &body(response)["error"];
        assert!(error["message"].as_str().unwrap().contains("line 2 column 2"), "{error}");
    }
}
